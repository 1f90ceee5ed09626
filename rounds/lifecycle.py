"""The states of a round, and the only code that changes them: drafted, open, closed, released.

While it is open, writing and validating are switched on and off.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from sqlalchemy import bindparam
from sqlalchemy import select as select_columns
from sqlmodel import Session, col, func, select

from dynaround.database import columns
from dynaround.errors import BadInput, IllegalMove, NotFound
from dynaround.events import record
from dynaround.labels import RESPONSES
from dynaround.tables import CLOSED, DRAFTED, OPEN, RELEASED, Event, Example, Response, Round, TaskLabel, Uncounted
from dynaround.task import Task
from dynaround.turns import take_turn
from rounds.labelling import freeze_retention, held_examples
from rounds.plan import RoundPlan

MOVES = {DRAFTED: OPEN, OPEN: CLOSED, CLOSED: RELEASED}

IMPORTED = "round imported"
"""The event of a round that was collected elsewhere."""

AUTHORING, VALIDATING = "authoring", "validating"
"""The work of people in an open round, each switched on and off by the launcher."""


_ROUND = select(Round).where(col(Round.number) == bindparam("number"))
_LAST_SWITCH = (
    select_columns(col(Event.what))
    .where(col(Event.round_id) == bindparam("round"), col(Event.what).in_([bindparam("on"), bindparam("off")]))
    .order_by(col(Event.id).desc())
    .limit(1)
)


def find_round(session: Session, number: int) -> Round:
    """Return a round by its number; raise NotFound with the numbers there are."""
    found = session.exec(_ROUND, params={"number": number}).one_or_none()
    if found is None:
        numbers = [str(n) for n in session.exec(select(Round.number).order_by(col(Round.number)))]
        raise NotFound(
            f"there is no round {number}; there is {', '.join(numbers) or 'none yet, see: dynaround round open'}"
        )
    return found


def require_state(round_: Round, *states: str) -> None:
    """Raise IllegalMove unless the round is in one of `states`."""
    if round_.state not in states:
        raise IllegalMove(f"round {round_.number} is {round_.state}; this needs a round that is {' or '.join(states)}")


def _move(session: Session, round_: Round, to: str, who: str, at: datetime, **detail: object) -> None:
    if MOVES.get(round_.state) != to:
        raise IllegalMove(
            f"round {round_.number} is {round_.state} and cannot become {to}; next is {MOVES.get(round_.state)}"
        )
    round_.state = to
    session.add(round_)
    record(session, round_.id, who, to, at, **detail)
    # A later refresh in this transaction would take an unwritten state back.
    session.flush()


def draft_round(session: Session, task: Task, plan: RoundPlan, target_model: str, target_hash: str) -> Round:
    """Add the next round, drafted; the labels of its task enter the database with the first round of that task."""
    last = session.exec(select(func.max(Round.number))).one() or 0
    for place, label in enumerate(task.labels):
        if session.get(TaskLabel, (task.name, label)) is None:
            session.add(TaskLabel(task=task.name, label=label, place=place, for_model=label in task.model_labels))
    session.flush()
    round_ = Round(
        number=last + 1,
        task=task.name,
        state=DRAFTED,
        plan=plan.model_dump(mode="json"),
        target_model=target_model,
        target_model_hash=target_hash,
    )
    session.add(round_)
    session.flush()
    return round_


def import_round(
    session: Session,
    task: Task,
    plan: RoundPlan,
    target_model: str,
    target_hash: str,
    who: str,
    at: datetime,
    **source: object,
) -> Round:
    """Add the next round as one that was collected elsewhere: it begins closed. `source` says what it comes from."""
    require_none_open(session)
    round_ = draft_round(session, task, plan, target_model, target_hash)
    # What was not planned here (shares of a harvest, pay) is not said of it.
    round_.plan = plan.model_dump(mode="json", exclude_unset=True)
    round_.state = CLOSED
    record(session, round_.id, who, IMPORTED, at, **source)
    session.flush()
    return round_


def imported_from(session: Session, round_: Round) -> Mapping[str, Any] | None:
    """Return what an imported round comes from, None for one that was collected here."""
    query = select(Event.detail).where(Event.round_id == round_.id, Event.what == IMPORTED)
    return session.exec(query).one_or_none()


def open_round(session: Session, round_: Round, who: str, at: datetime) -> None:
    """Open a drafted round: from here on its plan is frozen. Raises IllegalMove while another round is open."""
    require_none_open(session)
    _move(session, round_, OPEN, who, at, plan=round_.plan, target_model_hash=round_.target_model_hash)


def require_none_open(session: Session) -> None:
    """Raise IllegalMove while a round is open."""
    other = session.exec(select(Round).where(Round.state == OPEN)).first()
    if other is not None:
        raise IllegalMove(f"round {other.number} is still open; close it first: dynaround round close {other.number}")


def switch(session: Session, round_: Round, what: str, on: bool, who: str, at: datetime) -> None:
    """Switch `AUTHORING` or `VALIDATING` of an open round on or off; what is so already is not recorded again.

    Raises BadInput for other work, IllegalMove where the round is not open or its plan has no such work.
    """
    session.refresh(round_, with_for_update=True)
    require_state(round_, OPEN)
    if what not in (AUTHORING, VALIDATING):
        raise BadInput(f"{what!r} cannot be switched; {AUTHORING} and {VALIDATING} can")
    if not _planned(round_, what):
        raise IllegalMove(f"nobody writes in round {round_.number}; it was opened without --prompts and --authors")
    if is_on(session, round_, what) != on:
        record(session, round_.id, who, _switched(what, on), at)


def is_on(session: Session, round_: Round, what: str) -> bool:
    """Whether `AUTHORING` or `VALIDATING` goes on in a round: it is open, planned so, and not switched off."""
    if round_.state != OPEN or not _planned(round_, what):
        return False
    on, off = _switched(what, True), _switched(what, False)
    return columns(session, _LAST_SWITCH, round=round_.id, on=on, off=off).scalar() != off


def _planned(round_: Round, what: str) -> bool:
    return what == VALIDATING or round_.plan.get("authoring") is not None


def _switched(what: str, on: bool) -> str:
    return f"{what} {'on' if on else 'off'}"


def response_counts(session: Session, round_id: int) -> dict[int, int]:
    """Return the number of responses that count of every example of a round, zeros included, by example id."""
    rows = session.exec(
        select(Example.id, func.count(col(Response.id)) - func.count(col(Uncounted.response_id)))
        .join(Response, col(Response.example_id) == col(Example.id), isouter=True)
        .join(Uncounted, col(Uncounted.response_id) == col(Response.id), isouter=True)
        .where(Example.round_id == round_id)
        .group_by(col(Example.id))
    )
    return {example_id: count for example_id, count in rows if example_id is not None}


def close_round(
    session: Session, round_: Round, who: str, at: datetime, *, leave_out_short: bool = False, abandon: bool = False
) -> int:
    """End collecting and validating, and freeze which responses count; return how many examples are left out.

    Raises IllegalMove while an example has fewer than five responses that count, or is held and nothing was decided on
    it, unless such examples are to be left out (they then have no gold label and stand in no split, like those that the
    launcher left out before); and for a round in which nothing could be labelled, unless it is to be abandoned: a round
    that cannot be harvested must not keep the next one from opening.
    """
    assert round_.id is not None
    # Nobody may answer between the count and the move.
    take_turn(session, round_.id)
    session.refresh(round_, with_for_update=True)
    require_state(round_, OPEN)
    counts = response_counts(session, round_.id)
    held = held_examples(session, round_.id)
    undecided = sum(decision is None for decision in held.values())
    short = sum(count < RESPONSES for example_id, count in counts.items() if example_id not in held)
    left_out = len(held) + short
    number = round_.number
    if left_out == len(counts) and not abandon:
        state = (
            f"none of the {left_out} examples of round {number} has {RESPONSES} responses"
            if counts
            else (f"round {number} has no example")
        )
        raise IllegalMove(
            f"{state}, so nothing could be labelled; run: dynaround round status {number}, "
            "or end the round for good with --abandon"
        )
    if short and not (leave_out_short or abandon):
        raise IllegalMove(
            f"{short} of {len(counts)} examples of round {number} have fewer than {RESPONSES} responses; "
            "collect the rest, or leave them out with --leave-out-short"
        )
    if undecided and not (leave_out_short or abandon):
        raise IllegalMove(
            f"{undecided} of {len(counts)} examples of round {number} are held and nothing is decided on them; "
            "release them or leave them out, or leave out all such with --leave-out-short"
        )
    freeze_retention(session, round_, at)
    _move(session, round_, CLOSED, who, at, examples=len(counts), left_out=left_out, abandoned=left_out == len(counts))
    return left_out


def mark_released(session: Session, round_: Round, who: str, at: datetime, **detail: object) -> None:
    """Move a closed round to released, naming what was released."""
    _move(session, round_, RELEASED, who, at, **detail)
