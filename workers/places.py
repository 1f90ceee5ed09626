"""The next page of a validator: the one in front of them, or a new one with places of examples that lack answers.

A validator is told positions and texts; what stands behind a position never leaves this package.
"""

import hashlib
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from sqlalchemy import BigInteger, Connection, bindparam, delete, exists, insert, select, update
from sqlalchemy.orm import aliased
from sqlmodel import Session, col

from dynaround.errors import IllegalMove, NotAllowed
from dynaround.tables import (
    OPEN,
    SILENT,
    Assignment,
    BatchExample,
    CheckItem,
    CheckPlace,
    Lease,
    Page,
    Removal,
    Round,
    Worker,
)
from dynaround.turns import take_turn
from workers.batches import IS_OPEN, is_for, open_batch
from workers.page_items import PageItem, items_of
from workers.reasons import SWITCHED_OFF, why_nothing
from workers.seats import ALL_TAKEN, free_lapsed, free_on_page, free_places, how_many, is_held, take, taken_places


class PageSettings(NamedTuple):
    """How a round is validated: places on a page, minutes of a lease, examples of a batch, the share of pages with a
    silent check item (of 1), and how many flags hold an example.
    """

    places: int = 10
    lease_minutes: int = 60
    batch: int = 500
    silent_share: float = 0.3
    flags_that_hold: int = 2


class PagePlace(NamedTuple):
    """What a validator sees of one place of a page: the position by which the form names it, and the sentence."""

    position: int
    sentence: str


class PageView(NamedTuple):
    """A page in front of a validator, and until when it holds its places; their order mixes everything.

    A position keeps its number for as long as the page lives, so there are gaps where places were lost.
    """

    page_id: int
    until: datetime
    places: tuple[PagePlace, ...]


class InFront(NamedTuple):
    """The page that is in front of a validator, and until when it holds its places."""

    page_id: int
    until: datetime


class Nothing(NamedTuple):
    """There is no page for this validator now, and why, as a sentence for them."""

    reason: str


_ROUND: Any = bindparam("round")
_WORKER: Any = bindparam("worker")
_PAGE: Any = bindparam("page")
_removed = exists().where(
    col(Removal.round_id) == _ROUND, col(Removal.worker_id) == _WORKER, col(Removal.reinstated_at).is_(None)
)
_other = aliased(Lease)
_lapsed = exists().where(col(_other.round_id) == _ROUND, col(_other.until) <= bindparam("now"))
_FRONT = (
    select(col(Round.state), col(Lease.page_id), col(Lease.until), _removed.label("removed"), _lapsed.label("lapsed"))
    .join(Lease, (col(Lease.round_id) == col(Round.id)) & (col(Lease.worker_id) == _WORKER), isouter=True)
    .where(col(Round.id) == _ROUND)
)
_PROLONG = update(Lease).where(col(Lease.page_id) == _PAGE).values(until=bindparam("end"))
_TAKE_AWAY = delete(Lease).where(col(Lease.page_id) == _PAGE)
_id = col(BatchExample.example_id)
# A lot is random already; times a factor of the worker's own, modulo a prime, it is another lot for every worker.
_PRIME = 2**31 - 1
_open: Any = (
    select(
        _id.label("example_id"),
        col(BatchExample.lot).label("lot"),
        col(BatchExample.reopened).label("reopened"),
        col(BatchExample.batch_id).label("batch_id"),
        taken_places(_id).label("taken"),
    )
    .where(IS_OPEN, ~is_held(_id), is_for(_WORKER))
    # Never met. Without a limit both databases would look the places up once more for every use of them below.
    .limit(2**31 - 1)
    .subquery()
    .c
)
_lot_of_worker = (_open.lot % _PRIME) * bindparam("factor", type_=BigInteger()) % _PRIME
_CANDIDATES: Any = (
    select(_open.example_id, _open.lot, _open.taken)
    .where(_open.taken < ALL_TAKEN)
    .order_by(_open.reopened.desc(), _open.batch_id, how_many(_open.taken), _lot_of_worker, _open.example_id)
    .limit(bindparam("places"))
)
_NEW_PAGE, _NEW_LEASE, _ASSIGN, _PUT_CHECK_ITEM = map(insert, (Page, Lease, Assignment, CheckPlace))
_had = exists().where(col(CheckPlace.check_item_id) == col(CheckItem.id), col(CheckPlace.worker_id) == _WORKER)
_SILENT = select(col(CheckItem.id), col(CheckItem.text_key)).where(
    col(CheckItem.round_id) == _ROUND, col(CheckItem.use) == SILENT, ~_had
)


