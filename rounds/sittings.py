"""Sittings of authors: the arm of each, the example in the making, its target label and its prompt."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from random import Random
from typing import Any, NamedTuple

from sqlalchemy import bindparam, exists, update
from sqlalchemy import select as select_columns
from sqlmodel import Session, col, func, select

from dynaround.database import columns
from dynaround.errors import IllegalMove, NotFound
from dynaround.tables import (
    LEFT,
    NO_PROMPT_ARM,
    OPEN,
    PROMPT_ARM,
    AuthorSession,
    Prompt,
    PromptShowing,
    Round,
    Worker,
    Writing,
)
from dynaround.tasks import get_task
from dynaround.text_rules import storable
from rounds.lifecycle import AUTHORING, is_on
from rounds.plan import AuthoringPlan, RoundPlan

# Validators' pages, which point to the round, need not wait for a lock that leaves its key alone.
_LOCKED_ROUND = select(Round).where(col(Round.number) == bindparam("number")).with_for_update(key_share=True)
_IN_USE = (
    select(AuthorSession, Writing)
    .join(Writing, col(Writing.session_id) == col(AuthorSession.id))
    .where(
        col(AuthorSession.round_id) == bindparam("round"),
        col(AuthorSession.worker_id) == bindparam("worker"),
        col(AuthorSession.ended_at).is_(None),
        col(Writing.ended_at).is_(None),
    )
)
_TOUCH = update(AuthorSession).where(col(AuthorSession.id) == bindparam("sitting")).values(last_at=bindparam("at"))
_SHOWN_PROMPT: Any = select_columns(
    col(Prompt.text),
    select_columns(func.count())
    .select_from(PromptShowing)
    .where(col(PromptShowing.writing_id) == bindparam("writing"))
    .scalar_subquery(),
).where(col(Prompt.id) == bindparam("prompt"))


class ShownPrompt(NamedTuple):
    """The prompt of an example in the making, and how many were shown for it, this one counted."""

    text: str
    seen: int


def lock_authored_round(session: Session, number: int) -> Round:
    """Return an open round that people write in; nobody closes it, or writes beside, before the transaction ends.

    What the others in the transaction change hangs together only by this lock, so it comes first. Raises NotFound or
    IllegalMove.
    """
    round_ = session.exec(_LOCKED_ROUND, params={"number": number}).one_or_none()
    if round_ is None:
        raise NotFound(f"there is no round {number}")
    if round_.state != OPEN:
        raise IllegalMove(f"round {number} is {round_.state}; only an open round is written for")
    authoring_of(round_)
    return round_


def authoring_of(round_: Round) -> AuthoringPlan:
    """Return how people write in a round; raise IllegalMove for a round in which they do not."""
    plan = RoundPlan.model_validate(round_.plan).authoring
    if plan is None:
        raise IllegalMove(
            f"round {round_.number} is not written for by people; it was opened without prompts or authors"
        )
    return plan


def require_writing_on(session: Session, round_: Round) -> None:
    """Raise IllegalMove while the launcher has switched writing off; what is written already may still be decided."""
    if not is_on(session, round_, AUTHORING):
        raise IllegalMove(f"writing in round {round_.number} is switched off for now; come back later")


def open_sitting(session: Session, round_: Round, worker: Worker, now: datetime) -> AuthorSession | None:
    """Return the worker's sitting in a round; None where there is none, and for one that was left alone too long."""
    sitting = _unended_sitting(session, round_, worker)
    return None if sitting is None or _is_idle(round_, sitting, now) else sitting


def _unended_sitting(session: Session, round_: Round, worker: Worker) -> AuthorSession | None:
    return session.exec(
        select(AuthorSession).where(
            AuthorSession.round_id == round_.id,
            AuthorSession.worker_id == worker.id,
            col(AuthorSession.ended_at).is_(None),
        )
    ).one_or_none()


def _is_idle(round_: Round, sitting: AuthorSession, now: datetime) -> bool:
    return now - sitting.last_at > timedelta(minutes=authoring_of(round_).idle_minutes)


