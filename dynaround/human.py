"""Human F1: five synthetic annotators against gold, as an exact expectation, as the published shuffle, or pooled."""

import random
from collections.abc import Iterable, Sequence
from itertools import chain
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray

from dynaround.errors import BadInput
from dynaround.labels import RESPONSES
from dynaround.scoring import LabelScore, label_indices, label_scores, ratio_or_zero

MixedGold = Literal["drop", "keep"]
"""Items whose gold label the model lacks are left out, or stay in, where their responses can only lower precision."""

HumanItem = tuple[str | None, Sequence[str]]
"""The gold label of an example or None, and its five responses."""

# A probability that 100,000 items cannot add up to a difference of 1e-9.
_NEGLIGIBLE = 1e-16
# Cells of the grid of true by false positives held at once (16 MB a piece).
_GRID_CELLS = 2_000_000


class HumanScores(NamedTuple):
    """The mean scores of the synthetic annotators and the procedure; macro values are plain means over the labels.

    `support` of a label is the number of its gold items, the same for each annotator. `annotator_macro_f1` has five
    values where annotators were formed, and is empty for an expectation or a pooled score.
    """

    per_label: tuple[LabelScore, ...]
    macro_precision: float
    macro_recall: float
    macro_f1: float
    procedure: str
    mixed_gold: MixedGold
    items_used: int
    annotator_macro_f1: tuple[float, ...]


class ResponseTable(NamedTuple):
    """The items that count, as places in the label order: `gold` (items,) and `responses` (items, 5).

    `used` (items,) are their places in the input; `columns` (model labels,) the places of the model's labels.
    """

    gold: NDArray[np.int64]
    responses: NDArray[np.int64]
    used: NDArray[np.int64]
    columns: NDArray[np.int64]


class ResponseCounts(NamedTuple):
    """Per item and model label (items, labels): responses with it, those on its gold items, and whether it is gold."""

    given: NDArray[np.int64]
    agreeing: NDArray[np.int64]
    gold: NDArray[np.int64]


class _Distribution(NamedTuple):
    """Probabilities of the whole numbers from `low` on."""

    low: int
    probs: NDArray[np.float64]


def response_table(
    items: Iterable[HumanItem], model_labels: Sequence[str], label_order: Sequence[str], mixed_gold: MixedGold = "drop"
) -> ResponseTable:
    """Return the items that count: those with a gold label, with ("keep") or without ("drop") those of mixed gold.

    Mixed is a gold label that `label_order` has and `model_labels` has not. Raises BadInput for another word than
    drop or keep, an unknown label, an item without exactly five responses, and when no item is left.
    """
    if mixed_gold not in get_args(MixedGold):
        raise BadInput(f"mixed_gold is {mixed_gold!r}; it is either 'drop' or 'keep'")
    columns = label_indices(model_labels, label_order, "model label")
    left_out = {None} if mixed_gold == "keep" else {None, *label_order} - set(model_labels)
    kept = [(place, gold, labels) for place, (gold, labels) in enumerate(items) if gold not in left_out]
    if not kept:
        raise BadInput("no item has a gold label to score people against; collect the missing responses first")
    known = set(label_order)
    for place, gold, labels in kept:
        if len(labels) != RESPONSES:
            raise BadInput(f"item {place + 1} has {len(labels)} responses; human scores need exactly {RESPONSES}")
        unknown = sorted({str(gold), *labels} - known)
        if unknown:
            raise BadInput(f"item {place + 1} has the label {unknown[0]!r}, which is none of {', '.join(label_order)}")
    golds = label_indices((str(gold) for _, gold, _ in kept), label_order, "gold label")
    responses = label_indices(chain.from_iterable(labels for _, _, labels in kept), label_order, "response")
    used = np.array([place for place, _, _ in kept], dtype=np.int64)
    return ResponseTable(golds, responses.reshape(len(kept), RESPONSES), used, columns)


def response_counts(table: ResponseTable) -> ResponseCounts:
    """Count the responses of each item by model label."""
    given = (table.responses[:, :, None] == table.columns).sum(axis=1)
    gold = (table.gold[:, None] == table.columns).astype(np.int64)
    return ResponseCounts(given, given * gold, gold)


def expected_human_scores(
    items: Iterable[HumanItem], model_labels: Sequence[str], label_order: Sequence[str], mixed_gold: MixedGold = "drop"
) -> HumanScores:
    """Return the exact expectation, over all shuffles, of the published scores (Potts et al. 2021, sec. 3.5).

    One annotator has one of an item's five responses, drawn evenly; so the true positives of a label are a sum of
    independent draws over its gold items, and its false positives one over all other items. Both distributions are
    convolutions of binomials, and the scores are averaged over them; a division by zero is 0. The error is below
    1e-9 up to 100,000 items. Raises BadInput as `response_table` does.
    """
    table = response_table(items, model_labels, label_order, mixed_gold)
    counts = response_counts(table)
    support = counts.gold.sum(axis=0)
    recall = ratio_or_zero(counts.agreeing.sum(axis=0), RESPONSES * support)
    expected = np.array(
        [
            _expected_precision_and_f1(given[gold == 1], given[gold == 0])
            for given, gold in zip(counts.given.T, counts.gold.T, strict=True)
        ]
    )
    rows = label_scores(model_labels, expected[:, 0], recall, expected[:, 1], support)
    return _human_scores(rows, "expectation over all shuffles", mixed_gold, len(table.gold))