def page_in_front(
    session: Session, round_: Round, worker: Worker, settings: PageSettings, now: datetime
) -> PageView | None:
    """Return the page in front of a worker where nothing needs to be written for it; None: ask for the next page.

    That is so when its lease has just begun (within the last sixtieth) and none of its places is lost. For reading
    transactions: whoever was just handed out a page and loads it need not wait for others who write.
    """
    connection = session.connection()
    front = _front(connection, round_, worker, now)
    if front.page_id is None or front.until is None or front.removed or front.state != OPEN:
        return None
    lease = timedelta(minutes=settings.lease_minutes)
    if front.until < now + lease - lease / 60:
        return None
    items = items_of(connection, front.page_id)
    return _view(front.page_id, front.until, items) if all(_keeps(item) for item in items) else None


def next_page(
    session: Session,
    round_: Round,
    worker: Worker,
    settings: PageSettings,
    *,
    validating: bool,
    collecting: bool,
    now: datetime,
    seed: int,
) -> PageView | Nothing:
    """Put the next page in front of a worker as `put_in_front` does, and return it, or why there is none."""
    found = put_in_front(
        session, round_, worker, settings, validating=validating, collecting=collecting, now=now, seed=seed
    )
    if isinstance(found, Nothing):
        return found
    items = [item for item in items_of(session.connection(), found.page_id) if _keeps(item)]
    return _view(found.page_id, found.until, items)


def put_in_front(
    session: Session,
    round_: Round,
    worker: Worker,
    settings: PageSettings,
    *,
    validating: bool,
    collecting: bool,
    now: datetime,
    seed: int,
) -> InFront | Nothing:
    """Begin the lease of the page in front of a worker anew, else hand out a new one, or say why there is none.

    Of the page in front, places whose example is full or held meanwhile are lost for good, and those that were given to
    others are taken again where another one is free. A new page has the places that a removal re-opened first, then
    those of the oldest batch, examples with the fewest taken places before others, equals by lot of worker and example.
    It has fewer than `settings.places` only where no other example that is in a batch can be this worker's; while
    `collecting` goes on, what is too little for a batch waits, unless there is nothing else at all. A silent check item
    takes a place of so many pages as the settings say. Without `validating` only the page in front is returned.

    Raises IllegalMove for a round that is not open, NotAllowed for a worker who was removed from it.
    """
    assert round_.id is not None and worker.id is not None
    session.flush()
    take_turn(session, round_.id)
    connection = session.connection()
    front = _front(connection, round_, worker, now)
    if front.state != OPEN:
        raise IllegalMove(f"round {round_.number} is {front.state}; only an open round is validated")
    if front.removed:
        raise NotAllowed(f"you were removed from round {round_.number}; object on its page if that is wrong")
    end = now + timedelta(minutes=settings.lease_minutes)
    if front.page_id is not None:
        connection.execute(_PROLONG, {"page": front.page_id, "end": end})
    if front.lapsed:
        free_lapsed(connection, round_.id, now)
    if front.page_id is not None:
        if any(item.is_example for item in _kept(connection, front.page_id, worker.id)):
            return InFront(front.page_id, end)
        connection.execute(_TAKE_AWAY, {"page": front.page_id})
    if not validating:
        return Nothing(SWITCHED_OFF)
    chosen = _choose(connection, round_.id, worker, settings, collecting, now, seed)
    if not chosen:
        return Nothing(why_nothing(connection, round_.id, worker.id, collecting=collecting))
    return InFront(_hand_out(connection, round_.id, worker, chosen, settings, end, seed), end)


