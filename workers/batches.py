"""Batches: examples wait in a seeded order, are served some hundred at a time, and a batch is filled when all are.

What a page asks here looks at what waits or is open, never at what is done.
"""

import hashlib
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, Connection, and_, bindparam, exists, func, insert, or_, select, update
from sqlalchemy.orm import aliased
from sqlmodel import col

from dynaround.labels import RESPONSES
from dynaround.tables import Assignment, Batch, BatchExample, Example, Response, Seat, Uncounted
from workers.seats import free_places, is_held, take, taken_places

_ROUND: Any = bindparam("round")
_IDS: Any = bindparam("ids", expanding=True)
_ID = col(BatchExample.example_id)

WAITS = and_(col(BatchExample.round_id) == _ROUND, col(BatchExample.batch_id).is_(None), ~is_held(_ID))
"""Whether an example of a round waits for a batch, as an expression for a query."""
IS_OPEN = and_(
    col(BatchExample.round_id) == _ROUND, col(BatchExample.batch_id).is_not(None), col(BatchExample.filled_at).is_(None)
)
"""Whether an example of a round is in a batch and lacks answers; it may be held."""


def is_for(worker_id: Any) -> ColumnElement[bool]:
    """Return whether a worker may be given an example: neither wrote it nor ever had it, as an expression."""
    had = exists().where(col(Assignment.example_id) == _ID, col(Assignment.worker_id) == worker_id)
    own = col(BatchExample.author_id)
    return and_(or_(own.is_(None), own != worker_id), ~had.correlate_except(Assignment))


# Examples are numbered one by one under the round's lock, so up to the newest that is known all are; it is found from
# the end of an index.
_NEWEST_KNOWN = (
    select(col(Example.number))
    .join(BatchExample, _ID == col(Example.id))
    .where(col(Example.round_id) == _ROUND)
    .order_by(col(Example.number).desc())
    .limit(1)
    .scalar_subquery()
)
_UNKNOWN = select(col(Example.id), col(Example.text_key), col(Example.author_id)).where(
    col(Example.round_id) == _ROUND, col(Example.number) > func.coalesce(_NEWEST_KNOWN, 0)
)
_HOW_MANY_WAIT = select(func.count()).select_from(select(_ID).where(WAITS).limit(bindparam("size")).subquery())
_SOME_WAIT_FOR = select(_ID).where(WAITS, is_for(bindparam("worker"))).limit(1)
_FIRST_WAITING = select(_ID).where(WAITS).order_by(col(BatchExample.lot), _ID).limit(bindparam("size"))
_LAST_NUMBER = select(func.coalesce(func.max(col(Batch.number)), 0)).where(col(Batch.round_id) == _ROUND)
_JOIN = update(BatchExample).where(_ID.in_(_FIRST_WAITING)).values(batch_id=bindparam("batch"))

_unseated = ~exists().where(col(Seat.response_id) == col(Response.id)).correlate_except(Seat)
_counts = ~exists().where(col(Uncounted.response_id) == col(Response.id)).correlate_except(Uncounted)
_UNSEATED = (
    select(
        col(Response.id), col(Response.example_id), col(Response.worker_id), col(Response.page_id),
        taken_places(col(Response.example_id)).label("taken"),
    )
    .join(BatchExample, _ID == col(Response.example_id))
    .where(col(BatchExample.batch_id) == bindparam("batch"), _unseated, _counts)
    .order_by(col(Response.id))
)  # fmt: skip

