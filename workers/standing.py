"""What keeps a worker from a kind of work for a while: bars with their reasons, objections, and lifting them."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from sqlalchemy import bindparam
from sqlmodel import Session, and_, col, or_, select

from dynaround.corpus.sources import why_unstorable
from dynaround.errors import BadInput, NotAllowed, NotFound
from dynaround.events import record
from dynaround.tables import Bar, Worker, public_id

QUIZ_FAILED = "The questions about the work were not all answered right within the tries that there are."
CLAIMS_REFUTED = "Other people did not agree with many of your last sentences that you said had fooled the model."
KNOWN_ANSWERS_MISSED = "Too few of your answers to the first sentences were the ones that are known to be right."
SCREENED_OUT = "Your answers to many sentences differed from what most of the other people answered."
CHECKS_MISSED = "Many of your answers to sentences whose right answer is known were not the right ones."
"""Why a worker is barred, in the words that the worker reads."""

VALIDATING = "validating"
"""The work of labelling, as bars and events call it."""

LONGEST_OBJECTION = 2000
"""Characters of an objection; a line break counts as one."""

BARRED, OBJECTED, LIFTED = "barred", "objected", "bar lifted"
PROGRAM = "dynaround"
"""Who bars by a rule, for the events."""


_now: Any = bindparam("now")
IN_FORCE = and_(
    col(Bar.worker_id) == bindparam("worker"),
    col(Bar.work) == bindparam("work"),
    col(Bar.began_at) <= _now,
    col(Bar.until) > _now,
    col(Bar.lifted_at).is_(None),
)
"""Whether a bar keeps a worker from a kind of work at a moment, as an expression for a query."""
_CURRENT_BAR = select(Bar).where(IN_FORCE).order_by(col(Bar.until).desc()).limit(1)


class DecidedClaim(NamedTuple):
    """An author's claim to have fooled the model, once people have decided on it: which example, written when."""

    text_id: str
    refuted: bool
    at: datetime


def lock_worker(session: Session, worker: Worker) -> None:
    """Let no other transaction decide on the same worker before this one ends."""
    # Not the stronger lock: rows that others add for this worker at the same moment need not wait.
    session.exec(select(Worker.id).where(Worker.id == worker.id).with_for_update(key_share=True)).one()


def bar(
    session: Session, worker: Worker, work: str, reason: str, evidence: dict[str, Any], at: datetime, until: datetime
) -> Bar:
    """Keep a worker from a kind of work until a moment; whoever is barred from it already stays so, by that bar.

    `evidence` is plain data without any private id.
    """
    lock_worker(session, worker)
    held = current_bar(session, worker, work, at)
    if held is not None:
        return held
    assert worker.id is not None
    new = Bar(worker_id=worker.id, work=work, reason=reason, evidence=evidence, began_at=at, until=until)
    session.add(new)
    session.flush()
    _record(session, new, PROGRAM, BARRED, at, reason=reason, evidence=evidence, until=until.isoformat())
    return new


def current_bar(session: Session, worker: Worker, work: str, now: datetime) -> Bar | None:
    """Return the bar that keeps a worker from a kind of work at this moment."""
    return session.exec(_CURRENT_BAR, params={"worker": worker.id, "work": work, "now": now}).one_or_none()


def bar_for_refuted(
    session: Session,
    worker: Worker,
    work: str,
    claims: Sequence[DecidedClaim],
    *,
    refuted_claims: int,
    of_last_claims: int,
    bar_days: int,
    at: datetime,
) -> Bar | None:
    """Bar an author of whose last `of_last_claims` decided claims at least `refuted_claims` were refuted; else None.

    Claims that were written before the last bar from this work ended do not count again. The order of `claims` does
    not matter.
    """
    lock_worker(session, worker)
    if current_bar(session, worker, work, at) is not None:
        return None
    bars = session.exec(select(Bar).where(Bar.worker_id == worker.id, Bar.work == work))
    ends = [_end(known) for known in bars]
    fresh = [claim for claim in claims if not ends or claim.at > max(ends)]
    last = sorted(fresh, key=lambda claim: (claim.at, claim.text_id))[-of_last_claims:]
    refuted = [claim.text_id for claim in last if claim.refuted]
    if len(refuted) < refuted_claims:
        return None
    evidence = {"refuted": refuted, "of_last": len(last)}
    return bar(session, worker, work, CLAIMS_REFUTED, evidence, at, at + timedelta(days=bar_days))


