"""Labels against gold labels: precision, recall, F1, confusion counts, fooling rates and the size of winning votes."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dynaround.errors import BadInput
from dynaround.labels import MAJORITY, RESPONSES, gold_label


class LabelScore(NamedTuple):
    """One label's row of a table of scores; `support` is the number of items with this gold label."""

    label: str
    precision: float
    recall: float
    f1: float
    support: int


@dataclass(frozen=True)
class ConfusionCounts:
    """How many items have which gold label (row) and prediction (column), rows and columns in the order of `labels`."""

    labels: tuple[str, ...]
    counts: tuple[tuple[int, ...], ...]

    def cell(self, gold: str, predicted: str) -> int:
        """Return the number of items with this gold label and this prediction."""
        return self.counts[self.labels.index(gold)][self.labels.index(predicted)]

    @property
    def items(self) -> int:
        """The number of items in all cells."""
        return sum(map(sum, self.counts))


@dataclass(frozen=True)
class Scores:
    """The scores of one sequence of predictions; the macro values are plain means over all labels."""

    per_label: tuple[LabelScore, ...]
    macro_precision: float
    macro_recall: float
    macro_f1: float
    accuracy: float
    confusion: ConfusionCounts


class FoolingRate(NamedTuple):
    """A share of examples that fooled the model, with its rule in words; there is no rate over no examples."""

    numerator: int
    denominator: int
    rate: float | None
    rule: str


class FoolingRates(NamedTuple):
    """The same examples under four definitions; only `published` compares with the figures of DynaSent."""

    published: FoolingRate
    model_labels_only: FoolingRate
    lacked_labels_as_errors: FoolingRate
    over_all: FoolingRate


class WinningVotes(NamedTuple):
    """How large the winning votes are; `agreeing` of the `responses` on examples with a gold label agree with it."""

    sizes: Mapping[int, int]
    no_majority: int
    pending: int
    agreeing: int
    responses: int
    accuracy: float | None


def label_indices(values: Iterable[str], labels: Sequence[str], what: str) -> NDArray[np.int64]:
    """Return each value's place in `labels`; raise BadInput naming the first value (a `what`) that is not there."""
    index = {label: place for place, label in enumerate(labels)}
    if len(index) != len(labels):
        raise BadInput(f"labels {', '.join(labels)} name one twice; give each label once")
    known = list(values)
    places = [index.get(value, -1) for value in known]
    if -1 in places:
        at = places.index(-1)
        raise BadInput(f"{what} {at + 1} is {known[at]!r}, which is none of {', '.join(labels)}")
    return np.array(places, dtype=np.int64)


def ratio_or_zero(numerator: NDArray[Any], denominator: NDArray[Any]) -> NDArray[np.float64]:
    """Divide arrays that broadcast; where the denominator is 0 the ratio is 0, as for a label that never occurs."""
    top, bottom = np.broadcast_arrays(np.asarray(numerator, float), np.asarray(denominator, float))
    ratio: NDArray[np.float64] = np.divide(top, bottom, out=np.zeros(bottom.shape), where=bottom != 0)
    return ratio


def confusion_counts(gold: Sequence[str], predicted: Sequence[str], labels: Sequence[str]) -> ConfusionCounts:
    """Count pairs of gold label and prediction; every cell is present, also the empty ones.

    Raises BadInput for sequences of unequal length, for none at all and for a label that `labels` does not have.
    """
    if len(gold) != len(predicted):
        raise BadInput(f"there are {len(gold)} gold labels and {len(predicted)} predictions; give one each per item")
    if not gold:
        raise BadInput("there is nothing to score: no gold labels and no predictions were given")
    width = len(labels)
    cells = label_indices(gold, labels, "gold label") * width + label_indices(predicted, labels, "prediction")
    counts = np.bincount(cells, minlength=width * width).reshape(width, width)
    return ConfusionCounts(tuple(labels), tuple(tuple(row) for row in counts.tolist()))


def score(gold: Sequence[str], predicted: Sequence[str], labels: Sequence[str]) -> Scores:
    """Score predictions against gold labels; raises BadInput as `confusion_counts` does.

    A label that never occurs counts in the macro values with 0, and a division by zero is 0.
    """
    return score_confusion(confusion_counts(gold, predicted, labels))


