"""Screening by batch: removing workers from a round on evidence, and letting them in again.

All removals of one screening are decided from the same picture, so no order of workers or arrival changes them.
"""

from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import Engine, bindparam, exists
from sqlalchemy import select as select_columns
from sqlmodel import Session, col, select

from dynaround.database import columns, reading, writing
from dynaround.errors import IllegalMove, NotFound
from dynaround.events import record
from dynaround.screening_measures import CHECK_ITEMS, ScreeningRule
from dynaround.tables import OPEN, Bar, Batch, Removal, Round, Worker, public_id
from dynaround.turns import take_turn
from workers.holds import hold_again, let_go
from workers.judging import (
    REINSTATED,
    SCREENED,
    Judged,
    Screening,
    evidence,
    evidence_words,
    judge_workers,
    last_change,
)
from workers.places import PageSettings
from workers.removing import count_again, remove_worker
from workers.standing import CHECKS_MISSED, PROGRAM, SCREENED_OUT, VALIDATING, bar, lift

REMOVED_WORKER = "worker removed"

_IS_DUE = select_columns(
    exists().where(
        col(Batch.round_id) == bindparam("round"), col(Batch.filled_at).is_not(None), col(Batch.screened_at).is_(None)
    )
)


def is_due(session: Session, round_: Round) -> bool:
    """Whether a batch is filled that no screening has looked at since."""
    return bool(columns(session, _IS_DUE, round=round_.id).scalar())


def screen(
    session: Session,
    round_: Round,
    rule: ScreeningRule,
    at: datetime,
    who: str = PROGRAM,
    found: Screening | None = None,
) -> Screening:
    """Judge the workers of an open round and remove those whom the rule removes, in this transaction.

    The places of the removed are free for others, their responses stay and do not count, and they are barred. Done
    again, it removes nobody else until more is answered; interrupted, it has removed nobody. What was `found` before
    the transaction is used where nobody was removed or reinstated since. Raises IllegalMove where the round is not
    open.
    """
    _take_turn(session, round_)
    if found is None or found.after != last_change(session, round_):
        found = judge_workers(session, round_, rule)
    for judged in found.removed:
        _remove(session, round_, judged, rule, at, who)
    _mark(session, round_, found, at)
    gone = [judged.measures.worker for judged in found.removed]
    detail = {"batches": found.batches, "workers": len(found.workers), "removed": gone}
    record(session, round_.id, who, SCREENED, at, **detail)
    session.flush()
    return found


def screen_round(engine: Engine, number: int, rule: ScreeningRule, at: datetime, who: str = PROGRAM) -> Screening:
    """Screen an open round as `screen` does, judging before anybody has to wait: that takes long in a large round.

    Raises NotFound and IllegalMove where there is no such open round.
    """
    with reading(engine) as session:
        found = judge_workers(session, find_round(session, number), rule)
    with writing(engine) as session:
        return screen(session, find_round(session, number), rule, at, who, found)


def screen_due(engine: Engine, number: int, rule: ScreeningRule, at: datetime) -> None:
    """Screen an open round as `screen_round` does, where a batch was filled since; another process may do it first.

    Raises NotFound and IllegalMove where there is no such open round.
    """
    with reading(engine) as session:
        round_ = find_round(session, number)
        if not is_due(session, round_):
            return
        found = judge_workers(session, round_, rule)
    with writing(engine) as session:
        round_ = find_round(session, number)
        _take_turn(session, round_)
        if is_due(session, round_):
            screen(session, round_, rule, at, found=found)


def find_round(session: Session, number: int) -> Round:
    """Return a round by its number; raise NotFound."""
    round_ = session.exec(select(Round).where(Round.number == number)).one_or_none()
    if round_ is None:
        raise NotFound(f"there is no round {number}; see: dynaround round open")
    return round_


def _take_turn(session: Session, round_: Round) -> None:
    assert round_.id is not None
    take_turn(session, round_.id)
    session.refresh(round_)
    if round_.state != OPEN:
        raise IllegalMove(f"round {round_.number} is {round_.state}; only in an open round are workers screened")


