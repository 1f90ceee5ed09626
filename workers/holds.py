"""Examples kept from validators: held by flags of people who cannot judge them, until the launcher decides.

The flags of a removed worker hold nothing.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, bindparam, delete, exists, func, insert, select, update
from sqlalchemy.orm import aliased
from sqlmodel import Session, col
from sqlmodel import select as select_rows

from dynaround.errors import BadInput, IllegalMove, NotFound
from dynaround.events import record
from dynaround.tables import (
    LEFT_OUT,
    OPEN,
    RELEASED_HOLD,
    Batch,
    BatchExample,
    Example,
    Flag,
    Hold,
    Page,
    Removal,
    Round,
)
from dynaround.turns import take_turn
from workers.batches import fill_batches

HOLD_DECIDED = "hold decided"

_IDS: Any = bindparam("ids", expanding=True)
_known = exists().where(col(Hold.example_id) == col(Flag.example_id)).correlate_except(Hold)
_by_removed = (
    exists()
    .where(
        col(Page.id) == col(Flag.page_id),
        col(Removal.round_id) == col(Page.round_id),
        col(Removal.worker_id) == col(Flag.worker_id),
        col(Removal.reinstated_at).is_(None),
    )
    .correlate_except(Page, Removal)
)
_OFTEN_FLAGGED = (
    select(col(Flag.example_id))
    .where(col(Flag.example_id).in_(_IDS), ~_known, ~_by_removed)
    .group_by(col(Flag.example_id))
    .having(func.count() >= bindparam("flags"))
)
_lacks_answers = (
    select(col(BatchExample.batch_id))
    .where(col(BatchExample.example_id) == bindparam("example"), col(BatchExample.filled_at).is_(None))
    .scalar_subquery()
)
_FLAGGED_BY = (
    select(col(Flag.example_id))
    .join(Page, col(Page.id) == col(Flag.page_id))
    .where(col(Page.round_id) == bindparam("round"), col(Flag.worker_id) == bindparam("worker"))
)
_hold = aliased(Hold)
_flags_that_stand = (
    select(func.count())
    .select_from(Flag)
    .where(col(Flag.example_id) == col(_hold.example_id), ~_by_removed)
    .correlate(_hold)
)
_HELD_NO_MORE = select(col(_hold.example_id)).where(
    col(_hold.decision).is_(None),
    col(_hold.example_id).in_(_FLAGGED_BY),
    _flags_that_stand.scalar_subquery() < bindparam("flags"),
)
_OPEN_BATCHES_OF_THESE = (
    update(Batch)
    .where(
        col(Batch.id).in_(
            select(col(BatchExample.batch_id)).where(
                col(BatchExample.filled_at).is_(None), col(BatchExample.example_id).in_(_HELD_NO_MORE)
            )
        )
    )
    .values(filled_at=None)
)
_LET_GO = delete(Hold).where(col(Hold.example_id).in_(_HELD_NO_MORE))
_OPEN_AGAIN = update(Batch).where(col(Batch.id) == _lacks_answers).values(filled_at=None)


def hold_flagged(connection: Connection, example_ids: Sequence[int], flags: int, now: datetime) -> None:
    """Hold those of the examples that have so many flags; one that the launcher has released is not held again."""
    held = connection.scalars(_OFTEN_FLAGGED, {"ids": example_ids, "flags": flags}).all()
    if held:
        connection.execute(insert(Hold), [{"example_id": example_id, "held_at": now} for example_id in held])


def let_go(connection: Connection, round_id: int, worker_id: int, flags: int) -> int:
    """End the holds of a removed worker's flags; return how many.

    Those end on which nothing is decided and that have fewer than `flags` of others; their batches are open again.
    """
    names = {"round": round_id, "worker": worker_id, "flags": flags}
    connection.execute(_OPEN_BATCHES_OF_THESE, names)
    return connection.execute(_LET_GO, names).rowcount


def hold_again(connection: Connection, round_id: int, worker_id: int, flags: int, now: datetime) -> None:
    """Let the flags of a reinstated worker count again."""
    ids = connection.scalars(_FLAGGED_BY, {"round": round_id, "worker": worker_id}).all()
    if ids:
        hold_flagged(connection, ids, flags, now)
        fill_batches(connection, ids, now)


def decide_hold(session: Session, round_: Round, number: int, decision: str, who: str, now: datetime) -> None:
    """Record what the launcher says of a held example, by its number: RELEASED_HOLD or LEFT_OUT; it may be said anew.

    A released one is served on, and its batch is not filled while answers are lacking; one that is left out gets no
    gold label. Raises NotFound for an example that is not held, BadInput for another word, IllegalMove where the round
    is not open.
    """
    assert round_.id is not None
    if decision not in (RELEASED_HOLD, LEFT_OUT):
        raise BadInput(f"{decision!r} decides nothing; say {RELEASED_HOLD!r} or {LEFT_OUT!r}")
    take_turn(session, round_.id)
    session.refresh(round_)
    if round_.state != OPEN:
        raise IllegalMove(
            f"round {round_.number} is {round_.state}; only in an open round are held examples decided on"
        )
    hold = session.exec(
        select_rows(Hold)
        .join(Example, col(Example.id) == col(Hold.example_id))
        .where(Example.round_id == round_.id, Example.number == number)
    ).one_or_none()
    if hold is None:
        raise NotFound(f"example {number} of round {round_.number} is not held")
    hold.decision, hold.decided_by, hold.decided_at = decision, who, now
    session.add(hold)
    session.flush()
    connection = session.connection()
    if decision == RELEASED_HOLD:
        connection.execute(_OPEN_AGAIN, {"example": hold.example_id})
    else:
        fill_batches(connection, [hold.example_id], now)
    record(session, round_.id, who, HOLD_DECIDED, now, example=number, decision=decision)
    session.flush()
