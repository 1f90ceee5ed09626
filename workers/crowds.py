"""Crowds that are not people: one that answers around known labels, and one that replays recorded responses.

Both are stored as what they are (`Worker.kind`), so every table, page and manifest can say it.
"""

import hashlib
import random
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

from sqlalchemy import Engine
from sqlmodel import Session, col, func, select

from dynaround.database import reading, writing
from dynaround.errors import BadInput
from dynaround.events import record
from dynaround.labels import RESPONSES
from dynaround.tables import Assignment, Event, Example, Response, Round
from dynaround.task import ReleasedResponse, Task
from workers.assignment import PLACES, Answer, give_in, hand_out
from workers.roster import enlist, lock_open_round, require_kind

Place = tuple[str | None, int | None, int | None]
"""Where a sentence stands: review id, start, end."""

KINDS = ("careful", "careless", "spamming", "adversarial")

ANSWERS = "crowd answers"
"""The event that says which crowd answers a round, and what it is made from."""


@dataclass(frozen=True)
class CrowdMix:
    """What the scripted crowd is made of; shares of workers, which add up to 1.

    A careful worker gives the label that the sentence carries, unless the sentence is ambiguous; a careless one also
    slips to any label, a spamming one always picks at random or always the same, an adversarial one picks any but
    the true label. The defaults make a crowd as hard as Round 1 of DynaSent (train: vote accuracy .754, 10.7 % without
    majority); `benchmarks/crowd.py` shows the fit.
    """

    careful: float = 0.70
    careless: float = 0.18
    spamming: float = 0.07
    adversarial: float = 0.05
    workers: int = 60
    # The chance that a careful worker leaves the plain reading is ambiguity_limit times a beta variate a sentence.
    ambiguity_limit: float = 0.6
    ambiguity_alpha: float = 1.0
    ambiguity_beta: float = 1.2
    # Those who leave it mostly agree on one other reading of the sentence, which is how 3-2 votes come about.
    second_reading: float = 0.95
    careless_slip: float = 0.15

    def __post_init__(self) -> None:
        shares = [getattr(self, kind) for kind in KINDS]
        if min(shares) < 0 or abs(sum(shares) - 1) > 1e-9:
            raise BadInput(f"the shares of the crowd are {', '.join(map(str, shares))}; give parts that add up to 1")


class CrowdReport(NamedTuple):
    """How many pages and responses a crowd added now, and how many the round has from it in all."""

    pages_added: int
    responses_added: int
    responses_in_all: int


class Planned(NamedTuple):
    """One page that a crowd gives in: the worker's platform id, and the answer for each example id in order."""

    worker: str
    answers: Mapping[int, Answer]


def _generator(*parts: object) -> random.Random:
    # Seeded by what is decided, never by what came before: any order and any interruption gives the same answers.
    return random.Random(hashlib.blake2b(repr(parts).encode(), digest_size=8).digest())


def kind_of_worker(number: int, mix: CrowdMix, seed: int) -> str:
    """Return which kind the scripted worker `number` (from 0) is; the shares hold exactly up to rounding."""
    order = list(range(mix.workers))
    _generator(seed, "kinds").shuffle(order)
    place, bound = order[number], 0.0
    for kind in KINDS[:-1]:
        bound += getattr(mix, kind)
        if place < round(bound * mix.workers):
            return kind
    return KINDS[-1]


def crowd_of_page(page: int, mix: CrowdMix, seed: int) -> list[int]:
    """Return the numbers of the five scripted workers that all sentences of one group of ten go to."""
    return sorted(_generator(seed, "page", page).sample(range(mix.workers), RESPONSES))


def scripted_label(
    truth: str, labels: Sequence[str], kind: str, worker: str, sentence: str, mix: CrowdMix, seed: int
) -> str:
    """Return what a scripted worker answers for a sentence whose true label is `truth`."""
    nature = _generator(seed, "sentence", sentence)
    ambiguity = mix.ambiguity_limit * nature.betavariate(mix.ambiguity_alpha, mix.ambiguity_beta)
    second_reading = nature.choice([label for label in labels if label != truth])
    own = _generator(seed, "answer", worker, sentence)
    if kind == "spamming":
        favourite = _generator(seed, "spammer", worker).choice([None, *labels])
        return favourite or own.choice(list(labels))
    if kind == "adversarial":
        return own.choice([label for label in labels if label != truth])
    if kind == "careless" and own.random() < mix.careless_slip:
        return own.choice(list(labels))
    if own.random() < ambiguity:
        return (
            second_reading
            if own.random() < mix.second_reading
            else own.choice([label for label in labels if label != truth])
        )
    return truth


