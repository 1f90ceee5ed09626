"""Rates of the two arms, each with the interval that says how sure it is, and the difference between them."""

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dynaround.intervals import Interval, percentile_interval
from dynaround.resampling import RESAMPLES, resampled_sums, sums_by_cluster

NO_TEXT = "undefined: there is no such text"
ONE_AUTHOR = "undefined: all texts are of one author, which says nothing about others"
NO_SPREAD = "undefined: every resample of authors gives the same, which says nothing about others"


class Marked(NamedTuple):
    """One text that counts for a rate: its arm, its author, and whether it is a hit."""

    arm: str
    author: str
    hit: bool


class Estimate(NamedTuple):
    """A figure with its interval; where either is None, `reason` says why."""

    value: float | None
    interval: Interval | None
    reason: str | None


class Rate(NamedTuple):
    """Hits over texts."""

    hits: int
    texts: int
    estimate: Estimate


class ArmRates(NamedTuple):
    """The rate of either arm, and that of the first minus that of the second."""

    first: Rate
    second: Rate
    difference: Estimate


def arm_rates(marked: Iterable[Marked], arms: tuple[str, str], *, seed: int, resamples: int = RESAMPLES) -> ArmRates:
    """Return the rates of two arms with 95 % percentile bootstraps that resample whole authors.

    Texts of one author are alike and a few authors write most of them, so an interval that takes each text as
    independent, such as Wilson's, would be far too narrow; and since the same authors write in both arms, the
    difference comes from the same resamples. Those without a text of an arm are left out of its interval. Where nothing
    varies, as with one author or a rate of 0, there is no interval. The order of the texts does not matter.
    """
    texts = list(marked)
    columns = [[text.arm == arm and part for arm in arms for part in (text.hit, True)] for text in texts]
    counts = np.array(columns, dtype=np.int64).reshape(-1, 4)
    authors = [text.author for text in texts]
    sums = np.empty((0, 4))
    if len(set(authors)) > 1:
        sums = resampled_sums(sums_by_cluster(counts, authors), seed=seed, resamples=resamples)
    totals: list[int] = counts.sum(axis=0).tolist()
    first, second = _rates(sums, 0), _rates(sums, 2)
    values = [_ratio(*totals[:2]), _ratio(*totals[2:])]
    difference = None if values[0] is None or values[1] is None else values[0] - values[1]
    return ArmRates(
        Rate(totals[0], totals[1], _estimate(values[0], first)),
        Rate(totals[2], totals[3], _estimate(values[1], second)),
        _estimate(difference, first - second),
    )


def _ratio(hits: int, texts: int) -> float | None:
    return hits / texts if texts else None


def _rates(sums: NDArray[np.float64], place: int) -> NDArray[np.float64]:
    """Return the rate in every resample (resamples,), not a number where it has no text of the arm."""
    hits, texts = sums[:, place], sums[:, place + 1]
    rates: NDArray[np.float64] = np.divide(hits, texts, out=np.full(len(sums), np.nan), where=texts > 0)
    return rates


def _estimate(value: float | None, values: NDArray[np.float64]) -> Estimate:
    if value is None:
        return Estimate(None, None, NO_TEXT)
    known = values[~np.isnan(values)]
    if not len(known):
        return Estimate(value, None, ONE_AUTHOR)
    if np.ptp(known) == 0:
        return Estimate(value, None, NO_SPREAD)
    return Estimate(value, percentile_interval(value, known), None)
