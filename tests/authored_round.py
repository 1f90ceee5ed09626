"""An open round that people write in, for tests: prompts, authors, and what stands where the live model stands."""

import hashlib
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from random import Random
from typing import NamedTuple

from sqlalchemy import Engine
from sqlmodel import Session, col, select

from dynaround.database import reading, writing
from dynaround.tables import Attempt, Example, Page, Prompt, Response, Submission, Worker, Writing
from dynaround.task import Prediction
from dynaround.tasks import DEFAULT, get_task
from rounds.attempts import Submitted, Typing, submit
from rounds.decisions import decide, give_up
from rounds.lifecycle import close_round, draft_round, find_round, open_round
from rounds.plan import make_plan
from rounds.sittings import begin_sitting, current_writing, end_sitting, lock_authored_round

MOMENT = datetime(2026, 1, 2, 3, 4, tzinfo=UTC)
"""The moment at which all happens unless a test says otherwise."""
MODEL_HASH = "cd" * 32
NUMBER = 1
NOT_COUNTED = Typing()


class FixedAnswer(NamedTuple):
    """What the model said of one text."""

    prediction: Prediction
    model_hash: str = MODEL_HASH
    precision: str = "float32"
    back_end: str = "torch"
    latency: float = 0.012


LABELS = get_task(DEFAULT).model_labels


class FixedModel:
    """Says of a text the label that the test names for it, else always the same; `calls` are the texts it was asked."""

    def __init__(self, answers: Mapping[str, str] | None = None, otherwise: str = LABELS[0]):
        self.answers, self.otherwise, self.calls = answers or {}, otherwise, list[str]()

    def ask(self, text: str) -> FixedAnswer:
        self.calls.append(text)
        return answer_of(self.answers.get(text, self.otherwise))


def answer_of(label: str) -> FixedAnswer:
    """Return an answer that gives a label four fifths."""
    rest = 0.2 / (len(LABELS) - 1)
    return FixedAnswer(Prediction(label, {name: 0.8 if name == label else rest for name in LABELS}))


def other_than(label: str) -> str:
    """Return a label that is wrong."""
    return next(other for other in LABELS if other != label)


def add_authored_round(engine: Engine, *, prompts: int = 12, authors: int = 2, **authoring: int) -> list[int]:
    """Open round 1 for writing, with the settings of its plan in `authoring`; return the ids of its authors."""
    task = get_task(DEFAULT)
    plan = make_plan(
        task=task.name,
        reviews="yelp:reviews.jsonl.gz",
        reviews_sha256="ab" * 32,
        size=0,
        seed=7,
        prompts=prompts,
        authoring=authoring,
    )
    with writing(engine) as session:
        round_ = draft_round(session, task, plan, "model-0", MODEL_HASH)
        open_round(session, round_, "launcher", MOMENT)
        workers = [Worker(platform_id=f"PLATFORM-{place}", kind="person") for place in range(authors)]
        session.add_all(workers)
        session.add_all(
            Prompt(
                round_id=round_.id,
                text=prompt_text(place),
                review_id=f"v{place}",
                rating=place % 5 + 1,
                span_start=0,
                span_end=len(prompt_text(place)),
            )
            for place in range(prompts)
        )
        session.flush()
        return [worker.id for worker in workers if worker.id is not None]


def prompt_text(place: int) -> str:
    """Return the text of a prompt."""
    return f"The soup of day {place} was cold  and nobody minded."


def clock_at(moment: datetime) -> Callable[[], datetime]:
    """Return a clock that stands."""
    return lambda: moment


def making(engine: Engine, worker_id: int, *, seed: int = 0, at: datetime = MOMENT) -> Writing:
    """Return the example that an author is making, a new one where there is none."""
    with writing(engine) as session:
        round_ = lock_authored_round(session, NUMBER)
        return current_writing(session, round_, session.get_one(Worker, worker_id), Random(seed), at)