_answered = select(func.count(col(Seat.response_id))).where(col(Seat.example_id) == _ID).correlate_except(Seat)
_FILL = (
    update(BatchExample)
    .where(_ID.in_(_IDS), col(BatchExample.filled_at).is_(None), _answered.scalar_subquery() == RESPONSES)
    .values(filled_at=bindparam("now"), reopened=False)
)
_other = aliased(BatchExample)
_lacks_answers = exists().where(
    col(_other.batch_id) == col(Batch.id), col(_other.filled_at).is_(None), ~is_held(col(_other.example_id))
)
_FILLED: Any = select(col(Batch.id)).where(
    col(Batch.filled_at).is_(None),
    col(Batch.id).in_(select(col(BatchExample.batch_id)).where(_ID.in_(_IDS))),
    ~_lacks_answers.correlate(Batch),
)
_FILL_BATCHES = update(Batch).where(col(Batch.id).in_(_IDS)).values(filled_at=bindparam("now"))


def open_batch(
    connection: Connection,
    round_id: int,
    worker_id: int,
    *,
    size: int,
    collecting: bool,
    idle: bool,
    now: datetime,
    seed: int,
) -> bool:
    """Open the next batch of a round where one is due, and say whether it was.

    It is due when `size` examples wait, or some do and collecting is over, or the worker would otherwise be `idle` and
    may have one of them. Its members are those of the lowest lots, whatever the order in which they came.
    """
    _let_wait(connection, round_id, seed)
    names = {"round": round_id, "size": size, "worker": worker_id}
    waiting = connection.scalar(_HOW_MANY_WAIT, names)
    full_or_last = waiting == size or waiting and not collecting
    if not full_or_last and not (waiting and idle and connection.scalar(_SOME_WAIT_FOR, names)):
        return False
    number = connection.execute(_LAST_NUMBER, names).scalar_one() + 1
    made: Any = connection.execute(insert(Batch).values(round_id=round_id, number=number, opened_at=now))
    batch_id: int = made.inserted_primary_key[0]
    connection.execute(_JOIN, {**names, "batch": batch_id})
    _seat_imported(connection, batch_id, now)
    return True


def fill(connection: Connection, example_ids: Sequence[int], now: datetime) -> tuple[int, ...]:
    """Mark those of the examples that five responses answer as filled, and return the batches that are full by it."""
    connection.execute(_FILL, {"ids": example_ids, "now": now})
    return fill_batches(connection, example_ids, now)


def fill_batches(connection: Connection, example_ids: Sequence[int], now: datetime) -> tuple[int, ...]:
    """Mark those batches of the examples as filled in which no example lacks answers, but held ones; return them."""
    filled = tuple(sorted(connection.scalars(_FILLED, {"ids": example_ids})))
    if filled:
        connection.execute(_FILL_BATCHES, {"ids": filled, "now": now})
    return filled


def _let_wait(connection: Connection, round_id: int, seed: int) -> None:
    """Draw the lots of the examples that came since the last time; equal texts of an import share one."""
    new = [
        {"example_id": example_id, "round_id": round_id, "lot": _lot(seed, key), "author_id": author, "reopened": False}
        for example_id, key, author in connection.execute(_UNKNOWN, {"round": round_id})
    ]
    if new:
        connection.execute(insert(BatchExample), new)


def _lot(seed: int, text_key: str) -> int:
    # By the text and not by the number, which tells who came first. 63 bits fit the column.
    drawn = hashlib.blake2b(repr((seed, "batch", text_key)).encode(), digest_size=8).digest()
    return int.from_bytes(drawn, "big") >> 1


def _seat_imported(connection: Connection, batch_id: int, now: datetime) -> None:
    """Give responses that were imported before the batch opened the places that they answer."""
    seats: dict[int, list[dict[str, Any]]] = {}
    for response_id, example_id, worker_id, page_id, taken in connection.execute(_UNSEATED, {"batch": batch_id}):
        mine = seats.setdefault(example_id, [])
        free = free_places(taken)[len(mine) : len(mine) + 1]
        mine += [
            {
                "example_id": example_id,
                "place": place,
                "worker_id": worker_id,
                "page_id": page_id,
                "response_id": response_id,
            }
            for place in free
        ]
    for example_id, rows in seats.items():
        take(connection, rows)
        fill(connection, [example_id], now)
