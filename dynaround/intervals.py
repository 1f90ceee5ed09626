"""How uncertain a score or an agreement is: seeded percentile bootstraps that resample whole clusters, as reviews."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dynaround.agreement import Agreement, CountTable, fleiss_kappa, krippendorff_alpha
from dynaround.errors import BadInput
from dynaround.human import HumanItem, MixedGold, expected_human_scores, response_table
from dynaround.human_moments import f1_of_moments, response_moments
from dynaround.resampling import RESAMPLES, require_one_key_each, resampled_sums, sums_by_cluster
from dynaround.scoring import label_indices, ratio_or_zero, score

CONFIDENCE = 0.95


class Interval(NamedTuple):
    """A score on all items, and the percentile interval of its resamples at this confidence."""

    estimate: float
    low: float
    high: float
    confidence: float
    resamples: int


class ScoreIntervals(NamedTuple):
    """The intervals of a model's scores, from the same resamples of so many clusters; `f1` has one per label."""

    macro_f1: Interval
    accuracy: Interval
    clusters: int
    f1: dict[str, Interval]


class AgreementInterval(NamedTuple):
    """A coefficient with its interval, or None and the reason why there is none.

    `left_out` resamples are not in the interval: they had responses of one label only, or none to compare.
    """

    coefficient: Agreement
    interval: Interval | None
    reason: str | None
    left_out: int


class AgreementIntervals(NamedTuple):
    """Both coefficients of one table, from the same resamples."""

    fleiss_kappa: AgreementInterval
    krippendorff_alpha: AgreementInterval


def score_intervals(
    gold: Sequence[str],
    predicted: Sequence[str],
    labels: Sequence[str],
    clusters: Sequence[str | None] | None = None,
    *,
    seed: int,
    resamples: int = RESAMPLES,
    confidence: float = CONFIDENCE,
) -> ScoreIntervals:
    """Bootstrap the F1 and accuracy of predictions, drawing as many clusters as there are with replacement.

    `clusters` has one key per item (its review); items with the key None, or without `clusters` at all, each are a
    cluster of their own. The order of the items does not matter. Raises BadInput as `scoring.score` does, for another
    number of keys than items, and for a single cluster: it would look certain where nothing is known. Percentile
    bootstrap: Efron and Tibshirani 1993, ch. 13; it has a value, of no width, also where all resamples are the same.
    The bias-corrected one (BCa) is not offered: there it is undefined.
    """
    scores = score(gold, predicted, labels)
    per_cluster = sums_by_cluster(confusion_cells(gold, predicted, labels), clusters)
    sums = resampled_sums(per_cluster, seed=seed, resamples=resamples)
    f1 = confusion_f1(sums)
    right = sums[:, :: len(labels) + 1].sum(axis=1)
    return ScoreIntervals(
        percentile_interval(scores.macro_f1, f1.mean(axis=1), confidence),
        percentile_interval(scores.accuracy, right / sums.sum(axis=1), confidence),
        len(per_cluster),
        {
            row.label: percentile_interval(row.f1, values, confidence)
            for row, values in zip(scores.per_label, f1.T, strict=True)
        },
    )


def human_interval(
    items: Sequence[HumanItem],
    model_labels: Sequence[str],
    label_order: Sequence[str],
    clusters: Sequence[str | None] | None = None,
    *,
    seed: int,
    mixed_gold: MixedGold = "drop",
    resamples: int = RESAMPLES,
    confidence: float = CONFIDENCE,
) -> Interval:
    """Bootstrap human macro F1 over clusters as `score_intervals` does; keys stand for all items, used or not.

    The estimate is the exact expectation of `human.expected_human_scores`. The resamples have it to second order
    (`human_moments.f1_of_moments`): nearer than 1e-6 from about 1,000 items on, than 2e-5 at 200 and 2e-4 at 60, always
    far less than the interval is wide. Raises BadInput as `human.response_table` and `score_intervals` do.
    """
    table = response_table(items, model_labels, label_order, mixed_gold)
    if clusters is not None:
        require_one_key_each(clusters, len(items))
        clusters = [clusters[place] for place in table.used]
    per_cluster = sums_by_cluster(response_moments(table), clusters)
    f1 = f1_of_moments(resampled_sums(per_cluster, seed=seed, resamples=resamples))
    estimate = expected_human_scores(items, model_labels, label_order, mixed_gold).macro_f1
    return percentile_interval(estimate, f1.mean(axis=1), confidence)