def plan_scripted(
    examples: Sequence[Example], truths: Mapping[Place, str], task: Task, mix: CrowdMix, seed: int
) -> list[Planned]:
    """Return the pages of a scripted crowd: every group of ten examples in order goes to five workers.

    Raises BadInput for an example whose sentence carries no label: neither rating nor prediction stands in for one.
    """
    missing = [example for example in examples if _place(example) not in truths]
    if missing:
        raise BadInput(
            f"{len(missing)} of {len(examples)} examples carry no label of their own (first: {missing[0].text!r}); the "
            "scripted crowd answers around labels that sentences carry, so give --truth a file that has them, or replay"
        )
    if mix.workers < RESPONSES:
        raise BadInput(f"a crowd of {mix.workers} cannot give {RESPONSES} responses to an example; take more workers")
    planned = []
    for start in range(0, len(examples), PLACES):
        group = examples[start : start + PLACES]
        for number in crowd_of_page(start // PLACES, mix, seed):
            worker, kind = f"scripted-{number + 1}", kind_of_worker(number, mix, seed)
            answers = {}
            for e in group:
                label = scripted_label(truths[_place(e)], task.labels, kind, worker, e.text, mix, seed)
                answers[_id(e)] = Answer(label, task.scripted_form(label))
            planned.append(Planned(worker, answers))
    return planned


def plan_replayed(examples: Sequence[Example], recorded: Mapping[Place, Sequence[ReleasedResponse]]) -> list[Planned]:
    """Return the pages of a replayed crowd: each recorded worker gives in what this person answered, ten at a time.

    Raises BadInput for an example in whose place nobody's response is recorded.
    """
    of_worker: dict[str, dict[int, Answer]] = defaultdict(dict)
    for example in examples:
        responses = recorded.get(_place(example))
        if not responses:
            raise BadInput(
                f"no response is recorded for example {example.number} ({example.text!r}); replay another file"
            )
        for response in responses:
            of_worker[response.worker][_id(example)] = Answer(response.label, response.form)
    planned = []
    for worker, answers in sorted(of_worker.items()):
        ids = list(answers)
        for start in range(0, len(ids), PLACES):
            page = {example_id: answers[example_id] for example_id in ids[start : start + PLACES]}
            planned.append(Planned(f"replayed-{worker}", page))
    return planned


def run_crowd(
    engine: Engine,
    number: int,
    task: Task,
    kind: str,
    planned: Iterable[Planned],
    now: Callable[[], datetime],
    on_page: Callable[[], None],
    source: Mapping[str, Any],
) -> CrowdReport:
    """Give in the planned pages, one transaction each, leaving out what an interrupted run already gave in.

    What the crowd is made from (`source`) is kept as an event before the first page. Raises BadInput where the round
    was answered by another crowd or by people, IllegalMove where the round is not open (any more).
    """
    with writing(engine) as session:
        _begin(session, lock_open_round(session, number), kind, source, now())
    pages = responses = 0
    for plan in planned:
        with writing(engine) as session:
            round_ = lock_open_round(session, number)
            assert round_.id is not None
            worker = enlist(session, plan.worker, kind)
            had = set(
                session.exec(
                    select(Assignment.example_id).where(
                        Assignment.worker_id == worker.id, col(Assignment.example_id).in_(plan.answers)
                    )
                )
            )
            open_ids = [example_id for example_id in plan.answers if example_id not in had]
            if open_ids:
                page = hand_out(session, round_.id, worker, open_ids)
                give_in(session, task, page, {i: plan.answers[i] for i in open_ids}, now())
                pages, responses = pages + 1, responses + len(open_ids)
        on_page()
    with reading(engine) as session:
        return CrowdReport(pages, responses, _responses_in_all(session, number))


def _begin(session: Session, round_: Round, kind: str, source: Mapping[str, Any], at: datetime) -> None:
    require_kind(session, round_, kind)
    begun = session.exec(select(Event).where(Event.round_id == round_.id, Event.what == ANSWERS)).all()
    other = next((event.detail for event in begun if event.detail != source), None)
    if other is not None:
        differs = ", ".join(key for key in source if other.get(key) != source[key])
        raise BadInput(
            f"round {round_.number} has a crowd made otherwise (it differs in {differs}); go on with that one"
        )
    if not begun:
        record(session, round_.id, kind, ANSWERS, at, **source)


def examples_of(session: Session, round_id: int) -> list[Example]:
    """Return the examples of a round by number."""
    return list(session.exec(select(Example).where(Example.round_id == round_id).order_by(col(Example.number))))


def _responses_in_all(session: Session, number: int) -> int:
    query = (
        select(func.count(col(Response.id)))
        .join(Example, col(Response.example_id) == col(Example.id))
        .join(Round, col(Round.id) == col(Example.round_id))
    )
    return session.exec(query.where(Round.number == number)).one()


def _place(example: Example) -> Place:
    return example.review_id, example.span_start, example.span_end


def _id(example: Example) -> int:
    assert example.id is not None
    return example.id