def object_to(session: Session, held: Bar, text: str, at: datetime) -> None:
    """Keep what a worker says against a bar; once, and also when the bar is over.

    Raises BadInput for an empty text, one of more than 2,000 characters, or one that cannot be stored; NotAllowed where
    the worker has objected before.
    """
    said = text.replace("\r\n", "\n").strip()
    if not said:
        raise BadInput("the objection is empty; write why the bar is wrong")
    if len(said) > LONGEST_OBJECTION:
        raise BadInput(f"the objection has {len(said)} characters; shorten it to {LONGEST_OBJECTION}")
    problem = why_unstorable(said)
    if problem:
        raise BadInput(f"the objection has {problem}; take it out")
    session.refresh(held, with_for_update=True)
    if held.objection is not None:
        raise NotAllowed("you have objected to this bar already; the launcher has your words")
    held.objection, held.objected_at = said, at
    session.add(held)
    # The words stay in the table of bars, which no export reads.
    _record(session, held, public_id(held.worker_id), OBJECTED, at)


def lift(session: Session, held: Bar, who: str, at: datetime) -> None:
    """End a bar before its time; raises NotAllowed where it is over."""
    session.refresh(held, with_for_update=True)
    if _end(held) <= at:
        how = "was lifted" if held.lifted_at else "ended by itself"
        raise NotAllowed(f"bar {held.id} {how} at {_end(held):%Y-%m-%d %H:%M} UTC; there is nothing to lift")
    held.lifted_at, held.lifted_by = at, who
    session.add(held)
    _record(session, held, who, LIFTED, at)


def find_bar(session: Session, bar_id: int) -> Bar:
    """Return a bar by its number; raise NotFound."""
    found = session.get(Bar, bar_id)
    if found is None:
        raise NotFound(f"there is no bar {bar_id}; see: dynaround workers bars")
    return found


def bars_to_look_at(session: Session, now: datetime) -> list[Bar]:
    """Return the bars in force and those that somebody objected to, in the order in which they began."""
    in_force = and_(col(Bar.until) > now, col(Bar.lifted_at).is_(None))
    return list(session.exec(select(Bar).where(or_(in_force, col(Bar.objection).is_not(None))).order_by(col(Bar.id))))


def bar_line(held: Bar, now: datetime) -> str:
    """Return a bar as one line of text for the launcher."""
    if held.lifted_at is not None:
        state = f"lifted by {held.lifted_by} at {held.lifted_at:%Y-%m-%d %H:%M} UTC"
    else:
        state = f"{'until' if held.until > now else 'ended'} {held.until:%Y-%m-%d %H:%M} UTC"
    # As a literal: a terminal would obey what a person typed.
    objection = f"; objects: {held.objection!r}" if held.objection is not None else ""
    evidence = ", ".join(f"{name}: {value}" for name, value in held.evidence.items())
    return f"bar {held.id}: {public_id(held.worker_id)} from work {held.work!r}, {state}; {evidence}{objection}"


def bar_figures(held: Bar) -> dict[str, Any]:
    """Return a bar as plain data, under the worker's public id."""
    return {"worker": public_id(held.worker_id), **held.model_dump(mode="json", exclude={"worker_id"})}


def _end(held: Bar) -> datetime:
    return held.until if held.lifted_at is None else held.lifted_at


def _record(session: Session, held: Bar, who: str, what: str, at: datetime, **detail: object) -> None:
    worker = public_id(held.worker_id)
    record(session, None, who, what, at, bar=held.id, worker=worker, work=held.work, **detail)
    session.flush()
