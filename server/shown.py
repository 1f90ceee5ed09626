"""What the pages show, as plain rows made from stored facts: nothing of workers, nothing of the launcher's disk."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from sqlmodel import Session, col, func, select

from dynaround.labels import label_distribution
from dynaround.release_file import text_id
from dynaround.tables import CLOSED, DRAFTED, OPEN, Example, Placement, Response, Retention, Round, Worker
from dynaround.task import Task
from rounds.releasing import responses_from

NOT_LISTED = "test"
"""The split of which pages tell only counts: models are judged on it, so nobody should read it while making one."""

WRONG, RIGHT = "wrong", "right"


class Step(NamedTuple):
    """What the launcher does next with a round: why, and the command (None: nothing to run)."""

    why: str
    command: str | None


class Outcome(NamedTuple):
    """What the retained responses of a released example say; `model` is wrong or right, None where gold cannot tell."""

    example_id: int
    split: str
    prediction: str
    distribution: Mapping[str, int]
    gold: str | None
    model: str | None


class ShownExample(NamedTuple):
    """What a page tells of a released example: nothing of who answered, and nothing of the review but its rating."""

    outcome: Outcome
    text_id: str
    sentence: str
    probability: float
    rating: int | None


def listed_outcomes(session: Session, round_id: int, task: Task) -> list[Outcome]:
    """Return the outcomes of a round's released examples by number, without those of the split that is not listed."""
    # Plain columns, not rows of tables: a page of 25 must not cost the objects of all responses of a round.
    labels: dict[int, list[str]] = {}
    responses = session.exec(
        select(Response.example_id, Response.label)
        .join(Retention, col(Retention.response_id) == col(Response.id))
        .join(Placement, col(Placement.example_id) == col(Response.example_id))
        .join(Example, col(Example.id) == col(Response.example_id))
        .where(Example.round_id == round_id, Placement.split != NOT_LISTED)
    )
    for example_id, label in responses:
        labels.setdefault(example_id, []).append(label)
    examples = session.exec(
        select(Placement.example_id, Placement.split, Example.prediction)
        .join(Example, col(Example.id) == col(Placement.example_id))
        .where(Example.round_id == round_id, Placement.split != NOT_LISTED)
        .order_by(col(Example.number))
    )
    return [_outcome(*example, labels[example[0]], task) for example in examples]


def _outcome(example_id: int, split: str, prediction: str, labels: Sequence[str], task: Task) -> Outcome:
    gold = task.gold(labels).label
    model = (RIGHT if prediction == gold else WRONG) if gold in task.model_labels else None
    return Outcome(example_id, split, prediction, label_distribution(labels, task.labels), gold, model)


def shown_examples(session: Session, round_: Round, outcomes: Sequence[Outcome]) -> list[ShownExample]:
    """Return the examples of some outcomes, in their order."""
    ids = [outcome.example_id for outcome in outcomes]
    examples = {e.id: e for e in session.exec(select(Example).where(col(Example.id).in_(ids)))}
    shown = []
    for outcome in outcomes:
        example = examples[outcome.example_id]
        identity = text_id(round_.number, example.number)
        shown.append(ShownExample(outcome, identity, example.text, example.probs[example.prediction], example.rating))
    return shown


def count_not_listed(session: Session, round_id: int) -> int:
    """Return how many released examples of a round stand in the split that is not listed."""
    return session.exec(
        select(func.count())
        .select_from(Placement)
        .join(Example, col(Example.id) == col(Placement.example_id))
        .where(Example.round_id == round_id, Placement.split == NOT_LISTED)
    ).one()


def who_answered(session: Session, round_: Round) -> str | None:
    """Say who the responses of a round are from: people, or a crowd that is none; None without any response."""
    kinds = session.exec(
        select(Worker.kind)
        .join(Response, col(Response.worker_id) == col(Worker.id))
        .join(Example, col(Response.example_id) == col(Example.id))
        .where(Example.round_id == round_.id)
        .distinct()
    )
    return responses_from(sorted(kinds)) or None


def pool_table(pool: Mapping[str, Any], task: Task) -> dict[str, dict[str, int]]:
    """Return the counts of the pool by rating and, in the order of the task, by prediction."""
    return {
        rating: {label: by_label.get(label, 0) for label in task.model_labels}
        for rating, by_label in pool["by_rating_and_prediction"].items()
    }


def next_steps(figures: Mapping[str, Any], last: bool) -> list[Step]:
    """Return what the launcher does next with a round, in order; `last`: no later round is open yet."""
    number, state = figures["round"], figures["state"]
    if state == DRAFTED:
        return [Step("It is drafted; it is not open yet.", None)]
    if state == OPEN and not figures["examples"]:
        return [Step("Draw its examples from the reviews.", f"dynaround round harvest {number}")]
    if state == OPEN and figures["still_wanted"]:
        return [
            Step(
                f"Bring in the {figures['still_wanted']:,} responses still wanted.",
                f"dynaround workers import {number} FILE",
            ),
            Step("Or let a crowd that is not people answer.", f"dynaround workers simulate {number} --truth FILE"),
        ]
    if state == OPEN and figures["held"]:
        return [Step(f"Decide on the {figures['held']:,} examples that are held, on the live page.", None)]
    if state == OPEN:
        return [Step("Every example has its responses; end the collection.", f"dynaround round close {number}")]
    if state == CLOSED:
        return [Step("Write its frozen, anonymous files.", f"dynaround round release {number}")]
    if not last:
        return []
    release, model = f"release:releases/round-{number}", f"model-{number}"
    return [
        Step(
            "Train the next model, also on this release.",
            f"dynaround train --corpus KIND:PATH --corpus {release} --name {model}",
        ),
        Step("Then judge it.", f"dynaround evaluate {figures['target_model']} {model} --on {release}"),
        Step(
            "Then open the next round against it.",
            f"dynaround round open --target {model} --reviews KIND:FILE --size N",
        ),
    ]
