"""Taking a worker's responses in a round out of what counts, and counting them again; they all stay."""

from datetime import datetime
from typing import Any

from sqlalchemy import bindparam, delete, exists, func, insert, literal, select, update
from sqlmodel import Session, col

from dynaround.tables import (
    REMOVED,
    Batch,
    BatchExample,
    Example,
    Lease,
    Response,
    Round,
    Seat,
    Uncounted,
    UtcTime,
    Worker,
)
from dynaround.turns import take_turn
from workers.batches import fill
from workers.seats import free_lapsed, free_places, is_held, take, taken_places

AT_ONCE = 500
"""Responses that are counted again by one statement; both back ends limit how many ids one may name."""

_WORKER: Any = bindparam("worker")
_IDS: Any = bindparam("ids", expanding=True)
_NOW: Any = bindparam("now", type_=UtcTime())
_EXAMPLES = select(col(Example.id)).where(col(Example.round_id) == bindparam("round"))
_OF_WORKER = (col(Seat.worker_id) == _WORKER, col(Seat.example_id).in_(_EXAMPLES))
_ANSWERED = select(col(Seat.example_id)).where(*_OF_WORKER, col(Seat.response_id).is_not(None))
_HOW_MANY_ANSWERED = select(func.count()).select_from(_ANSWERED.subquery())
_OPEN_BATCHES_AGAIN = (
    update(Batch)
    .where(
        col(Batch.id).in_(
            select(col(BatchExample.batch_id)).where(
                col(BatchExample.example_id).in_(_ANSWERED), ~is_held(col(BatchExample.example_id))
            )
        )
    )
    .values(filled_at=None)
)
_OPEN_EXAMPLES_AGAIN = (
    update(BatchExample).where(col(BatchExample.example_id).in_(_ANSWERED)).values(filled_at=None, reopened=True)
)
_counts = ~exists().where(col(Uncounted.response_id) == col(Response.id)).correlate_except(Uncounted)
_UNCOUNT = insert(Uncounted).from_select(
    ["response_id", "reason", "at"],
    select(col(Response.id), literal(REMOVED), _NOW).where(
        col(Response.worker_id) == _WORKER, col(Response.example_id).in_(_EXAMPLES), _counts
    ),
)
_FREE_PLACES = delete(Seat).where(*_OF_WORKER)
_END_LEASE = delete(Lease).where(col(Lease.round_id) == bindparam("round"), col(Lease.worker_id) == _WORKER)
_TAKEN_OUT: Any = (
    select(
        col(Response.id).label("response_id"),
        col(Response.example_id).label("example_id"),
        col(Response.page_id).label("page_id"),
        taken_places(col(Response.example_id)).label("taken"),
    )
    .join(Uncounted, col(Uncounted.response_id) == col(Response.id))
    .where(
        col(Uncounted.reason) == REMOVED, col(Response.worker_id) == _WORKER, col(Response.example_id).in_(_EXAMPLES)
    )
    .order_by(col(Response.id))
)
_COUNT = delete(Uncounted).where(col(Uncounted.response_id).in_(_IDS))


def remove_worker(session: Session, round_: Round, worker: Worker, at: datetime) -> int:
    """Let no response of a worker in a round count, and free all places; return how many were answered.

    Those places are served to others first. The page in front of the worker holds nothing any more. Whoever calls this
    records the `Removal`, which keeps the worker from pages and later answers from counting.
    """
    assert round_.id is not None
    session.flush()
    take_turn(session, round_.id)
    connection = session.connection()
    names = {"round": round_.id, "worker": worker.id}
    answered: int = connection.scalar(_HOW_MANY_ANSWERED, names) or 0
    connection.execute(_OPEN_BATCHES_AGAIN, names)
    connection.execute(_OPEN_EXAMPLES_AGAIN, names)
    connection.execute(_UNCOUNT, {**names, "now": at})
    connection.execute(_FREE_PLACES, names)
    connection.execute(_END_LEASE, names)
    return answered


def count_again(session: Session, round_: Round, worker: Worker, at: datetime) -> int:
    """Count those responses again that a removal of the worker took out and that find a free place; return how many."""
    assert round_.id is not None
    session.flush()
    take_turn(session, round_.id)
    connection = session.connection()
    free_lapsed(connection, round_.id, at)
    rows = connection.execute(_TAKEN_OUT, {"round": round_.id, "worker": worker.id}).all()
    seats = [
        {
            "example_id": row.example_id,
            "place": free_places(row.taken)[0],
            "worker_id": worker.id,
            "page_id": row.page_id,
            "response_id": row.response_id,
        }
        for row in rows
        if free_places(row.taken)
    ]
    take(connection, seats)
    for start in range(0, len(seats), AT_ONCE):
        some = seats[start : start + AT_ONCE]
        connection.execute(_COUNT, {"ids": [seat["response_id"] for seat in some]})
        fill(connection, [seat["example_id"] for seat in some], at)
    return len(seats)