def begin_in_arm(engine: Engine, worker_id: int, arm: str, *, at: datetime = MOMENT) -> None:
    """Begin sittings of an author until one is in this arm."""
    for seed in range(100):
        with writing(engine) as session:
            round_ = lock_authored_round(session, NUMBER)
            sitting = begin_sitting(session, round_, session.get_one(Worker, worker_id), Random(seed), at)
            if sitting.arm == arm:
                return
            end_sitting(session, sitting, at)
    raise AssertionError(f"no sitting was in the arm {arm}")


def sent(writing_id: int | None, text: str, token: str | None = None, typing: Typing = NOT_COUNTED) -> Submitted:
    """Return what a form sends; the token is one of this text unless named."""
    assert writing_id is not None
    token = token or hashlib.sha256(f"{writing_id} {text}".encode()).hexdigest()[:32]
    return Submitted(token, writing_id, text, typing=typing)


def send(
    engine: Engine,
    worker_id: int,
    text: str,
    *,
    fools: bool = False,
    model: FixedModel | None = None,
    token: str | None = None,
    typing: Typing = NOT_COUNTED,
    at: datetime = MOMENT,
) -> Attempt:
    """Submit a text for the example that an author is making; without a `model` it is told whether it `fools` one."""
    made = making(engine, worker_id, at=at)
    model = model or FixedModel(otherwise=other_than(made.target_label) if fools else made.target_label)
    return submit(engine, model.ask, NUMBER, worker_id, sent(made.id, text, token, typing), now=clock_at(at))


def say(engine: Engine, attempt: Attempt, word: str, *, at: datetime = MOMENT) -> str | None:
    """Say an author's word on an attempt."""
    assert attempt.id is not None
    with writing(engine) as session:
        return decide(session, NUMBER, attempt.worker_id, attempt.id, word, at)


def next_example(engine: Engine, worker_id: int, *, at: datetime = MOMENT) -> str:
    """Give up the example that an author is making."""
    made = making(engine, worker_id, at=at)
    assert made.id is not None
    with writing(engine) as session:
        return give_up(session, NUMBER, worker_id, made.id, at)


def examples(engine: Engine) -> list[Example]:
    """Return the examples of the round, by number."""
    with reading(engine) as session:
        return list(session.exec(select(Example).order_by(col(Example.number))))


def attempts(engine: Engine, worker_id: int | None = None) -> list[Attempt]:
    """Return the attempts of one author or of all, as they came."""
    query = select(Attempt).order_by(col(Attempt.id))
    with reading(engine) as session:
        return list(session.exec(query if worker_id is None else query.where(Attempt.worker_id == worker_id)))


def submissions(engine: Engine) -> list[Submission]:
    """Return all submissions."""
    with reading(engine) as session:
        return list(session.exec(select(Submission)))


def respond(engine: Engine, example: Example, labels: list[str], *, at: datetime = MOMENT) -> None:
    """Let as many validators as there are labels answer an example."""
    with writing(engine) as session:
        for place, label in enumerate(labels):
            worker = _validator(session, place)
            page = Page(round_id=example.round_id, worker_id=worker.id, given_in=at)
            session.add(page)
            session.flush()
            answer = {"example_id": example.id, "worker_id": worker.id, "page_id": page.id, "task": example.task}
            session.add(Response(**answer, label=label, at=at))


def _validator(session: Session, place: int) -> Worker:
    known = session.exec(select(Worker).where(Worker.platform_id == f"VALIDATOR-{place}")).first()
    if known is None:
        known = Worker(platform_id=f"VALIDATOR-{place}", kind="person")
        session.add(known)
        session.flush()
    return known


def close(engine: Engine) -> None:
    """Close the round, whatever is missing."""
    with writing(engine) as session:
        close_round(session, find_round(session, NUMBER), "launcher", MOMENT, leave_out_short=True, abandon=True)
