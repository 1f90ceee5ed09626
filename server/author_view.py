"""What the pages of authors show: the example in the making, the one before it, what is left, own counts and pay."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

from sqlalchemy import bindparam
from sqlmodel import Session, col, select

from dynaround.tables import (
    CONFIRMED,
    OPEN,
    TAKEN_BACK,
    Attempt,
    AttemptDecision,
    AuthorSession,
    Round,
    Writing,
)
from dynaround.task import Task
from dynaround.tasks import get_task
from rounds.authored_facts import AuthoredCounts, Outcome, authored_counts, counts_of
from rounds.decisions import SoFar, Tally, tally_of
from rounds.lifecycle import AUTHORING, is_on
from rounds.plan import AuthoringPlan, PayPlan, RoundPlan
from rounds.sittings import ShownPrompt, shown_prompt
from workers.pay import pay_of, shown

_ATTEMPTS = (
    select(Attempt, AttemptDecision.decision)
    .join(AttemptDecision, col(AttemptDecision.attempt_id) == col(Attempt.id), isouter=True)
    .where(col(Attempt.writing_id) == bindparam("writing"))
    .order_by(col(Attempt.number).desc())
)
_LAST_ENDED = (
    select(Writing)
    .where(col(Writing.session_id) == bindparam("sitting"), col(Writing.ended_at).is_not(None))
    .order_by(col(Writing.number).desc())
    .limit(1)
)


class ShownAttempt(NamedTuple):
    """One attempt with its probabilities in the order of the task's labels, and what its author said of it."""

    attempt: Attempt
    probs: Sequence[tuple[str, float]]
    decision: str | None

    @property
    def waiting(self) -> bool:
        """Whether it fooled the model and its author has not said anything of it."""
        return self.attempt.fooled and self.decision is None

    @property
    def so_far(self) -> SoFar:
        """It as one of those that are counted."""
        attempt = self.attempt
        assert attempt.id is not None
        return SoFar(attempt.id, attempt.number, attempt.text_key, attempt.fooled, self.decision)

    @property
    def taken_back(self) -> bool:
        """Whether its author took it back."""
        return self.decision == TAKEN_BACK


class Finished(NamedTuple):
    """How the example before ended; `last` is its last attempt that was not taken back, None where there is none."""

    number: int
    target_label: str
    outcome: str
    last: ShownAttempt | None
    used_up: bool

    @property
    def confirmed(self) -> bool:
        """Whether its author said that other people would agree."""
        return self.last is not None and self.last.decision == CONFIRMED


class Rates(NamedTuple):
    """What is paid for an example and for a verified fool, as people read it."""

    example: str
    bonus: str


class OwnWork(NamedTuple):
    """What an author has done in a round and what it pays, as people read it.

    `bonus_open` is what claims that are still being read may bring; None where there is none.
    """

    counts: AuthoredCounts
    rates: Rates
    earned: str
    bonus_open: str | None


class AuthorView(NamedTuple):
    """Everything that the writing page tells; nothing of other authors and nothing of responses but own counts."""

    round: Round
    task: Task
    plan: AuthoringPlan
    switched_off: bool
    writing: Writing
    prompt: ShownPrompt | None
    attempts: Sequence[ShownAttempt]
    finished: Finished | None
    tally: Tally
    own: OwnWork

    @property
    def prompts_seen(self) -> int:
        """How many prompts were shown for this example."""
        return self.prompt.seen if self.prompt is not None else 0

    @property
    def waiting(self) -> ShownAttempt | None:
        """The attempt that waits for its author's word."""
        return next((attempt for attempt in self.attempts if attempt.waiting), None)

    @property
    def last(self) -> ShownAttempt | None:
        """The newest attempt, which the page tells the result of."""
        return self.attempts[0] if self.attempts else None


def author_view(
    session: Session, round_: Round, writing: Writing, outcomes: Sequence[Outcome], now: datetime
) -> AuthorView:
    """Read all that the writing page shows of an example in the making; `outcomes` are those of its author."""
    plan = RoundPlan.model_validate(round_.plan)
    assert plan.authoring is not None
    task = get_task(round_.task)
    attempts = shown_attempts(session, task, writing)
    return AuthorView(
        round=round_,
        task=task,
        plan=plan.authoring,
        switched_off=not is_on(session, round_, AUTHORING),
        writing=writing,
        prompt=shown_prompt(session, writing),
        attempts=attempts,
        # Only until the next one has a result of its own.
        finished=None if attempts else finished_in(session, task, plan.authoring, writing.session_id),
        tally=tally_of(session, round_, writing, [shown.so_far for shown in attempts], now),
        own=_own_work(round_, counts_of(session, round_, writing.worker_id, outcomes)),
    )


def shown_attempts(session: Session, task: Task, writing: Writing) -> list[ShownAttempt]:
    """Return the attempts for an example in the making, the newest first."""
    rows = session.exec(_ATTEMPTS, params={"writing": writing.id})
    return [ShownAttempt(attempt, in_order(task, attempt.probs), decision) for attempt, decision in rows]


def in_order(task: Task, probs: Mapping[str, float]) -> list[tuple[str, float]]:
    """Return probabilities in the order of the task's labels, so that each bar keeps its place."""
    return [(label, probs[label]) for label in task.model_labels if label in probs]


def finished_in(session: Session, task: Task, plan: AuthoringPlan, sitting_id: int | None) -> Finished | None:
    """Return how the last example of a sitting ended; None where none has."""
    writing = session.exec(_LAST_ENDED, params={"sitting": sitting_id}).first()
    if writing is None or writing.outcome is None:
        return None
    standing = [attempt for attempt in shown_attempts(session, task, writing) if not attempt.taken_back]
    last = standing[0] if standing else None
    return Finished(writing.number, writing.target_label, writing.outcome, last, len(standing) >= plan.attempts)


def last_sitting(session: Session, round_: Round, worker_id: int) -> int | None:
    """Return the id of an author's last sitting in a round."""
    return session.exec(
        select(AuthorSession.id)
        .where(AuthorSession.round_id == round_.id, AuthorSession.worker_id == worker_id)
        .order_by(col(AuthorSession.id).desc())
        .limit(1)
    ).first()


def rates_of(pay: PayPlan) -> Rates:
    """Return what a plan pays, as people read it."""
    return Rates(shown(pay.example, pay.currency), shown(pay.bonus, pay.currency))


def own_work(session: Session, round_: Round, worker_id: int) -> OwnWork:
    """Count what an author did in a round, and what it pays so far and may still pay."""
    return _own_work(round_, authored_counts(session, round_, worker_id))


def _own_work(round_: Round, counts: AuthoredCounts) -> OwnWork:
    rates = RoundPlan.model_validate(round_.plan).pay
    pay = pay_of(rates.model_dump(), examples=counts.examples, verified=counts.verified, pages=0)
    # After the round has closed nothing more is decided.
    undecided = counts.open if round_.state == OPEN else 0
    may_come = shown(rates.bonus * undecided, rates.currency) if undecided and rates.bonus else None
    return OwnWork(counts, rates_of(rates), shown(pay.total, rates.currency), may_come)