def shuffled_human_scores(
    items: Iterable[HumanItem],
    model_labels: Sequence[str],
    label_order: Sequence[str],
    seed: int,
    mixed_gold: MixedGold = "drop",
) -> HumanScores:
    """Return the published run (seed 1): the responses of each item, in label order, shuffled over five annotators.

    One `random.Random(seed)` shuffles the items that count one after the other, so the order of the items matters
    here, and that of the responses within an item does not. Raises BadInput as `response_table` does.
    Source: `dynasent_utils.py` of the DynaSent authors.
    """
    table = response_table(items, model_labels, label_order, mixed_gold)
    generator = random.Random(seed)
    rows = np.sort(table.responses, axis=1).tolist()
    for row in rows:
        generator.shuffle(row)
    shuffled = table._replace(responses=np.array(rows, dtype=np.int64))
    return _annotator_scores(shuffled, model_labels, f"shuffled with seed {seed}", mixed_gold)


def unshuffled_human_scores(
    items: Iterable[HumanItem], model_labels: Sequence[str], label_order: Sequence[str], mixed_gold: MixedGold = "drop"
) -> HumanScores:
    """Score items whose responses already stand by annotator: position i is annotator i in every item.

    Not for responses that are listed by label, as in release files: that gives a wrong, too low macro F1.
    Raises BadInput as `response_table` does.
    """
    table = response_table(items, model_labels, label_order, mixed_gold)
    return _annotator_scores(table, model_labels, "columns as annotators, unshuffled", mixed_gold)


def pooled_human_scores(
    items: Iterable[HumanItem], model_labels: Sequence[str], label_order: Sequence[str], mixed_gold: MixedGold = "drop"
) -> HumanScores:
    """Score all responses as one annotator's: P = agreeing / given, F1 = 2 agreeing / (given + 5 gold items).

    The closed form that pools all responses; macro F1 differs from the expectation by less than 1e-4 on the published
    rounds. Raises BadInput as `response_table` does.
    """
    table = response_table(items, model_labels, label_order, mixed_gold)
    given, agreeing, support = (part.sum(axis=0) for part in response_counts(table))
    precision, recall = ratio_or_zero(agreeing, given), ratio_or_zero(agreeing, RESPONSES * support)
    f1 = ratio_or_zero(2 * agreeing, given + RESPONSES * support)
    rows = label_scores(model_labels, precision, recall, f1, support)
    return _human_scores(rows, "all responses pooled", mixed_gold, len(table.gold))


def _annotator_scores(
    table: ResponseTable, model_labels: Sequence[str], procedure: str, mixed_gold: MixedGold
) -> HumanScores:
    gold = table.gold[:, None] == table.columns
    # (items, annotators, labels), then (annotators, labels)
    given = table.responses[:, :, None] == table.columns
    predicted, right = given.sum(axis=0), (given & gold[:, None, :]).sum(axis=0)
    support = gold.sum(axis=0)
    precision, recall = ratio_or_zero(right, predicted), ratio_or_zero(right, support)
    f1 = ratio_or_zero(2 * right, predicted + support)
    rows = label_scores(model_labels, precision.mean(axis=0), recall.mean(axis=0), f1.mean(axis=0), support)
    return _human_scores(rows, procedure, mixed_gold, len(table.gold), tuple(f1.mean(axis=1).tolist()))


def _human_scores(
    rows: tuple[LabelScore, ...],
    procedure: str,
    mixed_gold: MixedGold,
    items_used: int,
    annotator_macro_f1: tuple[float, ...] = (),
) -> HumanScores:
    precision, recall, f1 = (float(np.mean([row[column] for row in rows])) for column in (1, 2, 3))
    return HumanScores(rows, precision, recall, f1, procedure, mixed_gold, items_used, annotator_macro_f1)


def _expected_precision_and_f1(on_gold: NDArray[np.int64], elsewhere: NDArray[np.int64]) -> tuple[float, float]:
    """Average over the true and false positives of one annotator; both arrays are responses with the label per item."""
    right, wrong = _sum_of_draws(on_gold), _sum_of_draws(elsewhere)
    false = wrong.low + np.arange(len(wrong.probs))
    step = max(1, _GRID_CELLS // len(false))
    precision = f1 = 0.0
    for start in range(0, len(right.probs), step):
        probs = right.probs[start : start + step]
        true = (right.low + start + np.arange(len(probs)))[:, None]
        precision += float(probs @ ratio_or_zero(true, true + false) @ wrong.probs)
        f1 += float(probs @ ratio_or_zero(2 * true, true + false + len(on_gold)) @ wrong.probs)
    return precision, f1


def _sum_of_draws(given: NDArray[np.int64]) -> _Distribution:
    """Return the distribution of how many items show the label when one of five responses is drawn from each."""
    items_by_count = np.bincount(given, minlength=RESPONSES + 1).tolist()
    low, probs = items_by_count[RESPONSES], np.ones(1)
    for count in range(1, RESPONSES):
        part = _binomial(items_by_count[count], count / RESPONSES)
        probs = np.convolve(probs, part.probs)
        low, probs = _without_tails(_Distribution(low + part.low, probs))
    return _Distribution(low, probs)


def _binomial(trials: int, chance: float) -> _Distribution:
    """Build the binomial from its mode outwards by ratios of neighbours: exact to rounding, where log-gamma is not."""
    mode = min(trials, int((trials + 1) * chance))
    above, below = np.arange(mode, trials), np.arange(mode, 0, -1)
    up = np.cumprod((trials - above) / (above + 1) * (chance / (1 - chance)))
    down = np.cumprod(below / (trials - below + 1) * ((1 - chance) / chance))
    probs = np.concatenate([down[::-1], [1.0], up])
    return _without_tails(_Distribution(0, probs / probs.sum()))


def _without_tails(distribution: _Distribution) -> _Distribution:
    kept: NDArray[Any] = np.flatnonzero(distribution.probs > _NEGLIGIBLE)
    first, last = int(kept[0]), int(kept[-1])
    return _Distribution(distribution.low + first, distribution.probs[first : last + 1])
