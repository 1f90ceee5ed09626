"""From responses in the database to what counts: retention, gold labels, and examples as a release tells of them."""

import hashlib
from collections import Counter, defaultdict
from collections.abc import Sequence
from datetime import datetime
from typing import Any, NamedTuple

from sqlalchemy import select as select_columns
from sqlmodel import Session, col, select

from dynaround.agreement import WorkerResponse, retained, worker_agreement
from dynaround.labels import RESPONSES
from dynaround.release_file import text_id
from dynaround.tables import (
    RELEASED_HOLD,
    Example,
    Hold,
    Prompt,
    Response,
    Retention,
    Round,
    Uncounted,
    Worker,
    public_id,
)
from dynaround.task import Prediction, PromptData, ReleasedExample, ReleasedResponse, Span, Task
from dynaround.text import folded

RETENTION_RULE = "the five of the workers with the highest agreement with the majority, ties by seeded lot"


class CountedResponse(NamedTuple):
    """One response with its worker's public id and what kind of worker that is."""

    response_id: int
    page_id: int
    label: str
    form: dict[str, Any] | None
    worker: str
    kind: str


def responses_by_example(session: Session, round_id: int, *, retained_only: bool) -> dict[int, list[CountedResponse]]:
    """Return the responses of a round that count by example id, in order of public id; an example without is absent."""
    # Columns, not rows of tables: a round has five times as many responses as examples.
    query = (
        select_columns(
            col(Response.example_id),
            col(Response.id),
            col(Response.page_id),
            col(Response.label),
            col(Response.form),
            col(Worker.id),
            col(Worker.kind),
        )
        .join(Worker, col(Response.worker_id) == col(Worker.id))
        .join(Example, col(Response.example_id) == col(Example.id))
        .join(Uncounted, col(Uncounted.response_id) == col(Response.id), isouter=True)
        .where(col(Example.round_id) == round_id, col(Uncounted.response_id).is_(None))
        .order_by(col(Worker.id))
    )
    if retained_only:
        query = query.join(Retention, col(Retention.response_id) == col(Response.id))
    found: dict[int, list[CountedResponse]] = defaultdict(list)
    session.flush()
    rows = session.connection().execute(query)
    for example_id, response_id, page_id, label, form, worker_id, kind in rows:
        assert response_id is not None and worker_id is not None
        found[example_id].append(CountedResponse(response_id, page_id, label, form, public_id(worker_id), kind))
    return dict(found)


def freeze_retention(session: Session, round_: Round, at: datetime) -> None:
    """Store which five responses of every example count; examples with fewer, and held ones, get none.

    Equal agreement is decided by a hash of the round's seed, the private platform id and the example: public ids tell
    in which order workers came, and that order must not decide a label.
    """
    assert round_.id is not None
    by_example = responses_by_example(session, round_.id, retained_only=False)
    plain = {
        example_id: [WorkerResponse(str(example_id), c.worker, c.label) for c in counted]
        for example_id, counted in by_example.items()
    }
    agreement = worker_agreement(r for responses in plain.values() for r in responses)
    platform_ids = {worker.public_id: worker.platform_id for worker in session.exec(select(Worker))}
    numbers = dict(iter(session.exec(select(Example.id, Example.number).where(Example.round_id == round_.id))))
    held = held_examples(session, round_.id)
    for example_id, counted in by_example.items():
        if len(counted) < RESPONSES or example_id in held:
            continue

        def lot(worker: str, number: int = numbers[example_id]) -> bytes:
            return hashlib.blake2b(repr((round_.plan["seed"], platform_ids[worker], number)).encode()).digest()

        kept = {r.worker for r in retained(plain[example_id], agreement, between_equals=lot)}
        for one in counted:
            if one.worker in kept:
                session.add(Retention(response_id=one.response_id, rule=RETENTION_RULE, frozen_at=at))


def held_examples(session: Session, round_id: int) -> dict[int, str | None]:
    """Return what the launcher decided on the examples of a round that are held, by id; None: nothing yet.

    Released ones are not held any more; the others get no gold label.
    """
    rows = session.exec(
        select(Hold.example_id, Hold.decision)
        .join(Example, col(Example.id) == col(Hold.example_id))
        .where(Example.round_id == round_id)
    )
    return {example_id: decision for example_id, decision in rows if decision != RELEASED_HOLD}


def prompt_uses(session: Session, round_id: int) -> Counter[str]:
    """Count the examples of a round by the folded text of their prompt, also those that are left out."""
    texts = session.exec(
        select(Prompt.text).join(Example, col(Example.prompt_id) == col(Prompt.id)).where(Example.round_id == round_id)
    )
    return Counter(folded(text) for text in texts)


class LabelledExample(NamedTuple):
    """A stored example with all that a release may tell of it, and how its author came to it (None: harvested)."""

    example: Example
    released: ReleasedExample
    arm: str | None
    worker_kinds: frozenset[str]


def labelled_examples(
    session: Session, round_id: int, number: int, task: Task, *, so_far: bool = False
) -> list[LabelledExample]:
    """Return the examples of a closed round that have five retained responses, by number.

    With `so_far`, of an open one, those that have exactly five: which of more count is decided when the round closes.
    """
    counted = responses_by_example(session, round_id, retained_only=not so_far)
    authors = {w.id: w.public_id for w in session.exec(select(Worker))}
    prompts = {p.id: p for p in session.exec(select(Prompt).where(Prompt.round_id == round_id))}
    rows = session.exec(select(Example).where(Example.round_id == round_id).order_by(col(Example.number)))
    labelled = []
    for example in rows:
        assert example.id is not None
        mine = counted.get(example.id, [])
        if len(mine) != RESPONSES:
            continue
        author = authors[example.author_id] if example.author_id is not None else None
        released = _released(example, number, mine, author, prompts.get(example.prompt_id), task)
        labelled.append(LabelledExample(example, released, example.arm, frozenset(c.kind for c in mine)))
    return labelled


def _released(
    example: Example,
    round_number: int,
    counted: Sequence[CountedResponse],
    author: str | None,
    prompt: Prompt | None,
    task: Task,
) -> ReleasedExample:
    harvested = author is None
    return ReleasedExample(
        text_id=text_id(round_number, example.number),
        round=round_number,
        sentence=example.text,
        prediction=Prediction(example.prediction, example.probs, example.truncated),
        responses=tuple(ReleasedResponse(c.worker, c.label, c.form or {}) for c in counted),
        gold=task.gold([c.label for c in counted]).label,
        hit_ids=tuple({f"y{c.page_id}" for c in counted}),
        review_id=example.review_id if harvested else None,
        rating=example.rating if harvested else None,
        span=_span(example.span_start, example.span_end) if harvested else None,
        author=author,
        prompt=_prompt_data(prompt) if prompt is not None else None,
    )


def _prompt_data(prompt: Prompt) -> PromptData:
    return PromptData(prompt.text, prompt.review_id, prompt.rating, _span(prompt.span_start, prompt.span_end))


def _span(start: int | None, end: int | None) -> Span | None:
    return Span(start, end) if start is not None and end is not None else None
