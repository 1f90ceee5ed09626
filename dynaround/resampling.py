"""Whole clusters (such as reviews) drawn with replacement: the sums that every bootstrap here is computed from."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dynaround.errors import BadInput

RESAMPLES = 2_000
# How many clusters with equal rows are drawn as one number: a binomial costs about as much as 20 single draws, and
# any boundary from 10 to 80 takes within a tenth of the least time.
_OFTEN = 20
# Weights of rows held at once (8 bytes each).
_WEIGHTS = 2_000_000


def sums_by_cluster(per_item: NDArray[np.int64], clusters: Sequence[str | None] | None) -> NDArray[np.int64]:
    """Sum the rows (items, columns) of each cluster, in the order in which the clusters first appear.

    Items with the key None, or without `clusters` at all, each are a cluster of their own. Raises BadInput for another
    number of keys than items, and for a single cluster.
    """
    keys = [None] * len(per_item) if clusters is None else clusters
    require_one_key_each(keys, len(per_item))
    places: dict[Any, int] = {}
    own = (("own", number) for number in range(len(keys)))
    codes = [places.setdefault(next(own) if key is None else key, len(places)) for key in keys]
    if len(places) < 2:
        raise BadInput(
            "all items are of one cluster, which cannot be resampled; an interval needs two clusters or more"
        )
    sums = np.zeros((len(places), per_item.shape[1]), dtype=np.int64)
    np.add.at(sums, codes, per_item)
    return sums


def require_one_key_each(keys: Sequence[str | None], items: int) -> None:
    """Raise BadInput unless there is one cluster key (or None) per item."""
    if len(keys) != items:
        raise BadInput(f"there are {len(keys)} cluster keys for {items} items; give one key (or None) per item")


def resampled_sums(per_cluster: NDArray[np.int64], *, seed: int, resamples: int = RESAMPLES) -> NDArray[np.float64]:
    """Return the sums (resamples, columns) over as many clusters as there are, drawn with replacement.

    The order of the clusters does not matter. Clusters with equal rows are interchangeable, so only how often each
    distinct row is drawn counts, and that is multinomial: rows that many clusters share are drawn as such numbers,
    together with the number of draws that fall on the rest, whose clusters are then drawn one by one. The distribution
    is that of drawing every cluster. Small clusters are often equal: 100,000 single items take a fortieth of the time,
    and clusters that are all different no more than without. Raises BadInput when no resample is asked for.
    """
    if resamples < 1:
        raise BadInput(f"{resamples} resamples were asked for; give at least 1, better 2,000")
    rows, copies = np.unique(per_cluster, axis=0, return_counts=True)
    shared = copies >= _OFTEN
    single = np.repeat(rows[~shared], copies[~shared], axis=0)
    # The rest comes first: the last number takes what rounding leaves over, and the rest may be empty.
    chances = np.concatenate([[len(single)], copies[shared]]) / len(per_cluster)
    # Sums of whole numbers are exact in float64, and the product of matrices is far faster there.
    drawn = np.concatenate([single, rows[shared]]).astype(np.float64)
    generator = np.random.default_rng(seed)
    sums = np.empty((resamples, per_cluster.shape[1]))
    weights = np.empty((max(1, min(resamples, _WEIGHTS // len(drawn))), len(drawn)))
    for start in range(0, resamples, len(weights)):
        block = weights[: resamples - start]
        for times in block:
            rest, *_ = numbers = generator.multinomial(len(per_cluster), chances)
            places = generator.integers(len(single), size=rest)
            times[: len(single)] = np.bincount(places, minlength=len(single))
            times[len(single) :] = numbers[1:]
        sums[start : start + len(block)] = block @ drawn
    return sums
