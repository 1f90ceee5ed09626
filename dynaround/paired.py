"""Two models on the same items: McNemar's test, and the interval of their difference in macro F1."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.special import bdtr, chdtrc

from dynaround.errors import BadInput
from dynaround.intervals import CONFIDENCE, Interval, confusion_cells, confusion_f1, percentile_interval
from dynaround.resampling import RESAMPLES, resampled_sums, sums_by_cluster
from dynaround.scoring import score


class McNemar(NamedTuple):
    """Items that only one of two models has right, and how likely such a division is between equally good models.

    `exact_p` is the two-sided binomial test. `chi_squared` (continuity-corrected, one degree of freedom) and its
    `chi_squared_p` are undefined, None, where no item divides the models.
    """

    first_only: int
    second_only: int
    exact_p: float
    chi_squared: float | None
    chi_squared_p: float | None


class PairedDifference(NamedTuple):
    """Macro F1 of the first model minus that of the second, with the interval from resamples of so many clusters."""

    macro_f1: Interval
    clusters: int


def mcnemar(gold: Sequence[str], first: Sequence[str], second: Sequence[str]) -> McNemar:
    """Test whether two models are right equally often on the same items (McNemar 1947; correction: Edwards 1948).

    Every item counts as independent, so items of one review make the p values too small; `paired_difference` resamples
    whole reviews. Raises BadInput for sequences of unequal length.
    """
    if not len(gold) == len(first) == len(second):
        raise BadInput(
            f"there are {len(gold)} gold labels, {len(first)} and {len(second)} predictions; give one each per item"
        )
    rights = [(one == label, other == label) for label, one, other in zip(gold, first, second, strict=True)]
    return mcnemar_of_counts(rights.count((True, False)), rights.count((False, True)))


def mcnemar_of_counts(first_only: int, second_only: int) -> McNemar:
    """Return McNemar's test for so many items that only the first, and only the second, of two models has right.

    Raises BadInput for a negative number.
    """
    if min(first_only, second_only) < 0:
        raise BadInput(f"{first_only} and {second_only} items were given; items are counted from 0 on")
    discordant = first_only + second_only
    if not discordant:
        return McNemar(0, 0, 1.0, None, None)
    # Both tails, which share the middle when the numbers are equal: doubling alone would give more than 1.
    exact_p = min(1.0, 2 * float(bdtr(min(first_only, second_only), discordant, 0.5)))
    # A correction may take a difference to 0 but not past it, as in R; the bare formula gives 1 / n for equal numbers.
    chi_squared = max(0, abs(first_only - second_only) - 1) ** 2 / discordant
    return McNemar(first_only, second_only, exact_p, chi_squared, float(chdtrc(1, chi_squared)))


def paired_difference(
    gold: Sequence[str],
    first: Sequence[str],
    second: Sequence[str],
    labels: Sequence[str],
    clusters: Sequence[str | None] | None = None,
    *,
    seed: int,
    resamples: int = RESAMPLES,
    confidence: float = CONFIDENCE,
) -> PairedDifference:
    """Bootstrap the difference in macro F1 of two models, both scored on the same resamples of clusters.

    Clusters, errors and the kind of interval are those of `intervals.score_intervals`; models that never differ have
    the interval from 0 to 0.
    """
    estimate = score(gold, first, labels).macro_f1 - score(gold, second, labels).macro_f1
    cells = [confusion_cells(gold, predicted, labels) for predicted in (first, second)]
    per_cluster = sums_by_cluster(np.concatenate(cells, axis=1), clusters)
    sums = resampled_sums(per_cluster, seed=seed, resamples=resamples)
    of_first, of_second = (confusion_f1(part).mean(axis=1) for part in np.split(sums, 2, axis=1))
    return PairedDifference(percentile_interval(estimate, of_first - of_second, confidence), len(per_cluster))
