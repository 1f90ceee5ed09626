"""A model beside the people who labelled the same items: the difference of their macro F1 in every resample."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from dynaround.human import ResponseTable, response_counts
from dynaround.human_moments import f1_of_moments
from dynaround.scoring import ratio_or_zero

TAIL = 0.05
"""The share of resamples beyond each bound: two one-sided bounds of 95 %."""

# Resamples of items and workers held at once: draws of 60,000 clusters then still fit into a processor's cache, which
# halves the time of 128.
_BLOCK = 32


class Bounds(NamedTuple):
    """The one-sided 95 % bounds of a difference of macro F1, and the standard deviation of its resamples."""

    lower: float
    upper: float
    standard_error: float

    @property
    def half_width(self) -> float:
        """Half the distance of the two bounds."""
        return (self.upper - self.lower) / 2


def model_counts(table: ResponseTable, predicted: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return per item, for each model label, whether it is predicted and whether rightly (items, 2 labels).

    `predicted` (items,) are places in the model's labels.
    """
    said = (table.columns[predicted][:, None] == table.columns).astype(np.int64)
    right = said * (table.gold[:, None] == table.columns)
    return np.concatenate([said, right], axis=1)


def differences(people: NDArray[Any], model: NDArray[Any]) -> NDArray[np.float64]:
    """Return macro F1 of the model minus human macro F1 from sums of `response_moments` and `model_counts`.

    Their columns are the last axis; resamples may stand before it. Human F1 is the expectation over the synthetic
    annotators, to second order.
    """
    support = np.split(np.asarray(people), 5, axis=-1)[-1]
    gained: NDArray[np.float64] = (_model_f1(model, support) - f1_of_moments(people)).mean(axis=-1)
    return gained


def bounds_of(values: NDArray[np.float64], shift: float = 0.0) -> Bounds:
    """Return the 5th and 95th percentile of the differences in all resamples, moved by `shift`.

    Percentile bootstrap: Efron and Tibshirani 1993, ch. 13.
    """
    lower, upper = np.quantile(values, [TAIL, 1 - TAIL]) + shift
    return Bounds(float(lower), float(upper), float(np.std(values)))


def worker_bounds(
    table: ResponseTable,
    predicted: NDArray[np.int64],
    clusters: NDArray[np.int64],
    workers: NDArray[np.int64],
    *,
    difference: float,
    seed: int,
    resamples: int,
) -> Bounds:
    """Return the bounds of the difference when clusters of items and workers are both drawn with replacement.

    `clusters` (items,) and `workers` (items, 5) are numbered from 0. A response counts as often as its item's cluster
    times its worker was drawn (pigeonhole bootstrap: Owen 2007, Annals of Applied Statistics 1(2)); the model's
    predictions and the gold items count as often as their cluster was drawn. Human F1 of a label pools the responses:
    2 agreeing / (given + all responses on its gold items). Gold labels stay as they are: nobody votes again.
    `difference` is the exact difference on the items as they are; all resamples are moved by what the pooled form
    differs from it there, so that drawing everything once gives exactly `difference`.
    """
    responses = _response_sums(table, clusters, workers)
    model = _cluster_sums(model_counts(table, predicted), clusters)
    gold = _cluster_sums(response_counts(table).gold, clusters)
    people = int(workers.max()) + 1

    def pooled(cluster_times: NDArray[np.float32], worker_times: NDArray[np.float32]) -> NDArray[np.float64]:
        # (2 labels x workers, resamples), then weighted by the workers: (2 labels, resamples)
        by_worker = (responses @ cluster_times.T).reshape(-1, people, len(cluster_times))
        weighted = np.einsum("kwr,rw->rk", by_worker, worker_times, dtype=np.float64)
        agreeing, of = np.split(weighted, 2, axis=1)
        human = ratio_or_zero(2 * agreeing, of)
        gained: NDArray[np.float64] = (_model_f1(cluster_times @ model, cluster_times @ gold) - human).mean(axis=1)
        return gained

    once = pooled(np.ones((1, len(model)), np.float32), np.ones((1, people), np.float32))
    # One generator each: how many are drawn at once then changes nothing.
    of_clusters, of_workers = np.random.default_rng(seed).spawn(2)
    drawn = zip(
        _times_drawn(of_clusters, len(model), resamples), _times_drawn(of_workers, people, resamples), strict=True
    )
    values = np.concatenate([pooled(*times) for times in drawn])
    return bounds_of(values, difference - float(once[0]))


def _model_f1(model: NDArray[Any], support: NDArray[Any]) -> NDArray[np.float64]:
    said, right = np.split(np.asarray(model), 2, axis=-1)
    return ratio_or_zero(2 * right, said + support)


def _cluster_sums(per_item: NDArray[np.int64], clusters: NDArray[np.int64]) -> NDArray[np.float64]:
    sums = np.zeros((int(clusters.max()) + 1, per_item.shape[1]))
    np.add.at(sums, clusters, per_item)
    return sums


def _response_sums(table: ResponseTable, clusters: NDArray[np.int64], workers: NDArray[np.int64]) -> csr_array:
    """Count responses by cluster (columns) and by what they are, label and worker (rows).

    What they are: agreeing with the gold label; given as the label or on a gold item of it, both counting. In float32
    whole numbers are exact up to 16 million, which no worker reaches, and half the memory is moved.
    """
    labels = len(table.columns)
    # (items, 5, labels)
    given = table.responses[:, :, None] == table.columns
    on_gold = np.broadcast_to((table.gold[:, None] == table.columns)[:, None, :], given.shape)
    people = int(workers.max()) + 1
    rows, columns = [], []
    for kind, counted in ((0, given & on_gold), (1, given), (1, on_gold)):
        item, place, label = np.nonzero(counted)
        rows.append((kind * labels + label) * people + workers[item, place])
        columns.append(clusters[item])
    row, column = np.concatenate(rows), np.concatenate(columns)
    shape = (2 * labels * people, int(clusters.max()) + 1)
    return csr_array((np.ones(len(row), np.float32), (row, column)), shape=shape)


def _times_drawn(generator: np.random.Generator, things: int, resamples: int) -> Iterator[NDArray[np.float32]]:
    """Yield, some resamples at a time (resamples, things), how often each thing was drawn of as many as there are."""
    for start in range(0, resamples, _BLOCK):
        times = np.empty((min(_BLOCK, resamples - start), things), np.float32)
        for row in times:
            row[:] = np.bincount(generator.integers(things, size=things), minlength=things)
        yield times
