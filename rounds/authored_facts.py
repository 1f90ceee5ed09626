"""What became of an author's examples: claimed fools, and which of the claims other people bear out."""

from collections import defaultdict
from collections.abc import Sequence
from datetime import datetime
from typing import Any, NamedTuple

from sqlalchemy import bindparam, func, select
from sqlmodel import Session, col

from dynaround.database import columns
from dynaround.labels import RESPONSES
from dynaround.tables import CLOSED, RELEASED, Attempt, AuthoredExample, Response, Retention, Round, Uncounted
from dynaround.tasks import get_task


class Outcome(NamedTuple):
    """One example of an author: when it was written, whether it is a claimed fool, and whether people bear that out.

    `verified`: gold equals the target label and the prediction differs from it; None while responses are missing.
    """

    example_id: int
    at: datetime
    claimed: bool
    verified: bool | None
    gold: str | None


class AuthoredCounts(NamedTuple):
    """The counts of one author in one round; `claimed` = `verified` + `refuted` + `open`."""

    attempts: int
    examples: int
    claimed: int
    verified: int
    refuted: int
    open: int


_mine: Any = (col(Attempt.round_id) == bindparam("round"), col(Attempt.worker_id) == bindparam("worker"))
_WRITTEN = (
    select(col(AuthoredExample.example_id), col(Attempt.at), col(Attempt.prediction), col(Attempt.target_label))
    .join(Attempt, col(Attempt.id) == col(AuthoredExample.attempt_id))
    .where(*_mine)
    .order_by(col(Attempt.id).desc())
)
_own = (
    select(col(AuthoredExample.example_id))
    .join(Attempt, col(Attempt.id) == col(AuthoredExample.attempt_id))
    .where(*_mine)
)
_COUNTED = (
    select(col(Response.example_id), col(Response.label))
    .join(Uncounted, col(Uncounted.response_id) == col(Response.id), isouter=True)
    .where(col(Uncounted.response_id).is_(None), col(Response.example_id).in_(_own))
)
_RETAINED = _COUNTED.join(Retention, col(Retention.response_id) == col(Response.id))
_ATTEMPTS = select(func.count()).select_from(Attempt).where(*_mine)


def outcomes_of(session: Session, round_: Round, worker_id: int) -> list[Outcome]:
    """Return the outcomes of an author's examples, the newest first.

    Until the round is closed an example is decided by exactly five counted responses, afterwards by the retained ones.
    """
    names = {"round": round_.id, "worker": worker_id}
    written = columns(session, _WRITTEN, **names).all()
    answers = _RETAINED if round_.state in (CLOSED, RELEASED) else _COUNTED
    labels: dict[int, list[str]] = defaultdict(list)
    for example_id, label in columns(session, answers, **names):
        labels[example_id].append(label)
    task = get_task(round_.task)
    found = []
    for example_id, at, prediction, target_label in written:
        claimed = prediction != target_label
        decided = len(labels[example_id]) == RESPONSES
        gold = task.gold(labels[example_id]).label if decided else None
        verified = (gold == target_label and claimed) if decided else None
        found.append(Outcome(example_id, at, claimed, verified, gold))
    return found


def authored_counts(session: Session, round_: Round, worker_id: int) -> AuthoredCounts:
    """Count what an author did in a round and what became of it."""
    return counts_of(session, round_, worker_id, outcomes_of(session, round_, worker_id))


def counts_of(session: Session, round_: Round, worker_id: int, outcomes: Sequence[Outcome]) -> AuthoredCounts:
    """Count what an author did in a round, whose examples became these `outcomes`."""
    attempts: int = columns(session, _ATTEMPTS, round=round_.id, worker=worker_id).scalar_one()
    claims = [outcome.verified for outcome in outcomes if outcome.claimed]
    return AuthoredCounts(
        attempts=attempts,
        examples=len(outcomes),
        claimed=len(claims),
        verified=claims.count(True),
        refuted=claims.count(False),
        open=claims.count(None),
    )