def _front(connection: Connection, round_: Round, worker: Worker, now: datetime) -> Any:
    return connection.execute(_FRONT, {"round": round_.id, "worker": worker.id, "now": now}).one()


def _view(page_id: int, until: datetime, items: Sequence[PageItem]) -> PageView:
    return PageView(page_id, until, tuple(PagePlace(item.position, item.text) for item in items))


def _keeps(item: PageItem) -> bool:
    return item.seated and not item.held


def _kept(connection: Connection, page_id: int, worker_id: int) -> list[PageItem]:
    """Return what a page still holds or may hold again, and take or free its places accordingly."""
    items = items_of(connection, page_id)
    again = [item for item in items if not item.seated and not item.held and free_places(item.taken)]
    free_on_page(connection, page_id, [item.id for item in items if item.seated and item.held])
    take(
        connection,
        [
            {"example_id": item.id, "place": free_places(item.taken)[0], "worker_id": worker_id, "page_id": page_id}
            for item in again
        ],
    )
    return [item for item in items if _keeps(item) or item in again]


def _choose(
    connection: Connection,
    round_id: int,
    worker: Worker,
    settings: PageSettings,
    collecting: bool,
    now: datetime,
    seed: int,
) -> Sequence[Any]:
    """Return the examples of a worker's next page, opening batches as far as they are due."""
    assert worker.id is not None
    factor = 1 + _drawn(seed, "order", worker.platform_id) % (_PRIME - 1)
    names = {"round": round_id, "worker": worker.id, "factor": factor, "places": settings.places}
    while True:
        chosen = connection.execute(_CANDIDATES, names).all()
        if len(chosen) == settings.places or not open_batch(
            connection,
            round_id,
            worker.id,
            size=settings.batch,
            collecting=collecting,
            idle=not chosen,
            now=now,
            seed=seed,
        ):
            return chosen


def _hand_out(
    connection: Connection,
    round_id: int,
    worker: Worker,
    chosen: Sequence[Any],
    settings: PageSettings,
    end: datetime,
    seed: int,
) -> int:
    """Make a page of the chosen examples, of one fewer where a silent check item is due and the page full."""
    # A page of one place has none to give away.
    share = settings.silent_share if settings.places > 1 else 0
    check_item_id = _due_check_item(connection, round_id, worker, chosen, share, seed)
    if check_item_id is not None:
        chosen = chosen[: settings.places - 1]
    made: Any = connection.execute(_NEW_PAGE, {"round_id": round_id, "worker_id": worker.id})
    page_id: int = made.inserted_primary_key[0]
    who = {"page_id": page_id, "worker_id": worker.id}
    connection.execute(_NEW_LEASE, {**who, "round_id": round_id, "until": end})
    connection.execute(_ASSIGN, [{**who, "example_id": one.example_id} for one in chosen])
    take(connection, [{**who, "example_id": one.example_id, "place": free_places(one.taken)[0]} for one in chosen])
    if check_item_id is not None:
        connection.execute(_PUT_CHECK_ITEM, {**who, "check_item_id": check_item_id})
    return page_id


def _due_check_item(
    connection: Connection, round_id: int, worker: Worker, chosen: Sequence[Any], share: float, seed: int
) -> int | None:
    """Return the check item of a page, one that the worker has not met; whether one is due is drawn by the page."""
    drawn = _drawn(seed, "check", worker.platform_id, [one.lot for one in chosen])
    if drawn >= share * 2**64:
        return None
    items = connection.execute(_SILENT, {"round": round_id, "worker": worker.id}).all()
    lots = [(_drawn(seed, "item", worker.platform_id, item.text_key), item.id) for item in items]
    return min(lots)[1] if lots else None


def _drawn(*parts: object) -> int:
    """Return a number under 2**64, drawn by what is decided and by nothing that came before."""
    return int.from_bytes(hashlib.blake2b(repr(parts).encode(), digest_size=8).digest(), "big")
