"""Pages: up to ten places in front of one validator, and the answers that are given in."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from pydantic import ValidationError
from sqlmodel import Session, col, select

from dynaround.errors import BadInput, IllegalMove
from dynaround.tables import Assignment, Example, Page, Response, Worker
from dynaround.task import Task

PLACES = 10
"""Places on a page (Potts et al. 2021, sec. 3.3)."""


class Answer(NamedTuple):
    """What a validator gave in for one example: a word for the label, the rest of the form, and the time taken."""

    word: str
    form: Mapping[str, Any] = {}
    seconds: float | None = None


def hand_out(session: Session, round_id: int, worker: Worker, example_ids: Sequence[int]) -> Page:
    """Put up to ten examples in front of a worker; the database refuses one that this worker already had.

    Raises IllegalMove for the worker's own text, and for more places than a page has.
    """
    if len(example_ids) > PLACES:
        raise IllegalMove(f"a page has {PLACES} places, not {len(example_ids)}; hand out several pages")
    own = session.exec(
        select(Example.number).where(col(Example.id).in_(example_ids), Example.author_id == worker.id)
    ).first()
    if own is not None:
        raise IllegalMove(f"worker {worker.public_id} wrote example {own} and cannot validate it; hand it to another")
    assert worker.id is not None
    page = Page(round_id=round_id, worker_id=worker.id)
    session.add(page)
    session.flush()
    assert page.id is not None
    for example_id in example_ids:
        session.add(Assignment(page_id=page.id, example_id=example_id, worker_id=worker.id))
    session.flush()
    return page


def give_in(session: Session, task: Task, page: Page, answers: Mapping[int, Answer], at: datetime) -> None:
    """Store the answers of a whole page, by example id.

    Raises BadInput for a word that is no label of the task and for a malformed form, IllegalMove for a page that was
    given in already or answers that are not exactly its places.
    """
    if page.given_in is not None:
        raise IllegalMove(f"page y{page.id} was given in already; its answers stand")
    places = set(session.exec(select(Assignment.example_id).where(Assignment.page_id == page.id)))
    if places != set(answers):
        raise IllegalMove(f"page y{page.id} has {len(places)} places and {len(answers)} answers came; answer each once")
    assert page.id is not None
    for example_id, answer in answers.items():
        session.add(
            Response(
                example_id=example_id,
                worker_id=page.worker_id,
                page_id=page.id,
                task=task.name,
                label=task.label_of(answer.word),
                form=checked_form(task, answer.form),
                seconds=answer.seconds,
                at=at,
            )
        )
    page.given_in = at
    session.add(page)
    session.flush()


def checked_form(task: Task, form: Mapping[str, Any]) -> dict[str, Any] | None:
    """Pass what a form holds beyond the label through the task's plain model; None where the task has no such field."""
    try:
        return task.form.model_validate(dict(form)).model_dump(mode="json") or None
    except ValidationError as error:
        first = error.errors()[0]
        raise BadInput(f"form field {'.'.join(map(str, first['loc']))!r}: {first['msg']}") from error
