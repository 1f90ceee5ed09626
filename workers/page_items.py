"""What stands on a page: examples and perhaps a check item, in one order that tells neither from the other."""

import hashlib
from typing import Any, NamedTuple

from sqlalchemy import Connection, and_, bindparam, false, literal, select, true, union_all
from sqlalchemy.orm import aliased
from sqlmodel import col

from dynaround.tables import Assignment, CheckItem, CheckPlace, Example, Seat
from workers.seats import is_held, taken_places


class PageItem(NamedTuple):
    """One item of a page, at the position by which forms name it (from 1; it never changes).

    `is_example`, else it is a check item; `id` is that of the one or the other. Of an example, `seated` says that the
    page has one of its places, `taken` which places are taken (as `free_places` reads it), `held` that it is kept from
    validators.
    """

    position: int
    is_example: bool
    id: int
    text: str
    seated: bool
    taken: int
    held: bool


_PAGE: Any = bindparam("page")
_ID = col(Assignment.example_id)
_mine = aliased(Seat)
_EXAMPLES: Any = (
    select(
        true().label("is_example"),
        _ID.label("id"),
        col(Example.text).label("text"),
        col(_mine.place).is_not(None).label("seated"),
        taken_places(_ID).label("taken"),
        is_held(_ID).label("held"),
    )
    .join(Example, col(Example.id) == _ID)
    .join(_mine, and_(col(_mine.example_id) == _ID, col(_mine.page_id) == col(Assignment.page_id)), isouter=True)
    .where(col(Assignment.page_id) == _PAGE)
)
_CHECK_ITEMS = (
    select(false(), col(CheckItem.id), col(CheckItem.text), true(), literal(0), false())
    .join(CheckPlace, col(CheckPlace.check_item_id) == col(CheckItem.id))
    .where(col(CheckPlace.page_id) == _PAGE)
)
_ITEMS = union_all(_EXAMPLES, _CHECK_ITEMS)


def items_of(connection: Connection, page_id: int) -> list[PageItem]:
    """Return all that ever stood on a page, by position."""
    rows = connection.execute(_ITEMS, {"page": page_id}).all()
    in_order = sorted(rows, key=lambda row: _lot(page_id, row.is_example, row.id))
    return [PageItem(position, *row) for position, row in enumerate(in_order, 1)]


def _lot(page_id: int, is_example: bool, item_id: int) -> bytes:
    return hashlib.blake2b(repr((page_id, bool(is_example), item_id)).encode(), digest_size=8).digest()
