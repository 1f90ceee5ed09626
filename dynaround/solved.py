"""Is a round solved? The decision from a model's predictions and people's responses on the same items, in words too."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise
from typing import Any, NamedTuple

import numpy as np

from dynaround.errors import BadInput
from dynaround.human import HumanItem, HumanScores, expected_human_scores, response_table
from dynaround.human_moments import response_moments
from dynaround.labels import RESPONSES
from dynaround.paired_resampling import Bounds, bounds_of, differences, model_counts, worker_bounds
from dynaround.resampling import resampled_sums, sums_by_cluster
from dynaround.scoring import Scores, label_indices, score
from dynaround.solved_power import items_called_solved
from dynaround.text import natural_order

SOLVED = "solved"
NOT_SOLVED = "not solved"
UNDECIDED = "undecided"

RESAMPLES = 10_000


class JudgedItem(NamedTuple):
    """One item of a split: its gold label, the model's prediction, and (worker, label) of its five responses.

    Items of one `cluster` (a review, a prompt) are resampled together; None: a cluster of its own.
    """

    identity: str
    split: str
    gold: str
    prediction: str
    responses: tuple[tuple[str, str], ...]
    cluster: str | None


class Comparison(NamedTuple):
    """Model and people on the same items of one split or several, and what the bounds of the difference say."""

    on: str
    items: int
    clusters: int
    model: Scores
    people: HumanScores
    bounds: Bounds
    answer: str

    @property
    def difference(self) -> float:
        """Macro F1 of the model minus human macro F1."""
        return self.model.macro_f1 - self.people.macro_f1


class WithWorkers(NamedTuple):
    """The bounds when as many workers as there are get drawn together with the items, and what they would say."""

    workers: int
    bounds: Bounds
    answer: str


@dataclass(frozen=True)
class SolvedAnswer:
    """The answer and all it rests on: `together` decides, `splits` and `with_workers` stand beside it.

    `items_for_80` is the number of items, all judged splits together, at which a model as good as people is called
    solved with 80 % chance. `warning` names in a sentence the splits that point apart; None where none do.
    """

    answer: str
    margin: float
    seed: int
    resamples: int
    together: Comparison
    splits: tuple[Comparison, ...]
    with_workers: WithWorkers
    items_for_80: int
    warning: str | None


def decide(
    items: Sequence[JudgedItem],
    model_labels: Sequence[str],
    label_order: Sequence[str],
    *,
    margin: float,
    seed: int,
    resamples: int = RESAMPLES,
) -> SolvedAnswer:
    """Say whether a model does as well as people on the same items, within a margin of macro F1 (.02: two points).

    The difference is macro F1 of the model minus human macro F1, the exact expectation over the synthetic annotators;
    in every resample of clusters it is the expectation to second order, moved by what this differs from the exact one
    on the items as they are. With its 5th and 95th percentile, two one-sided 95 % bounds, the round is solved if the
    lower one is above minus the margin, not solved if the upper one is below it, else undecided. All splits together
    decide. Two splits point apart when their bounds do not overlap; with splits of one size and nothing but chance
    between them that happens once in 50 rounds.

    The order of items and responses does not matter. Raises BadInput for a margin that is not between 0 and 1, no
    items, an identity that comes twice, a gold label or prediction that the model does not have, an unknown label,
    another number of responses than five, and where all items, or all of one split, are of a single cluster.
    """
    ordered = sorted(items, key=lambda item: item.identity)
    _require_judgeable(ordered, model_labels, margin)
    question = _Question(model_labels, label_order, margin, seed, resamples)
    names = sorted({item.split for item in ordered})
    splits = tuple(_compared(name, [item for item in ordered if item.split == name], question) for name in names)
    together = splits[0] if len(splits) == 1 else _compared(" and ".join(names), ordered, question)
    return SolvedAnswer(
        answer=together.answer,
        margin=margin,
        seed=seed,
        resamples=resamples,
        together=together,
        splits=splits,
        with_workers=_with_workers(ordered, question, together.difference),
        items_for_80=items_called_solved(0.8, margin, together.bounds.standard_error * math.sqrt(len(ordered))),
        warning=_warning(splits),
    )


def answer_at(bounds: Bounds, margin: float) -> str:
    """Return solved, not solved or undecided for the bounds of a difference."""
    if bounds.lower > -margin:
        return SOLVED
    return NOT_SOLVED if bounds.upper < -margin else UNDECIDED


class _Question(NamedTuple):
    model_labels: Sequence[str]
    label_order: Sequence[str]
    margin: float
    seed: int
    resamples: int


def _require_judgeable(items: Sequence[JudgedItem], model_labels: Sequence[str], margin: float) -> None:
    if not 0 < margin < 1:
        raise BadInput(f"the margin is {margin}; give a share between 0 and 1, such as 0.02")
    if not items:
        raise BadInput("there is no item to judge model and people on; name a split that holds some")
    for one, other in pairwise(items):
        if one.identity == other.identity:
            raise BadInput(f"item {one.identity} is there twice; give each item once")
    for item in items:
        if item.gold not in model_labels:
            raise BadInput(
                f"item {item.identity} has the gold label {item.gold!r}, which is none of {', '.join(model_labels)}; "
                "judge only items with a gold label that the model has"
            )
        if len(item.responses) != RESPONSES:
            raise BadInput(
                f"item {item.identity} has {len(item.responses)} responses; human scores need exactly {RESPONSES}"
            )


def _compared(on: str, items: Sequence[JudgedItem], question: _Question) -> Comparison:
    labels = question.model_labels, question.label_order
    answered, predictions = _answered(items), [item.prediction for item in items]
    model = score([item.gold for item in items], predictions, question.model_labels)
    people = expected_human_scores(answered, *labels)
    table = response_table(answered, *labels)
    predicted = label_indices(predictions, question.model_labels, "prediction")
    sides = response_moments(table), model_counts(table, predicted)
    try:
        per_cluster = sums_by_cluster(np.concatenate(sides, axis=1), [item.cluster for item in items])
    except BadInput as error:
        raise BadInput(f"{on}: {error}") from None
    sums = resampled_sums(per_cluster, seed=question.seed, resamples=question.resamples)
    once = per_cluster.sum(axis=0, keepdims=True)
    values, (second_order,) = (differences(*np.split(part, [sides[0].shape[1]], axis=1)) for part in (sums, once))
    bounds = bounds_of(values, model.macro_f1 - people.macro_f1 - float(second_order))
    return Comparison(on, len(items), len(per_cluster), model, people, bounds, answer_at(bounds, question.margin))


def _with_workers(items: Sequence[JudgedItem], question: _Question, difference: float) -> WithWorkers:
    workers = sorted({worker for item in items for worker, _ in item.responses}, key=natural_order)
    numbers = {worker: number for number, worker in enumerate(workers)}
    answering = [numbers[worker] for item in items for worker, _ in item.responses]
    clusters: dict[tuple[str | None, str], int] = {}
    keys = [(item.cluster, item.identity if item.cluster is None else "") for item in items]
    bounds = worker_bounds(
        response_table(_answered(items), question.model_labels, question.label_order),
        label_indices((item.prediction for item in items), question.model_labels, "prediction"),
        np.array([clusters.setdefault(key, len(clusters)) for key in keys]),
        np.array(answering).reshape(len(items), RESPONSES),
        difference=difference,
        seed=question.seed,
        resamples=question.resamples,
    )
    return WithWorkers(len(workers), bounds, answer_at(bounds, question.margin))


def _answered(items: Sequence[JudgedItem]) -> list[HumanItem]:
    return [(item.gold, [label for _, label in item.responses]) for item in items]


def _warning(splits: Sequence[Comparison]) -> str | None:
    for one, other in combinations(splits, 2):
        low, high = sorted((one, other), key=lambda split: split.difference)
        if low.bounds.upper < high.bounds.lower:
            return (
                f"{low.on} and {high.on} point apart: the difference is {low.difference:+.4f} ({low.answer}) on "
                f"{low.on} and {high.difference:+.4f} ({high.answer}) on {high.on}, and their bounds do not overlap; "
                "find out why before you rely on the answer"
            )
    return None


def plain(answer: SolvedAnswer) -> dict[str, Any]:
    """Return an answer as plain data, for JSON, database and pages; the caller adds `responses_from`: who answered."""
    with_workers = answer.with_workers
    return {
        "answer": answer.answer,
        "margin": answer.margin,
        "seed": answer.seed,
        "resamples": answer.resamples,
        "together": _plain_comparison(answer.together),
        "splits": [_plain_comparison(split) for split in answer.splits],
        "with_workers": {"workers": with_workers.workers, **_plain_bounds(with_workers.bounds, with_workers.answer)},
        "items_for_80": answer.items_for_80,
        "warning": answer.warning,
    }


def _plain_comparison(one: Comparison) -> dict[str, Any]:
    return {
        "on": one.on,
        "items": one.items,
        "clusters": one.clusters,
        "model": _plain_scores(one.model),
        # Not named after people: who labelled them may be a crowd.
        "labelled_by": _plain_scores(one.people),
        "difference": one.difference,
        **_plain_bounds(one.bounds, one.answer),
    }


def _plain_scores(scores: Scores | HumanScores) -> dict[str, Any]:
    return {"macro_f1": scores.macro_f1, "per_label": {row.label: row._asdict() for row in scores.per_label}}


def _plain_bounds(bounds: Bounds, answer: str) -> dict[str, Any]:
    return {**bounds._asdict(), "half_width": bounds.half_width, "answer": answer}


def answer_lines(check: Mapping[str, Any]) -> Iterator[str]:
    """Yield a plain answer as lines of text; its key `responses_from` says who answered, people or a crowd."""
    who, together, margin = check["responses_from"], check["together"], f"{check['margin']:g}"
    meanings = {
        SOLVED: f"even the lower bound is above -{margin}: the model does as well as {who}, within the margin",
        NOT_SOLVED: f"even the upper bound is below -{margin}: the model does worse than {who}",
        UNDECIDED: f"-{margin} lies between the bounds: these items cannot tell",
    }
    yield f"{check['answer']}: {meanings[check['answer']]}"
    yield f"macro F1 of the model minus that of {who}, with one-sided 95 % bounds ({check['resamples']} resamples)"
    for one in (together, *(check["splits"] if len(check["splits"]) > 1 else ())):
        yield (
            f"  {one['on']:12} {one['items']:6} items of {one['clusters']:6} sources  "
            f"{one['model']['macro_f1']:.4f} - {one['labelled_by']['macro_f1']:.4f} = "
            f"{_with_bounds(one['difference'], one)}"
        )
    with_workers = check["with_workers"]
    yield (
        f"items and workers resampled together ({with_workers['workers']} workers): "
        f"{_with_bounds(together['difference'], with_workers)}; gold itself is not re-drawn"
    )
    yield (
        f"half-width reached {together['half_width']:.4f}; a model as good as {who}, with scores that spread as these "
        f"do, is called solved with 80 % chance from {check['items_for_80']} items on, all judged splits together"
    )
    if check["warning"]:
        yield f"warning: {check['warning']}"


def _with_bounds(difference: float, one: Mapping[str, Any]) -> str:
    return f"{difference:+.4f} [{one['lower']:+.4f}, {one['upper']:+.4f}] {one['answer']}"