def score_confusion(confusion: ConfusionCounts) -> Scores:
    """Score confusion counts; raises BadInput when they count no item."""
    counts = np.array(confusion.counts, dtype=np.int64)
    if not counts.sum():
        raise BadInput("there is nothing to score: the confusion counts hold no item")
    right, predicted, support = np.diag(counts), counts.sum(axis=0), counts.sum(axis=1)
    precision, recall = ratio_or_zero(right, predicted), ratio_or_zero(right, support)
    f1 = ratio_or_zero(2 * right, predicted + support)
    return Scores(
        per_label=label_scores(confusion.labels, precision, recall, f1, support),
        macro_precision=float(precision.mean()),
        macro_recall=float(recall.mean()),
        macro_f1=float(f1.mean()),
        accuracy=int(right.sum()) / int(counts.sum()),
        confusion=confusion,
    )


def label_scores(
    labels: Sequence[str],
    precision: NDArray[np.float64],
    recall: NDArray[np.float64],
    f1: NDArray[np.float64],
    support: NDArray[np.int64],
) -> tuple[LabelScore, ...]:
    """Put arrays with one value per label into rows of plain numbers."""
    columns = (precision.tolist(), recall.tolist(), f1.tolist(), support.tolist())
    return tuple(LabelScore(*row) for row in zip(labels, *columns, strict=True))


def fooling_rates(pairs: Iterable[tuple[str | None, str]], model_labels: Sequence[str]) -> FoolingRates:
    """Return the share of model errors among (gold label or None, prediction) pairs, under four definitions.

    The published denominator holds the examples whose gold label the model lacks (those of mixed gold) though none of
    them can stand in the numerator (`dynasent_utils.py`); examples without a gold label are in neither.
    Raises BadInput for a prediction that is not in `model_labels`.
    """
    counts = Counter(pairs)
    unknown = sorted({predicted for _, predicted in counts} - set(model_labels))
    if unknown:
        raise BadInput(f"prediction {unknown[0]!r} is none of {', '.join(model_labels)}")
    total = counts.total()
    missing = sum(count for (gold, _), count in counts.items() if gold is None)
    of_model = sum(count for (gold, _), count in counts.items() if gold in model_labels)
    lacked = total - missing - of_model
    errors = sum(count for (gold, predicted), count in counts.items() if gold in model_labels and gold != predicted)
    return FoolingRates(
        published=_fooling(
            errors,
            of_model + lacked,
            "model errors over all examples with a gold label, also one that the model lacks",
        ),
        model_labels_only=_fooling(errors, of_model, "model errors over examples whose gold label the model has"),
        lacked_labels_as_errors=_fooling(
            errors + lacked,
            of_model + lacked,
            "model errors and all examples whose gold label the model lacks, over all examples with a gold label",
        ),
        over_all=_fooling(errors, total, "model errors over all examples collected, with or without a gold label"),
    )


def winning_votes(
    distributions: Iterable[Mapping[str, int]], *, majority: int = MAJORITY, responses: int = RESPONSES
) -> WinningVotes:
    """Count the examples by the size of their winning vote, from unanimous down to `majority`, all sizes present.

    Raises BadInput for an example with more than `responses` responses (see `labels.gold_label`).
    """
    sizes = dict.fromkeys(range(responses, majority - 1, -1), 0)
    no_majority = pending = 0
    for distribution in distributions:
        gold = gold_label(distribution, majority=majority, responses=responses)
        if gold.label is not None:
            sizes[distribution[gold.label]] += 1
        elif gold.pending:
            pending += 1
        else:
            no_majority += 1
    agreeing = sum(size * examples for size, examples in sizes.items())
    total = responses * sum(sizes.values())
    return WinningVotes(sizes, no_majority, pending, agreeing, total, agreeing / total if total else None)


def _fooling(numerator: int, denominator: int, rule: str) -> FoolingRate:
    return FoolingRate(numerator, denominator, numerator / denominator if denominator else None, rule)
