"""Who takes part: the private platform id, and the public id that pages and releases show."""

from sqlmodel import Session, col, select

from dynaround.errors import BadInput, IllegalMove, NotFound
from dynaround.tables import OPEN, Example, Response, Round, Worker

PERSON, SCRIPTED, REPLAYED = "person", "scripted", "replayed"


def enlist(session: Session, platform_id: str, kind: str) -> Worker:
    """Return the worker of this platform id, added if new.

    Raises BadInput where the id already belongs to another kind of worker: a crowd never passes for people.
    """
    if not platform_id.strip():
        raise BadInput("a worker's platform id is empty; give every worker one")
    known = session.exec(select(Worker).where(Worker.platform_id == platform_id)).one_or_none()
    if known is not None:
        require_same_kind(known, kind)
        return known
    worker = Worker(platform_id=platform_id, kind=kind)
    session.add(worker)
    session.flush()
    return worker


def require_same_kind(worker: Worker, kind: str) -> None:
    """Raise BadInput where a worker is of another kind."""
    if worker.kind != kind:
        raise BadInput(f"worker {worker.public_id} is {worker.kind}, not {kind}; give the crowd other ids")


def require_kind(session: Session, round_: Round, kind: str) -> None:
    """Raise BadInput where workers of another kind have answered in the round: people and crowds are not mixed."""
    others = session.exec(
        select(Worker.kind)
        .join(Response, col(Response.worker_id) == col(Worker.id))
        .join(Example, col(Example.id) == col(Response.example_id))
        .where(Example.round_id == round_.id, Worker.kind != kind)
    ).first()
    if others is not None:
        raise BadInput(
            f"round {round_.number} has responses of {others} workers, and {kind} ones do not join them; "
            "open another round for these"
        )


def lock_open_round(session: Session, number: int) -> Round:
    """Return an open round that nobody can close before this transaction ends; workers answer in no other.

    Raises NotFound or IllegalMove.
    """
    round_ = session.exec(select(Round).where(Round.number == number).with_for_update()).one_or_none()
    if round_ is None:
        raise NotFound(f"there is no round {number}; see: dynaround round open")
    if round_.state != OPEN:
        raise IllegalMove(f"round {number} is {round_.state}; only an open round takes responses")
    return round_
