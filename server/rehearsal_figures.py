"""What the database of a rehearsal says when nobody is given a page any more: gold against the planted labels, who was
stopped, and whether every promise held.
"""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from sqlalchemy import Engine
from sqlmodel import Session, col, func, select

from dynaround.database import reading
from dynaround.labels import RESPONSES
from dynaround.tables import (
    Bar,
    CheckAnswer,
    CheckItem,
    CheckPlace,
    Example,
    Lease,
    Page,
    Removal,
    Response,
    Seat,
    Uncounted,
    Worker,
)
from dynaround.task import Task
from server.rehearsal_crowd import Part, Planted, ScriptedWorker
from workers.standing import KNOWN_ANSWERS_MISSED


class Stopped(NamedTuple):
    """How many workers of one kind there were, and how many were stopped before their first page and by screening."""

    there: int
    at_the_door: int
    screened_out: int


class Rehearsed(NamedTuple):
    """One rehearsal. `accuracy` is of the examples that have gold, `coverage` the share that has; `broken` says in
    sentences which promises did not hold, each with how often.
    """

    accuracy: float
    coverage: float
    stopped: Mapping[str, Stopped]
    pages: int
    responses: int
    uncounted: int
    leases_expired: int
    sent_twice: int
    refused: int
    broken: tuple[str, ...]


def figures(engine: Engine, task: Task, planted: Mapping[str, Planted], crowd: Sequence[ScriptedWorker]) -> Rehearsed:
    """Return what a rehearsal came to."""
    with reading(engine) as session:
        texts = dict(iter(session.exec(select(Example.id, Example.text)).all()))
        counted = _counted(session)
        golds = {texts[one]: task.gold([label for _, label in counted[one]]).label for one in texts}
        right = [label == planted[text].label for text, label in golds.items() if label is not None]
        return Rehearsed(
            accuracy=sum(right) / len(right) if right else 0.0,
            coverage=len(right) / len(texts),
            stopped=_stopped(session, [worker.part for worker in crowd]),
            pages=session.exec(select(func.count()).where(col(Page.given_in).is_not(None))).one(),
            responses=session.exec(select(func.count(col(Response.id)))).one(),
            uncounted=session.exec(select(func.count(col(Uncounted.response_id)))).one(),
            leases_expired=session.exec(select(func.count(col(Lease.page_id))).where(col(Lease.until).is_(None))).one(),
            sent_twice=sum(worker.sent_twice for worker in crowd),
            refused=sum(len(worker.refused) for worker in crowd),
            broken=tuple(_broken(session, texts, counted, crowd)),
        )


def _counted(session: Session) -> dict[int | None, list[tuple[int, str]]]:
    """Return worker and label of the responses that count, by example."""
    found: dict[int | None, list[tuple[int, str]]] = defaultdict(list)
    query = select(Seat.example_id, Response.worker_id, Response.label).join(
        Response, col(Response.id) == col(Seat.response_id)
    )
    for example_id, worker_id, label in session.exec(query):
        found[example_id].append((worker_id, label))
    return found


def _stopped(session: Session, parts: Sequence[Part]) -> dict[str, Stopped]:
    kinds = {part.name: part.kind for part in parts}
    names = select(Worker.platform_id)
    barred = names.join(Bar, col(Bar.worker_id) == col(Worker.id)).where(Bar.reason == KNOWN_ANSWERS_MISSED)
    removed = names.join(Removal, col(Removal.worker_id) == col(Worker.id))
    at_the_door = Counter(kinds[name] for name in session.exec(barred.distinct()))
    screened_out = Counter(kinds[name] for name in session.exec(removed.distinct()))
    there = Counter(kinds.values())
    return {kind: Stopped(count, at_the_door[kind], screened_out[kind]) for kind, count in sorted(there.items())}


def _broken(
    session: Session,
    texts: Mapping[int | None, str],
    counted: Mapping[int | None, Sequence[tuple[int, str]]],
    crowd: Sequence[ScriptedWorker],
) -> list[str]:
    """Say which promises did not hold."""
    gone = set(session.exec(select(Removal.worker_id)))
    stored = _stored(session)
    acknowledged = {page: labels for worker in crowd for page, labels in worker.acknowledged.items()}
    given_in = session.exec(select(func.count()).where(col(Page.given_in).is_not(None))).one()
    responses = session.exec(select(func.count(col(Response.id)))).one()
    different = select(Response.example_id, Response.worker_id).distinct().subquery()
    pairs = session.exec(select(func.count()).select_from(different)).one()
    uncounted = session.exec(select(func.count(col(Uncounted.response_id)))).one()
    seats = sum(len(mine) for mine in counted.values())
    found = {
        f"examples without exactly {RESPONSES} responses that count": sum(
            len(counted.get(one, ())) != RESPONSES for one in texts
        ),
        "examples on which one worker counts twice": sum(
            len({worker for worker, _ in mine}) < len(mine) for mine in counted.values()
        ),
        "responses of removed workers that count": sum(
            worker in gone for mine in counted.values() for worker, _ in mine
        ),
        "responses that a worker gave twice to one example": responses - pairs,
        "responses that neither count nor are kept as uncounted": responses - seats - uncounted,
        "pages that were acknowledged and are not stored as they were sent": sum(
            stored.get(page) != labels for page, labels in acknowledged.items()
        ),
        "pages stored that nobody was told of": given_in - len(acknowledged),
    }
    return [f"{count} {what}" for what, count in found.items() if count]


def _stored(session: Session) -> dict[str, dict[str, str]]:
    """Return the labels that are stored, those of check items among them, by page and sentence."""
    found: dict[str, dict[str, str]] = defaultdict(dict)
    answers: list[Any] = [
        select(Response.page_id, Example.text, Response.label).join(
            Example, col(Example.id) == col(Response.example_id)
        ),
        select(CheckPlace.page_id, CheckItem.text, CheckAnswer.label)
        .join(CheckItem, col(CheckItem.id) == col(CheckPlace.check_item_id))
        .join(
            CheckAnswer,
            (col(CheckAnswer.check_item_id) == col(CheckItem.id))
            & (col(CheckAnswer.worker_id) == col(CheckPlace.worker_id)),
        ),
    ]
    for query in answers:
        for page_id, text, label in session.exec(query):
            found[str(page_id)][text] = label
    return found
