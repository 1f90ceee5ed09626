"""Sums over clusters drawn with replacement: what is drawn, and that shared rows drawn as numbers change nothing."""

from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
import scipy.stats
from numpy.typing import NDArray

from dynaround import resampling
from dynaround.errors import BadInput
from dynaround.resampling import resampled_sums, sums_by_cluster


def rows(*copies: tuple[tuple[int, ...], int]) -> NDArray[np.int64]:
    return np.array([row for row, times in copies for _ in range(times)], dtype=np.int64)


# Two rows that many clusters share, and some that few do, with a last column that counts clusters.
SHARED_AND_RARE = rows(((1, 0, 1), 60), ((0, 2, 1), 30), ((3, 1, 1), 2), ((5, 7, 1), 1), ((0, 4, 1), 7))


def test_met_08_a_small_bootstrap_has_its_exact_distribution() -> None:
    sums = resampled_sums(np.array([[1], [1], [0]]), seed=1, resamples=10_000)[:, 0]
    found = Counter(sums.tolist())
    exact = {0: Fraction(1, 27), 1: Fraction(2, 9), 2: Fraction(4, 9), 3: Fraction(8, 27)}
    assert {total: found[total] / 10_000 for total in exact} == pytest.approx(
        {total: float(chance) for total, chance in exact.items()}, abs=0.01
    )
    assert np.std(sums / 3) == pytest.approx(0.2721655269759087, abs=0.01)


def test_met_08_the_bootstrap_of_constants_is_constant() -> None:
    assert (resampled_sums(np.zeros((60, 1), dtype=np.int64), seed=1, resamples=50) == 0).all()
    assert (resampled_sums(np.full((60, 2), 3), seed=1, resamples=50) == 180).all()


def test_shared_rows_are_drawn_with_their_exact_distribution() -> None:
    sums = resampled_sums(rows(((1, 0), 40), ((0, 1), 20)), seed=2, resamples=4_000)
    values = np.arange(61)
    found = np.bincount(sums[:, 0].astype(int), minlength=61)
    exact = 4_000 * scipy.stats.binom.pmf(values, 60, 40 / 60)
    common = exact >= 5
    expected = np.append(exact[common], exact[~common].sum())
    assert scipy.stats.chisquare(np.append(found[common], found[~common].sum()), expected).pvalue > 0.01
    assert (sums.sum(axis=1) == 60).all()


def test_shared_and_rare_rows_together_scatter_as_theory_says() -> None:
    sums = resampled_sums(SHARED_AND_RARE, seed=3, resamples=20_000)
    clusters = len(SHARED_AND_RARE)
    assert (sums[:, 2] == clusters).all()
    assert sums.mean(axis=0) == pytest.approx(SHARED_AND_RARE.sum(axis=0), rel=0.01)
    exact = clusters * np.cov(SHARED_AND_RARE.T, bias=True)
    assert np.cov(sums.T) == pytest.approx(exact, rel=0.05, abs=1)


def test_shared_rows_drawn_as_numbers_are_as_likely_as_when_each_cluster_is_drawn(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    as_numbers = resampled_sums(SHARED_AND_RARE, seed=4, resamples=4_000)
    monkeypatch.setattr(resampling, "_OFTEN", len(SHARED_AND_RARE) + 1)
    one_by_one = resampled_sums(SHARED_AND_RARE, seed=4, resamples=4_000)
    for column in range(2):
        assert scipy.stats.ks_2samp(as_numbers[:, column], one_by_one[:, column]).pvalue > 0.01


@pytest.mark.parametrize("clusters", [SHARED_AND_RARE, SHARED_AND_RARE[:90], SHARED_AND_RARE[90:]])
def test_neither_blocks_nor_the_order_of_clusters_change_the_draws(
    clusters: NDArray[np.int64], monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = resampled_sums(clusters, seed=5, resamples=101)
    turned = resampled_sums(clusters[::-1], seed=5, resamples=101)
    monkeypatch.setattr(resampling, "_WEIGHTS", 70)
    assert (whole == turned).all()
    assert (whole == resampled_sums(clusters, seed=5, resamples=101)).all()
    assert (whole[:40] == resampled_sums(clusters, seed=5, resamples=40)).all()


def test_clusters_are_summed_and_items_without_a_key_stand_alone() -> None:
    per_item = np.array([[1, 0], [2, 5], [4, 0], [8, 0]])
    assert sums_by_cluster(per_item, ["a", None, "a", None]).tolist() == [[5, 0], [2, 5], [8, 0]]
    assert sums_by_cluster(per_item, None).tolist() == per_item.tolist()


@pytest.mark.parametrize(
    ("clusters", "message"),
    [(["a", "a"], "all items are of one cluster"), (["a"], "1 cluster keys for 2 items")],
)
def test_what_cannot_be_drawn_is_refused(clusters: list[str | None], message: str) -> None:
    with pytest.raises(BadInput, match=message):
        sums_by_cluster(np.array([[1], [2]]), clusters)


def test_no_resample_is_refused() -> None:
    with pytest.raises(BadInput, match="0 resamples were asked for"):
        resampled_sums(np.array([[1], [2]]), seed=1, resamples=0)
