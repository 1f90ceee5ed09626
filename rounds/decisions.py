"""What becomes of attempts: what is left, the word of their author on those that fooled the model, the example."""

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

from sqlalchemy import bindparam
from sqlalchemy import select as select_columns
from sqlmodel import Session, col, func, select

from dynaround.database import columns
from dynaround.errors import BadInput, IllegalMove, NotAllowed
from dynaround.tables import (
    COMPLETED,
    CONFIRMED,
    DUPLICATE,
    LEFT,
    TAKEN_BACK,
    Attempt,
    AttemptDecision,
    AuthoredExample,
    AuthorSession,
    Example,
    Round,
    Writing,
)
from rounds.sittings import authoring_of, end_writing, lock_authored_round, touch

WAITING = "an attempt of yours fooled the model; say first whether other people would agree, or take it back"


_OWN_WRITING = (
    select(Writing)
    .join(AuthorSession, col(AuthorSession.id) == col(Writing.session_id))
    .where(col(Writing.id) == bindparam("writing"), col(AuthorSession.round_id) == bindparam("round"))
)
_SO_FAR = (
    select_columns(
        col(Attempt.id),
        col(Attempt.number),
        col(Attempt.text_key),
        col(Attempt.prediction) != col(Attempt.target_label),
        col(AttemptDecision.decision),
    )
    .join(AttemptDecision, col(AttemptDecision.attempt_id) == col(Attempt.id), isouter=True)
    .where(col(Attempt.writing_id) == bindparam("writing"))
    .order_by(col(Attempt.number))
)
_MADE_SINCE = (
    select_columns(func.count())
    .select_from(Attempt)
    .where(
        col(Attempt.worker_id) == bindparam("worker"),
        col(Attempt.round_id) == bindparam("round"),
        col(Attempt.at) >= bindparam("since"),
    )
)


class Tally(NamedTuple):
    """What is left of an example in the making: attempts, take-backs, and attempts today."""

    attempts_left: int
    take_backs_left: int
    today_left: int


def own_writing(session: Session, round_: Round, worker_id: int, writing_id: int) -> Writing:
    """Return a worker's open example in the making; raise NotAllowed for another's, IllegalMove for one that ended."""
    making = session.exec(_OWN_WRITING, params={"writing": writing_id, "round": round_.id}).first()
    if making is None or making.worker_id != worker_id:
        raise NotAllowed("this form belongs to another author or another round; load the page again")
    if making.ended_at is not None:
        raise IllegalMove("this example is done; go on with the next one")
    return making


class SoFar(NamedTuple):
    """One attempt for an example in the making, with what its author said of it; `key` is that of its text."""

    attempt_id: int
    number: int
    key: str
    fooled: bool
    decision: str | None

    @property
    def waits(self) -> bool:
        """Whether it fooled the model and its author has said nothing of it yet."""
        return self.fooled and self.decision is None

    @property
    def stands(self) -> bool:
        """Whether it was not taken back."""
        return self.decision != TAKEN_BACK


def attempts_so_far(session: Session, making: Writing) -> list[SoFar]:
    """Return the attempts for an example in the making, by number; the plan allows but a few."""
    return [SoFar._make(row) for row in columns(session, _SO_FAR, writing=making.id)]


def waiting_attempt(session: Session, making: Writing) -> Attempt | None:
    """Return the last attempt that fooled the model and of which its author has said nothing yet."""
    waiting = [made.attempt_id for made in attempts_so_far(session, making) if made.waits]
    return session.get_one(Attempt, waiting[-1]) if waiting else None


def tally(session: Session, round_: Round, making: Writing, at: datetime) -> Tally:
    """Count what is left of an example in the making at a moment."""
    return tally_of(session, round_, making, attempts_so_far(session, making), at)


def tally_of(session: Session, round_: Round, making: Writing, so_far: Sequence[SoFar], at: datetime) -> Tally:
    """Count what is left of an example in the making that has these attempts."""
    return Tally(
        attempts_left=attempts_left(round_, so_far),
        take_backs_left=max(0, authoring_of(round_).take_backs - sum(not made.stands for made in so_far)),
        today_left=today_left(session, round_, making.worker_id, at),
    )


def attempts_left(round_: Round, so_far: Sequence[SoFar]) -> int:
    """Return how many attempts are left of an example in the making; those taken back do not count."""
    return max(0, authoring_of(round_).attempts - sum(made.stands for made in so_far))


