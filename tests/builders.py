"""Small workspaces for the pages, put together row by row: no model, no review file, no torch."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from sqlmodel import Session

from dynaround.corpus.labelled import LabelledSentence
from dynaround.database import writing
from dynaround.evaluation import EvaluationSet, judge, store_reading
from dynaround.harvest import PoolSummary
from dynaround.labels import RESPONSES
from dynaround.release_file import text_id
from dynaround.settings import Workspace
from dynaround.tables import Event, Example, Page, Placement, Response, Retention, Round, TaskLabel, Worker
from dynaround.task import Prediction, Task
from dynaround.tasks import DEFAULT, get_task
from dynaround.text import text_key
from rounds.harvest_report import HARVESTED, HarvestReport
from rounds.releasing import responses_from

MOMENT = datetime(2026, 3, 4, 9, 30, tzinfo=UTC)
SECRET = "PLATFORM-SECRET"
"""Stands in every platform id, so that a test can look for it in a page."""
SCRIPT = "<script>alert(1)</script>"

SENTENCES = (
    "The soup came cold, and nobody seemed surprised",
    "We waited forty minutes for a table by the door",
    "I have never been so happy to be proved wrong",
    "The room was fine if you like the sound of trains",
    "They open at nine and close when the bread is gone",
    f"The page said {SCRIPT} & then it stopped",
    "Five stars for the waiter, none for whoever taught the kitchen what medium rare means, and I say this as a friend",
)


class Votes(NamedTuple):
    """Which label five responses are about and how many of them give it; the others go to the labels after it."""

    label: str
    agreeing: int

    def labels(self, order: Sequence[str]) -> list[str]:
        others = [label for label in order if label != self.label]
        return [self.label] * self.agreeing + [others[i % len(others)] for i in range(RESPONSES - self.agreeing)]


def varied(number: int, task: Task) -> Votes:
    """Every gold label in turn, with winning votes from five down to a vote of two, which is no majority."""
    return Votes(task.labels[number // len(task.model_labels) % len(task.labels)], (5, 4, 4, 3, 2)[number % 5])


def unanimous(number: int, task: Task) -> Votes:
    """One label only, so that chance-corrected agreement is undefined."""
    return Votes(task.labels[0], RESPONSES)


class OneLabel:
    """A predictor that always says the same."""

    def __init__(self, task: Task, place: int):
        self.task, self.place = task, place

    def predict(self, sentences: Sequence[str]) -> list[Prediction | None]:
        return [_prediction(self.task, self.place) for _ in sentences]


def _prediction(task: Task, place: int) -> Prediction:
    labels = task.model_labels
    rest = 0.2 / (len(labels) - 1)
    label = labels[place % len(labels)]
    return Prediction(label, {name: 0.8 if name == label else rest for name in labels})


def build_released_round(
    workspace: Workspace,
    *,
    number: int = 1,
    examples: int = 70,
    kind: str = "scripted",
    votes: Callable[[int, Task], Votes] = varied,
    task_name: str = DEFAULT,
) -> None:
    """Add a released round with responses by five workers of one kind, splits, and readings on its dev and test."""
    task = get_task(task_name)
    with _rows_of(workspace) as session:
        round_ = _add_round(session, task, number, "released", examples)
        workers = [Worker(platform_id=f"{SECRET}-{kind}-{number}-{i}", kind=kind) for i in range(RESPONSES)]
        session.add_all(workers)
        session.flush()
        added = _add_examples(session, round_, task, examples)
        _add_responses(session, round_, task, added, workers, votes)
        for example in added:
            session.add(Placement(example_id=example.id, split=split_of(example.number)))
        for split in ("dev", "test"):
            mine = [example for example in added if split_of(example.number) == split]
            _add_readings(session, round_, task, split, mine, votes, responses_from([kind]))


def build_open_round(workspace: Workspace, *, number: int = 1, examples: int = 0) -> None:
    """Add an open round, with examples that nobody has answered."""
    task = get_task(DEFAULT)
    with _rows_of(workspace) as session:
        round_ = _add_round(session, task, number, "open", examples)
        _add_examples(session, round_, task, examples)


def split_of(number: int) -> str:
    """Return the split in which the builder puts an example."""
    return ("train", "train", "dev", "train", "test", "train", "withheld")[number % 7]


def sentence_of(number: int) -> str:
    """Return the text of an example; the number makes it the only one."""
    return f"{SENTENCES[number % len(SENTENCES)]} (no. {number}, {split_of(number)})."


@contextmanager
def _rows_of(workspace: Workspace) -> Iterator[Session]:
    engine = workspace.engine()
    with writing(engine) as session:
        yield session
    engine.dispose()


def _add_round(session: Session, task: Task, number: int, state: str, examples: int) -> Round:
    for place, label in enumerate(task.labels):
        if session.get(TaskLabel, (task.name, label)) is None:
            session.add(TaskLabel(task=task.name, label=label, place=place, for_model=label in task.model_labels))
    plan = {
        "task": task.name,
        "reviews": "yelp:/home/launcher/private/reviews.jsonl.gz",
        "reviews_sha256": "ab" * 32,
        "fields": {},
        "size": 100,
        "disagreement_share": 0.5,
        "per_review": 4,
        "quotas": {},
        "margin": 0.02,
        "seed": 7,
        "held_out_share": 0.3,
        "per_cell": None,
    }
    round_ = Round(
        number=number,
        task=task.name,
        state=state,
        plan=plan,
        target_model=f"model-{number - 1}",
        target_model_hash="cd" * 32,
    )
    session.add(round_)
    session.flush()
    if examples:
        report = _harvest_report(task, examples)
        detail = {**report._asdict(), "pool": report.pool._asdict()}
        session.add(Event(round_id=round_.id, who="launcher", what=HARVESTED, detail=detail, at=MOMENT))
    return round_


def _harvest_report(task: Task, examples: int) -> HarvestReport:
    ratings = (1, 5)
    by_rating = {
        str(rating): {label: 1200 + 731 * place + 97 * rating for place, label in enumerate(task.model_labels)}
        for rating in ratings
    }
    cell = task.disagreement(1, _prediction(task, 0)) or "a cell"
    return HarvestReport(
        read={"rows_read": 1210, "loaded": 1200, "rejected": 10, "blank_lines": 0},
        pool=PoolSummary(1200, 14_203, 12, 4_310, 3, 17, by_rating, {cell: 1297}),
        wanted=100,
        disagreeing_wanted=50,
        disagreeing_drawn=20,
        examples={cell: 20, "random": examples - 20},
        rejects_file="harvest-1.rejects.jsonl",
        already_done=False,
    )


def _add_examples(session: Session, round_: Round, task: Task, count: int) -> list[Example]:
    assert round_.id is not None
    added = []
    for number in range(1, count + 1):
        prediction = _prediction(task, number)
        example = Example(
            round_id=round_.id,
            task=task.name,
            number=number,
            text=sentence_of(number),
            text_key=text_key(sentence_of(number)),
            review_id=f"review-{number // 2}",
            rating=(1, 5)[number % 2],
            span_start=0,
            span_end=len(sentence_of(number)),
            cell="random",
            prediction=prediction.label,
            probs=dict(prediction.probs),
            truncated=False,
            model_hash=round_.target_model_hash,
            precision="float32",
            back_end="torch",
        )
        session.add(example)
        added.append(example)
    session.flush()
    return added


def _add_responses(
    session: Session,
    round_: Round,
    task: Task,
    examples: Sequence[Example],
    workers: Sequence[Worker],
    votes: Callable[[int, Task], Votes],
) -> None:
    for place, worker in enumerate(workers):
        page = Page(round_id=round_.id, worker_id=worker.id, given_in=MOMENT)
        session.add(page)
        session.flush()
        responses = []
        for example in examples:
            label = votes(example.number, task).labels(task.labels)[(place + example.number) % RESPONSES]
            responses.append(
                Response(
                    example_id=example.id, worker_id=worker.id, page_id=page.id, task=task.name, label=label, at=MOMENT
                )
            )
        # One flush a worker and not one a response, which took most of the time of building.
        session.add_all(responses)
        session.flush()
        session.add_all(Retention(response_id=r.id, rule="the five there are", frozen_at=MOMENT) for r in responses)


def _add_readings(
    session: Session,
    round_: Round,
    task: Task,
    split: str,
    examples: Sequence[Example],
    votes: Callable[[int, Task], Votes],
    who: str,
) -> None:
    items = []
    for example in examples:
        labels = votes(example.number, task).labels(task.labels)
        gold = task.gold(labels).label
        if gold in task.model_labels:
            identity = text_id(round_.number, example.number)
            items.append(LabelledSentence(example.text, gold, tuple(labels), example.review_id, identity))
    name = f"release:/home/launcher/private/releases/round-{round_.number}/{split}.jsonl"
    data = EvaluationSet(name, tuple(items), tuple(items), who, len(examples) - len(items))
    for place in range(2):
        reading = judge(OneLabel(task, place), f"model-{round_.number - 1 + place}", "cd" * 32, data, task, seed=0)
        store_reading(session, reading, "launcher", MOMENT + timedelta(minutes=place))