def agreement_intervals(
    table: CountTable,
    clusters: Sequence[str | None] | None = None,
    *,
    seed: int,
    resamples: int = RESAMPLES,
    confidence: float = CONFIDENCE,
) -> AgreementIntervals:
    """Bootstrap Fleiss' kappa and Krippendorff's alpha over clusters of examples, as `score_intervals` does.

    `clusters` has one key per row of the table. Where a coefficient or its interval is undefined, or kappa meets rows
    with unequal numbers of responses, or all rows are of one cluster, the result has the reason instead. Raises
    BadInput for another number of keys than rows and as `resampled_sums` and `percentile_interval` do, TypeError as
    `fleiss_kappa` does.
    """
    alpha = krippendorff_alpha(table)
    try:
        kappa = fleiss_kappa(table)
    except BadInput as unequal:
        kappa = Agreement(None, str(unequal), None, None)
    require_one_key_each([None] * len(table.rows) if clusters is None else clusters, len(table.rows))
    per_row, sizes = _agreement_counts(table)
    try:
        per_cluster = sums_by_cluster(per_row, clusters)
    except BadInput as single:
        return AgreementIntervals(*(AgreementInterval(c, None, c.reason or str(single), 0) for c in (kappa, alpha)))
    sums = resampled_sums(per_cluster, seed=seed, resamples=resamples)
    by_label = sums[:, len(sizes) :]
    # A resample of one label only, or of nothing comparable, has no coefficient.
    defined = by_label.max(axis=1) < by_label.sum(axis=1)
    by_label, pairs = by_label[defined], sums[defined, : len(sizes)]
    responses = by_label.sum(axis=1)
    observed = (pairs / (sizes - 1)).sum(axis=1) / responses
    by_chance = (by_label**2).sum(axis=1) / responses**2
    without_itself = (by_label * (by_label - 1)).sum(axis=1) / (responses * (responses - 1))
    return AgreementIntervals(
        _agreement_interval(kappa, observed, by_chance, resamples, confidence),
        _agreement_interval(alpha, observed, without_itself, resamples, confidence),
    )


def confusion_cells(gold: Sequence[str], predicted: Sequence[str], labels: Sequence[str]) -> NDArray[np.int64]:
    """Return a row per item (items, labels x labels) with 1 in the cell of its gold label and prediction."""
    cells = label_indices(gold, labels, "gold label") * len(labels) + label_indices(predicted, labels, "prediction")
    per_item: NDArray[np.int64] = np.eye(len(labels) ** 2, dtype=np.int64)[cells]
    return per_item


def confusion_f1(sums: NDArray[Any]) -> NDArray[np.float64]:
    """Return the F1 of each label (resamples, labels) from sums of confusion cells (resamples, labels x labels)."""
    width = round(sums.shape[1] ** 0.5)
    cells = sums.reshape(-1, width, width)
    return ratio_or_zero(2 * np.diagonal(cells, axis1=1, axis2=2), cells.sum(axis=1) + cells.sum(axis=2))


def percentile_interval(estimate: float, values: NDArray[np.float64], confidence: float = CONFIDENCE) -> Interval:
    """Return the estimate with the percentile interval of its resamples; raise BadInput for a senseless confidence."""
    if not 0 < confidence < 1:
        raise BadInput(f"confidence is {confidence}; give a share between 0 and 1, such as 0.95")
    low, high = np.quantile(values, [(1 - confidence) / 2, (1 + confidence) / 2])
    return Interval(estimate, float(low), float(high), confidence, len(values))


def _agreement_counts(table: CountTable) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return per row its agreeing pairs, in one column per number of responses, and its labels; and those numbers."""
    counts = np.array(table.rows, dtype=np.int64).reshape(len(table.rows), len(table.labels))
    totals = counts.sum(axis=1)
    sizes = np.unique(totals[totals >= 2])
    pairs = (counts * (counts - 1)).sum(axis=1)
    columns = (pairs[:, None] * (totals[:, None] == sizes), counts * (totals[:, None] >= 2))
    return np.concatenate(columns, axis=1), sizes


def _agreement_interval(
    coefficient: Agreement,
    observed: NDArray[np.float64],
    expected: NDArray[np.float64],
    resamples: int,
    confidence: float,
) -> AgreementInterval:
    left_out = resamples - len(observed)
    if coefficient.value is None:
        return AgreementInterval(coefficient, None, coefficient.reason, left_out)
    if not len(observed):
        return AgreementInterval(
            coefficient, None, "undefined: every resample has responses of one label only", left_out
        )
    values = (observed - expected) / (1 - expected)
    return AgreementInterval(coefficient, percentile_interval(coefficient.value, values, confidence), None, left_out)
