"""Human F1 from whole numbers that add up over items, to second order: what every bootstrap of it resamples."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dynaround.human import ResponseTable, response_counts
from dynaround.labels import RESPONSES
from dynaround.scoring import ratio_or_zero


def response_moments(table: ResponseTable) -> NDArray[np.int64]:
    """Return per item (items, 5 labels) what `f1_of_moments` reads the sums of, five columns a model label.

    One synthetic annotator draws one of an item's five responses. With a of them of the label, these are mean (a, in
    fifths) and variance (a (5 - a), in twenty-fifths) of its true positives if the label is gold, the same of its false
    positives if it is not, and whether it is gold.
    """
    counts = response_counts(table)
    true, false = counts.agreeing, counts.given - counts.agreeing
    parts = (true, true * (RESPONSES - true), false, false * (RESPONSES - false), counts.gold)
    return np.concatenate(parts, axis=1)


def f1_of_moments(sums: NDArray[Any]) -> NDArray[np.float64]:
    """Approximate the expected F1 of one synthetic annotator by label, 2T / (T + W + support), from sums of moments.

    The last axis of `sums` has their columns; resamples may stand before it, also in the result (..., labels). T, true
    positives, and W, false positives, are sums of independent draws. Taylor expansion to second order about the means
    (Rice 2007, sec. 4.6): the error falls with the square of the number of items and is below 1e-6 on the published
    rounds, where a convolution for every resample would take hours. Where no true or false positive and no gold item
    exist, it is 0.
    """
    columns = np.split(np.asarray(sums, dtype=np.float64), 5, axis=-1)
    true, false, support = columns[0] / RESPONSES, columns[2] / RESPONSES, columns[4]
    true_variance, false_variance = columns[1] / RESPONSES**2, columns[3] / RESPONSES**2
    total = true + false + support
    curvature = true * false_variance - (false + support) * true_variance
    return ratio_or_zero(2 * true, total) + ratio_or_zero(2 * curvature, total**3)
