"""How far a model's probabilities can be believed: a reliability table, its error, and a temperature that lowers it."""

from collections.abc import Sequence
from math import log
from typing import NamedTuple

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import log_softmax

from dynaround.errors import BadInput

BINS = 15
"""As Guo et al. 2017, sec. 5."""


class ReliabilityBin(NamedTuple):
    """The predictions whose probability lies above `low` and not above `high`; of none, mean and accuracy are None."""

    low: float
    high: float
    items: int
    mean_probability: float | None
    accuracy: float | None


class Calibration(NamedTuple):
    """The bins from 0 to 1, also the empty ones; `error` is the expected calibration error, from 0 (best) to 1."""

    bins: tuple[ReliabilityBin, ...]
    items: int
    mean_probability: float
    accuracy: float
    error: float


def calibration(probabilities: Sequence[float], right: Sequence[bool], *, bins: int = BINS) -> Calibration:
    """Compare the probability of each predicted label with how often such predictions are right.

    `right` says of each item whether its prediction is the gold label. Bins have equal widths and hold their upper
    edge; 0 lies in the first. The error is the mean over items of |accuracy - mean probability| of their bin (ECE:
    Guo et al. 2017, eq. 3). The order of the items does not matter. Raises BadInput for no item, for unequal lengths,
    for a probability that is no number from 0 to 1, and for no bin.
    """
    if len(probabilities) != len(right):
        raise BadInput(
            f"there are {len(probabilities)} probabilities and {len(right)} outcomes; give one each per item"
        )
    if not len(probabilities):
        raise BadInput("there is nothing to calibrate: no predictions were given")
    if bins < 1:
        raise BadInput(f"{bins} bins were asked for; give at least 1, such as {BINS}")
    probs, hits = np.array(probabilities, dtype=np.float64), np.array(right, dtype=np.int64)
    outside = np.flatnonzero(~((probs >= 0) & (probs <= 1)))
    if len(outside):
        at = int(outside[0])
        raise BadInput(f"probability {at + 1} is {probabilities[at]}; give numbers from 0 to 1")
    # Sorted, so that sums of floats do not depend on the order in which items came.
    order = np.lexsort((hits, probs))
    probs, hits = probs[order], hits[order]
    edges = np.linspace(0, 1, bins + 1)
    places = np.searchsorted(edges[1:-1], probs, side="left")
    counts, agreeing = np.bincount(places, minlength=bins), np.bincount(places, hits, minlength=bins)
    sums = np.bincount(places, probs, minlength=bins)
    rows = tuple(
        ReliabilityBin(low, high, count, total / count if count else None, hit / count if count else None)
        for low, high, count, total, hit in zip(
            edges[:-1].tolist(), edges[1:].tolist(), counts.tolist(), sums.tolist(), agreeing.tolist(), strict=True
        )
    )
    # Each bin's share of the items cancels against its count.
    error = float(np.abs(agreeing - sums).sum()) / len(probs)
    return Calibration(rows, len(probs), float(probs.mean()), float(hits.mean()), error)


class Temperature(NamedTuple):
    """What logits are divided by, with the mean negative log likelihood of the targets before and after."""

    value: float
    nll_before: float
    nll_after: float


TEMPERATURES = (0.05, 20.0)
"""Where the temperature is looked for; at an end, the logits say nothing of the targets, or all."""


def fit_temperature(logits: Sequence[Sequence[float]], targets: Sequence[Sequence[float]]) -> Temperature:
    """Find the temperature that makes targets likeliest: temperature scaling, Guo et al. 2017, sec. 4.2.

    Both are rows by labels; the targets of a row sum to 1. Raises BadInput for no row and for unequal shapes.
    """
    given, wanted = np.array(logits, dtype=np.float64), np.array(targets, dtype=np.float64)
    if not len(given) or given.shape != wanted.shape:
        raise BadInput(f"a temperature needs logits and targets of the same rows, not {given.shape} and {wanted.shape}")

    def nll(log_temperature: float) -> float:
        return float(-(wanted * log_softmax(given / np.exp(log_temperature), axis=1)).sum(axis=1).mean())

    found = minimize_scalar(
        nll, bounds=(log(TEMPERATURES[0]), log(TEMPERATURES[1])), method="bounded", options={"xatol": 1e-6}
    )
    return Temperature(float(np.exp(found.x)), nll(0.0), float(found.fun))
