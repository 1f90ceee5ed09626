"""The five places of an example: which of them are free, who is held back, and freeing what lapsed leases held."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Connection,
    Integer,
    and_,
    bindparam,
    delete,
    exists,
    func,
    insert,
    literal_column,
    or_,
    select,
    update,
)
from sqlmodel import col

from dynaround.labels import RESPONSES
from dynaround.tables import LEFT_OUT, Hold, Lease, Seat

_PLACES = range(1, RESPONSES + 1)
ALL_TAKEN = sum(1 << place for place in _PLACES)
"""What `taken_places` gives where no place is free."""


def taken_places(example_id: Any) -> ColumnElement[int]:
    """Return the taken places of an example as one number with a bit for each, as an expression for a query."""
    bits = func.coalesce(func.sum(literal_column("1", Integer).bitwise_lshift(col(Seat.place))), 0)
    return select(bits).where(col(Seat.example_id) == example_id).correlate_except(Seat).scalar_subquery()


def how_many(taken: ColumnElement[int]) -> ColumnElement[int]:
    """Return the number of places in what `taken_places` gave."""
    first, *others = (taken.bitwise_rshift(place).bitwise_and(1) for place in _PLACES)
    return sum(others, first)


def free_places(taken: int) -> list[int]:
    """Return the free places of an example, the first one first, from what `taken_places` gave."""
    return [place for place in _PLACES if not taken >> place & 1]


def is_held(example_id: Any) -> ColumnElement[bool]:
    """Return whether an example is kept from validators, as an expression for a query."""
    kept = or_(col(Hold.decision).is_(None), col(Hold.decision) == LEFT_OUT)
    return exists().where(col(Hold.example_id) == example_id, kept).correlate_except(Hold)


_lapsed = and_(col(Lease.round_id) == bindparam("round"), col(Lease.until) <= bindparam("now"))
_unanswered = col(Seat.response_id).is_(None)
_FREE_LAPSED = delete(Seat).where(col(Seat.page_id).in_(select(col(Lease.page_id)).where(_lapsed)), _unanswered)
_END_LAPSED = update(Lease).where(_lapsed).values(until=None)
_FREE_ON_PAGE = delete(Seat).where(
    col(Seat.page_id) == bindparam("page"), col(Seat.example_id).in_(bindparam("ids", expanding=True)), _unanswered
)
_TAKE = insert(Seat)


def free_lapsed(connection: Connection, round_id: int, now: datetime) -> None:
    """Free the unanswered places of all pages of a round whose lease has ended by now."""
    names = {"round": round_id, "now": now}
    connection.execute(_FREE_LAPSED, names)
    connection.execute(_END_LAPSED, names)


def free_on_page(connection: Connection, page_id: int, example_ids: Sequence[int]) -> None:
    """Free the unanswered places that a page holds of these examples."""
    if example_ids:
        connection.execute(_FREE_ON_PAGE, {"page": page_id, "ids": example_ids})


def take(connection: Connection, seats: Sequence[dict[str, Any]]) -> None:
    """Take places, each a row of `Seat`; the database refuses one that is taken."""
    if seats:
        connection.execute(_TAKE, seats)