def today_left(session: Session, round_: Round, worker_id: int, at: datetime) -> int:
    """Return how many attempts an author has left on the day, in UTC, of a moment; taken back or not, all count."""
    midnight = at.replace(hour=0, minute=0, second=0, microsecond=0)
    made: int = columns(session, _MADE_SINCE, worker=worker_id, round=round_.id, since=midnight).scalar_one()
    return max(0, authoring_of(round_).attempts_a_day - made)


def decide(session: Session, number: int, worker_id: int, attempt_id: int, decision: str, at: datetime) -> str | None:
    """Store what an author says of an attempt that fooled the model: confirmed (then it is the example) or taken back.

    Said again, the same word changes nothing. Returns how the example ended, None where it goes on. Raises NotAllowed
    for another author's attempt, IllegalMove for another word afterwards, an attempt that did not fool the model, and
    when all take-backs are used up.
    """
    round_ = lock_authored_round(session, number)
    attempt = session.get(Attempt, attempt_id)
    if attempt is None or attempt.worker_id != worker_id or attempt.round_id != round_.id:
        raise NotAllowed("this attempt belongs to another author or another round; load the page again")
    making = session.get_one(Writing, attempt.writing_id)
    if decision not in (CONFIRMED, TAKEN_BACK):
        raise BadInput(f"an attempt is confirmed or taken back, not {decision!r}")
    known = session.get(AttemptDecision, attempt_id)
    if known is not None:
        if known.decision != decision:
            raise IllegalMove(f"you have already {known.decision} this attempt; that stands")
        return making.outcome
    if making.ended_at is not None or not attempt.fooled:
        raise IllegalMove("this attempt needs no word of yours: it did not fool the model, or its example is done")
    if decision == TAKEN_BACK and tally(session, round_, making, at).take_backs_left == 0:
        plan = authoring_of(round_)
        raise IllegalMove(f"the {plan.take_backs} take-backs for this example are used up; confirm the attempt")
    touch(session, making, at)
    session.add(AttemptDecision(attempt_id=attempt_id, decision=decision, at=at))
    session.flush()
    # Taken back, the attempt is returned: there is one left, and the making goes on.
    return _make_example(session, round_, making, attempt, at) if decision == CONFIRMED else None


def give_up(session: Session, number: int, worker_id: int, writing_id: int, at: datetime) -> str:
    """Go on to the next example: the last attempt that was not taken back is the example; return how it ended.

    Given up again, an ended example stays as it ended. Raises IllegalMove while a fooling attempt waits for a word.
    """
    round_ = lock_authored_round(session, number)
    making = session.get(Writing, writing_id)
    if making is not None and making.worker_id == worker_id and making.outcome is not None:
        return making.outcome
    making = own_writing(session, round_, worker_id, writing_id)
    if waiting_attempt(session, making) is not None:
        raise IllegalMove(WAITING)
    return complete(session, round_, making, at)


def complete(session: Session, round_: Round, making: Writing, at: datetime) -> str:
    """End the making of an example with its last attempt that was not taken back, or with none; return how it ended."""
    standing = [made.attempt_id for made in attempts_so_far(session, making) if made.stands]
    if not standing:
        end_writing(session, making, LEFT, at)
        return LEFT
    return _make_example(session, round_, making, session.get_one(Attempt, standing[-1]), at)


def _make_example(session: Session, round_: Round, making: Writing, attempt: Attempt, at: datetime) -> str:
    # The round is locked, so nobody stores the same text or takes the same number in between.
    taken = select(Example.id).where(Example.round_id == round_.id, Example.text_key == attempt.text_key)
    if session.exec(taken).first() is not None:
        end_writing(session, making, DUPLICATE, at)
        return DUPLICATE
    last = session.exec(select(func.max(Example.number)).where(Example.round_id == round_.id)).one() or 0
    assert round_.id is not None and attempt.id is not None
    example = Example(
        round_id=round_.id,
        task=round_.task,
        number=last + 1,
        text=attempt.text,
        text_key=attempt.text_key,
        cell=attempt.arm,
        prediction=attempt.prediction,
        probs=attempt.probs,
        truncated=attempt.truncated,
        model_hash=attempt.model_hash,
        precision=attempt.precision,
        back_end=attempt.back_end,
        author_id=attempt.worker_id,
        arm=attempt.arm,
        prompt_id=attempt.prompt_id,
    )
    session.add(example)
    session.flush()
    assert example.id is not None
    session.add(AuthoredExample(example_id=example.id, attempt_id=attempt.id))
    end_writing(session, making, COMPLETED, at)
    return COMPLETED
