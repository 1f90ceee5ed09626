"""A served round that people validate, for tests: its workers, what they answer, and what stands on their pages."""

from collections.abc import Mapping, Sequence
from typing import Any

from flask import Flask
from sqlalchemy import Engine
from sqlmodel import Session, col, func, select
from werkzeug.test import TestResponse

from dynaround.database import reading, writing
from dynaround.tables import NO_PROMPT_ARM, SCREENING, SILENT, CheckItem, Example, Response, Round, Worker
from dynaround.task import Task
from dynaround.tasks import DEFAULT, get_task
from dynaround.text import text_key
from rounds.lifecycle import draft_round, find_round, open_round
from rounds.plan import make_plan
from server.access import CLOCK
from server.validate_view import validation_offer
from tests.author_site import Author
from tests.authored_round import MODEL_HASH, MOMENT, NUMBER
from workers.onboarding import consent, grade

TASK = get_task(DEFAULT)
VALIDATE = f"/rounds/{NUMBER}/validate"
LIVE = f"/rounds/{NUMBER}/live"
CELL, PROBABILITY = "a cell of the harvest", 0.8137


def text_of(number: int) -> str:
    """Return the text of a harvested example."""
    return f"The soup of day {number} was cold."


def check_text(place: int) -> str:
    """Return the text of a check item."""
    return f"A cat sat on mat number {place}."


def add_validated_round(
    engine: Engine,
    *,
    examples: int = 12,
    workers: int = 6,
    checks: int = 0,
    screening: int = 0,
    task: Task = TASK,
    **validation: Any,
) -> list[int]:
    """Open a round with harvested examples and check items; return the ids of its workers.

    `validation` is what the plan says of validating; without any, no item stands before the first page.
    """
    plan = make_plan(
        task=task.name,
        reviews="yelp:reviews.jsonl.gz",
        reviews_sha256="ab" * 32,
        size=0,
        seed=7,
        validation={"screening_items": screening, "screening_right": max(0, screening - 2), **validation},
    )
    with writing(engine) as session:
        round_ = draft_round(session, task, plan, "model-0", MODEL_HASH)
        open_round(session, round_, "launcher", MOMENT)
        assert round_.id is not None
        people = [Worker(platform_id=f"PLATFORM-{place}", kind="person") for place in range(workers)]
        session.add_all(people)
        session.flush()
        add_examples(session, round_, [text_of(number) for number in range(1, examples + 1)])
        for use, count in ((SILENT, checks), (SCREENING, screening)):
            for place in range(count):
                text = check_text(place + (100 if use == SCREENING else 0))
                label = task.labels[place % len(task.labels)]
                session.add(
                    CheckItem(
                        round_id=round_.id, task=task.name, use=use, text=text, text_key=text_key(text), label=label
                    )
                )
        return [worker.id for worker in people if worker.id is not None]


def add_examples(
    session: Session, round_: Round, texts: Sequence[str], author: int | None = None, first_id: int | None = None
) -> None:
    """Add examples with the next numbers; a harvested one comes from a review with one star."""
    assert round_.id is not None
    task = get_task(round_.task)
    first = session.exec(select(func.count()).select_from(Example)).one() + 1
    prediction, *others = task.model_labels
    for number, text in enumerate(texts, first):
        harvested: dict[str, Any] = {
            "review_id": f"REVIEW-{number}",
            "rating": 1,
            "span_start": 3,
            "span_end": 3 + len(text),
        }
        session.add(
            Example(
                id=None if first_id is None else first_id + number,
                round_id=round_.id,
                task=task.name,
                number=number,
                text=text,
                text_key=text_key(text),
                cell=CELL,
                prediction=prediction,
                probs={prediction: PROBABILITY, **{label: (1 - PROBABILITY) / len(others) for label in others}},
                truncated=False,
                model_hash=MODEL_HASH,
                precision="float32",
                back_end="torch",
                author_id=author,
                arm=None if author is None else NO_PROMPT_ARM,
                **(harvested if author is None else {}),
            )
        )
    session.flush()


def admit(app: Flask, engine: Engine, worker_id: int) -> None:
    """Let a worker consent to validating and answer all questions right."""
    at = app.extensions[CLOCK]()
    with writing(engine) as session:
        worker, quiz = session.get_one(Worker, worker_id), validation_offer(session, NUMBER).entry.quiz
        consent(session, worker, quiz.consent_version, at)
        grade(session, worker, quiz, 1, {question.key: question.right for question in quiz.questions}, at)


class Validator(Author):
    """A validator in a browser without script."""

    def page_of(self) -> TestResponse:
        """Open the page of sentences, and whatever stands before it."""
        return self.look(VALIDATE)

    def answers(self, word: str = TASK.labels[0]) -> dict[str, str]:
        """Return the same answer to every sentence on the page."""
        return {f"{position}.answer": word for position in self.positions()}

    def positions(self) -> list[int]:
        """Return the positions of the sentences on the page."""
        return [int(part.split('"')[0]) for part in self.page.text.split('id="sentence-')[1:]]

    def fill(self, ending: str, fields: Mapping[str, str], follow: bool = True) -> TestResponse:
        """Send the form of the page whose address ends so with these fields; see what comes of it."""
        address, form = self.form(ending)
        return self._see(self.client.post(address, data={**form, **fields}, follow_redirects=follow))

    def give_in(
        self, answers: Mapping[str, str] | None = None, further: Mapping[str, str] | None = None, *, follow: bool = True
    ) -> TestResponse:
        """Give in the page, every sentence answered unless told otherwise; see what comes of it."""
        said = self.answers() if answers is None else answers
        return self.fill("/validate", {**said, **(further or {})}, follow)

    @property
    def page_id(self) -> str:
        """The number of the page."""
        return self.form("/validate")[1]["page"]


def responses(engine: Engine) -> list[tuple[int, int, str]]:
    """Return every response: number of the example, worker, label."""
    with reading(engine) as session:
        rows = session.exec(
            select(Example.number, Response.worker_id, Response.label)
            .join(Response, col(Response.example_id) == col(Example.id))
            .order_by(col(Response.id))
        )
        return [(number, worker_id, label) for number, worker_id, label in rows]


def change_validation(engine: Engine, **changed: Any) -> None:
    """Change how people validate in the round, as no launcher could."""
    with writing(engine) as session:
        round_ = find_round(session, NUMBER)
        round_.plan = {**round_.plan, "validation": {**round_.plan["validation"], **changed}}
        session.add(round_)