def begin_sitting(session: Session, round_: Round, worker: Worker, random: Random, now: datetime) -> AuthorSession:
    """Return the worker's sitting, a new one with an arm of its own where there is none; an idle one is ended first.

    Nothing else ends an idle one: a text that is sent before, from a page that lay open longer, is still taken. The
    arm is the one with fewer sittings in the round, a fair coin between equals; without a prompt that this worker may
    still be shown it is the No Prompt arm. The round must be locked (`lock_authored_round`). Raises IllegalMove where a
    new one is due while writing is switched off.
    """
    known = _unended_sitting(session, round_, worker)
    if known is not None and not _is_idle(round_, known, now):
        return known
    if known is not None:
        end_sitting(session, known, now)
    require_writing_on(session, round_)
    assert round_.id is not None and worker.id is not None
    arm = _arm(session, round_, random) if _prompts_left(session, round_, worker) else NO_PROMPT_ARM
    sitting = AuthorSession(round_id=round_.id, worker_id=worker.id, arm=arm, started_at=now, last_at=now)
    session.add(sitting)
    session.flush()
    return sitting


def _arm(session: Session, round_: Round, random: Random) -> str:
    sittings = dict(
        iter(
            session.exec(
                select(AuthorSession.arm, func.count())
                .where(AuthorSession.round_id == round_.id)
                .group_by(col(AuthorSession.arm))
            )
        )
    )
    return _one_of_the_fewest((PROMPT_ARM, NO_PROMPT_ARM), sittings, random)


def _one_of_the_fewest(words: Sequence[str], counts: Mapping[str, int], random: Random) -> str:
    fewest = min(counts.get(word, 0) for word in words)
    return random.choice([word for word in words if counts.get(word, 0) == fewest])


def end_sitting(session: Session, sitting: AuthorSession, now: datetime) -> None:
    """End a sitting; an example in the making becomes none, its attempts stay."""
    writing = open_writing(session, sitting)
    if writing is not None:
        end_writing(session, writing, LEFT, now)
    sitting.ended_at = now
    session.add(sitting)
    session.flush()


def end_sittings(session: Session, worker_id: int, now: datetime) -> None:
    """End every sitting of a worker in an open round, as logging out does."""
    numbers = session.exec(
        select(Round.number)
        .join(AuthorSession, col(AuthorSession.round_id) == col(Round.id))
        .where(AuthorSession.worker_id == worker_id, col(AuthorSession.ended_at).is_(None), Round.state == OPEN)
    ).all()
    for number in sorted(numbers):
        round_ = lock_authored_round(session, number)
        sitting = session.exec(
            select(AuthorSession).where(
                AuthorSession.round_id == round_.id,
                AuthorSession.worker_id == worker_id,
                col(AuthorSession.ended_at).is_(None),
            )
        ).one_or_none()
        if sitting is not None:
            end_sitting(session, sitting, now)


def end_writing(session: Session, writing: Writing, outcome: str, now: datetime) -> None:
    """End the making of an example."""
    writing.outcome, writing.ended_at, writing.draft = outcome, now, ""
    session.add(writing)
    session.flush()


def touch(session: Session, making: Writing, at: datetime) -> None:
    """Note that the author of an example in the making is at work, so that the sitting does not end as idle."""
    columns(session, _TOUCH, sitting=making.session_id, at=at)


def keep_draft(session: Session, writing: Writing, text: str) -> None:
    """Keep what an author typed for an example in the making, whatever it is."""
    writing.draft = storable(text)
    session.add(writing)
    session.flush()


def current_writing(session: Session, round_: Round, worker: Worker, random: Random, now: datetime) -> Writing:
    """Return the example that a worker is making, a new one where there is none; the round must be locked.

    The target label of a new one is drawn among those this author had least often in the round. In the Prompt arm it
    starts from a prompt; where none is left, that sitting ends and one in the No Prompt arm begins. Raises IllegalMove
    where a new one is due while writing is switched off.
    """
    sitting = begin_sitting(session, round_, worker, random, now)
    sitting.last_at = now
    session.add(sitting)
    known = open_writing(session, sitting)
    if known is not None:
        return known
    require_writing_on(session, round_)
    if sitting.arm == PROMPT_ARM and not _prompts_left(session, round_, worker):
        end_sitting(session, sitting, now)
        return current_writing(session, round_, worker, random, now)
    last = session.exec(select(func.max(Writing.number)).where(Writing.session_id == sitting.id)).one() or 0
    assert sitting.id is not None and worker.id is not None
    writing = Writing(
        session_id=sitting.id,
        worker_id=worker.id,
        task=round_.task,
        number=last + 1,
        target_label=_target_label(session, round_, worker, random),
        started_at=now,
    )
    session.add(writing)
    session.flush()
    if sitting.arm == PROMPT_ARM:
        show_prompt(session, round_, worker, writing, random, now)
    return writing


