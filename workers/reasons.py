"""Why there is no page for a validator at the moment: one true sentence."""

from sqlalchemy import Connection, bindparam, case, exists, func, select
from sqlmodel import col

from dynaround.tables import BatchExample, Example, Hold
from workers.batches import IS_OPEN, WAITS, is_for
from workers.seats import is_held

SWITCHED_OFF = "Validating is switched off at the moment; come back later."
NOTHING_COLLECTED = "There is nothing to validate yet; come back later."
EVERYTHING_ANSWERED = "Everything in this round is answered; thank you."
EVERYTHING_SO_FAR = "Everything so far is answered; more may be collected, so come back later."
HELD_BY_OTHERS = "What is left is in front of other people at the moment; come back later, some of it may become free."
YOURS = "What is left is your own, or was in front of you before; others will answer it."
IN_REVIEW = "Everything else is answered; what is left is being looked at by the organisers."

_ID = col(BatchExample.example_id)
_undecided = exists().where(col(Hold.example_id) == _ID, col(Hold.decision).is_(None)).correlate_except(Hold)
_for_worker = is_for(bindparam("worker"))
_LEFT = select(
    func.count(case((~is_held(_ID), 1))).label("lacking"),
    func.count(case((~is_held(_ID) & _for_worker, 1))).label("for_worker"),
    func.count(case((_undecided, 1))).label("in_review"),
).where(IS_OPEN)
_SOME_WAIT = select(exists().where(WAITS))
_SOME_COLLECTED = select(exists().where(col(Example.round_id) == bindparam("round")))


def why_nothing(connection: Connection, round_id: int, worker_id: int, *, collecting: bool) -> str:
    """Return why a worker has no place in a round, asked when no example has a free place for them."""
    names = {"round": round_id, "worker": worker_id}
    left = connection.execute(_LEFT, names).one()
    if left.for_worker:
        return HELD_BY_OTHERS
    if left.lacking or connection.scalar(_SOME_WAIT, names):
        return YOURS
    if left.in_review:
        return IN_REVIEW
    if not connection.scalar(_SOME_COLLECTED, names):
        return NOTHING_COLLECTED
    return EVERYTHING_SO_FAR if collecting else EVERYTHING_ANSWERED