def _mark(session: Session, round_: Round, found: Screening, at: datetime) -> None:
    batches = select(Batch).where(Batch.round_id == round_.id, col(Batch.number).in_(found.batches))
    for batch in session.exec(batches).all():
        session.refresh(batch)
        # One that a removal has just opened again is to be looked at again.
        batch.screened_at = at if batch.filled_at is not None else None
        session.add(batch)
    session.flush()


def _remove(session: Session, round_: Round, judged: Judged, rule: ScreeningRule, at: datetime, who: str) -> None:
    assert round_.id is not None and judged.removed_by is not None
    worker = session.get_one(Worker, int(judged.measures.worker[1:]))
    assert worker.id is not None
    measures = evidence(judged.measures)
    known = {"round": round_.number, "measures": measures, "limits": rule.model_dump(mode="json")}
    removal = Removal(round_id=round_.id, worker_id=worker.id, rule=judged.removed_by, evidence=known, at=at)
    session.add(removal)
    session.flush()
    held_no_more = let_go(session.connection(), round_.id, worker.id, _flags_that_hold(round_))
    freed = remove_worker(session, round_, worker, at)
    told = {"round": round_.number, "removal": removal.id, **measures[judged.removed_by]}
    reason = CHECKS_MISSED if judged.removed_by == CHECK_ITEMS else SCREENED_OUT
    bar(session, worker, VALIDATING, reason, told, at, at + timedelta(days=rule.bar_days))
    detail = {
        "removal": removal.id,
        "rule": removal.rule,
        "evidence": known,
        "freed": freed,
        "held_no_more": held_no_more,
    }
    record(session, round_.id, who, REMOVED_WORKER, at, worker=worker.public_id, **detail)


def _flags_that_hold(round_: Round) -> int:
    found: int = (round_.plan.get("validation") or {}).get("flags_that_hold", PageSettings().flags_that_hold)
    return found


def removals(session: Session, round_: Round) -> list[Removal]:
    """Return all removals of a round, also those that were taken back, in the order in which they were made."""
    return list(session.exec(select(Removal).where(Removal.round_id == round_.id).order_by(col(Removal.id))))


def reinstate(session: Session, round_: Round, public: str, who: str, at: datetime) -> int:
    """Let a removed worker go on, and lift the bar; return how many responses count again.

    Those count again whose example has a free place. What was answered until now does not remove the worker again.
    Raises NotFound for a worker who is not removed, IllegalMove where the round is not open.
    """
    _take_turn(session, round_)
    found = [removal for removal in removals(session, round_) if removal.reinstated_at is None]
    removal = next((one for one in found if public_id(one.worker_id) == public), None)
    if removal is None:
        there = ", ".join(public_id(one.worker_id) for one in found) or "nobody"
        raise NotFound(f"worker {public} is not removed from round {round_.number}; removed is {there}")
    worker = session.get_one(Worker, removal.worker_id)
    removal.reinstated_at, removal.reinstated_by = at, who
    session.add(removal)
    session.flush()
    counted = count_again(session, round_, worker, at)
    assert round_.id is not None and worker.id is not None
    hold_again(session.connection(), round_.id, worker.id, _flags_that_hold(round_), at)
    bars = session.exec(select(Bar).where(Bar.worker_id == worker.id, Bar.work == VALIDATING))
    for held in bars:
        if held.evidence.get("removal") == removal.id and held.lifted_at is None and held.until > at:
            lift(session, held, who, at)
    record(session, round_.id, who, REINSTATED, at, worker=public, removal=removal.id, counted_again=counted)
    session.flush()
    return counted


def removal_line(removal: Removal) -> str:
    """Return a removal as one line of text for the launcher."""
    taken_back = (
        f"; reinstated by {removal.reinstated_by} at {removal.reinstated_at:%Y-%m-%d %H:%M} UTC"
        if removal.reinstated_at is not None
        else ""
    )
    return (
        f"{public_id(removal.worker_id)} removed at {removal.at:%Y-%m-%d %H:%M} UTC by the rule {removal.rule!r}: "
        f"{evidence_words(removal.evidence['measures'])}{taken_back}"
    )


def removal_figures(removal: Removal) -> dict[str, Any]:
    """Return a removal as plain data, under the worker's public id."""
    return {"worker": public_id(removal.worker_id), **removal.model_dump(mode="json", exclude={"worker_id"})}