def open_writing(session: Session, sitting: AuthorSession) -> Writing | None:
    """Return the example in the making of a sitting, None where there is none."""
    return session.exec(
        select(Writing).where(Writing.session_id == sitting.id, col(Writing.ended_at).is_(None))
    ).one_or_none()


def writing_in_use(session: Session, round_: Round, worker_id: int, since: datetime) -> Writing | None:
    """Return a worker's example in the making; None where there is none, or was not noted as at work `since` then."""
    found = session.exec(_IN_USE, params={"round": round_.id, "worker": worker_id}).one_or_none()
    if found is None:
        return None
    sitting, writing = found
    return None if sitting.last_at <= since else writing


def _target_label(session: Session, round_: Round, worker: Worker, random: Random) -> str:
    had = dict(
        iter(
            session.exec(
                select(Writing.target_label, func.count())
                .join(AuthorSession, col(AuthorSession.id) == col(Writing.session_id))
                .where(AuthorSession.round_id == round_.id, Writing.worker_id == worker.id)
                .group_by(col(Writing.target_label))
            )
        )
    )
    return _one_of_the_fewest(get_task(round_.task).model_labels, had, random)


def show_prompt(
    session: Session, round_: Round, worker: Worker, writing: Writing, random: Random, now: datetime
) -> Prompt:
    """Put a prompt that was shown least often in front of an author; the draft begins anew from it.

    Each prompt is shown to so many authors as the plan says, and to one author once. The round must be locked. Raises
    IllegalMove where none is left for this author, and in the No Prompt arm.
    """
    if session.get_one(AuthorSession, writing.session_id).arm != PROMPT_ARM:
        raise IllegalMove("this sitting is without prompts; write from nothing, or end your sitting")
    drawn = _least_shown(session, round_, worker, random)
    if drawn is None:
        raise IllegalMove("no other prompt is left for you in this round; go on with this one, or end your sitting")
    prompt = session.get_one(Prompt, drawn)
    before = session.exec(
        select(func.count()).select_from(PromptShowing).where(PromptShowing.prompt_id == prompt.id)
    ).one()
    assert writing.id is not None and worker.id is not None
    session.add(PromptShowing(prompt_id=drawn, showing=before + 1, worker_id=worker.id, writing_id=writing.id, at=now))
    writing.prompt_id = drawn
    keep_draft(session, writing, prompt.text)
    return prompt


def _least_shown(session: Session, round_: Round, worker: Worker, random: Random) -> int | None:
    """Draw one of the prompts that an author may be shown and that were shown least often."""
    for times in range(authoring_of(round_).authors_per_prompt):
        left = _shown_at_most(round_, worker, times)
        number = session.exec(select(func.count()).select_from(left.subquery())).one()
        if number:
            # In the order of an index that the round's prompts have anyway: sorting them would take longest.
            ordered = left.order_by(*map(col, (Prompt.review_id, Prompt.span_start, Prompt.span_end, Prompt.id)))
            drawn: int = session.exec(ordered.offset(random.randrange(number)).limit(1)).one()
            return drawn
    return None


def _prompts_left(session: Session, round_: Round, worker: Worker) -> bool:
    most = authoring_of(round_).authors_per_prompt - 1
    return session.exec(_shown_at_most(round_, worker, most).limit(1)).first() is not None


def _shown_at_most(round_: Round, worker: Worker, times: int) -> Any:
    """Select the prompts of a round that were shown at most so many times, and never to this author."""
    # Showings count from 1 without a gap, so one look into the key tells of each prompt.
    oftener = exists().where(col(PromptShowing.prompt_id) == col(Prompt.id), col(PromptShowing.showing) == times + 1)
    mine = exists().where(col(PromptShowing.prompt_id) == col(Prompt.id), col(PromptShowing.worker_id) == worker.id)
    return select(Prompt.id).where(Prompt.round_id == round_.id, ~oftener, ~mine)


def shown_prompt(session: Session, writing: Writing) -> ShownPrompt | None:
    """Return the prompt that an example in the making starts from; None where it is written from nothing."""
    if writing.prompt_id is None:
        return None
    return ShownPrompt._make(columns(session, _SHOWN_PROMPT, prompt=writing.prompt_id, writing=writing.id).one())
