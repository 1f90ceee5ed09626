"""Two models on the same items: McNemar's test and the interval of their difference."""

import random
from fractions import Fraction
from math import comb

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import f1_score
from statsmodels.stats.contingency_tables import mcnemar as statsmodels_mcnemar

from dynaround.errors import BadInput
from dynaround.paired import McNemar, mcnemar, mcnemar_of_counts, paired_difference

LABELS = ("positive", "negative", "neutral")

numbers = st.integers(0, 300)


def run_of(seed: int, items: int = 120) -> tuple[list[str], list[str], list[str], list[str | None]]:
    rng = random.Random(seed)
    gold = rng.choices(LABELS, k=items)
    first, second = ([label if rng.random() < right else rng.choice(LABELS) for label in gold] for right in (0.9, 0.6))
    return gold, first, second, [f"review {rng.randrange(items // 2)}" if rng.random() < 0.8 else None for _ in gold]


@pytest.mark.parametrize(
    ("first_only", "second_only", "p"), [(0, 0, Fraction(1)), (5, 5, Fraction(1)), (1, 9, Fraction(11, 512))]
)
def test_met_08_the_exact_p_is_never_above_one(first_only: int, second_only: int, p: Fraction) -> None:
    assert mcnemar_of_counts(first_only, second_only).exact_p == pytest.approx(float(p), abs=1e-15)
    assert mcnemar_of_counts(second_only, first_only).exact_p == pytest.approx(float(p), abs=1e-15)


def test_met_08_chi_squared_is_corrected_and_undefined_without_discordant_pairs() -> None:
    found = mcnemar_of_counts(1, 9)
    assert (found.chi_squared, found.chi_squared_p) == pytest.approx((4.9, 0.02685669550752441), abs=1e-15)
    assert mcnemar_of_counts(0, 0) == McNemar(0, 0, 1.0, None, None)
    assert mcnemar_of_counts(5, 5)[3:] == (0.0, 1.0)


def test_met_08_the_bootstrap_of_equal_models_is_zero_to_zero() -> None:
    gold, first, _, clusters = run_of(1)
    found = paired_difference(gold, first, first, LABELS, clusters, seed=1)
    assert found.macro_f1 == (0.0, 0.0, 0.0, 0.95, 2000)


@settings(deadline=None)
@given(numbers, numbers)
def test_mcnemar_agrees_with_statsmodels_and_with_counting(first_only: int, second_only: int) -> None:
    found = mcnemar_of_counts(first_only, second_only)
    discordant = first_only + second_only
    tail = sum(comb(discordant, wins) for wins in range(min(first_only, second_only) + 1))
    assert found.exact_p == pytest.approx(float(min(Fraction(1), Fraction(2 * tail, 2**discordant))), rel=1e-12)
    table = [[7, first_only], [second_only, 3]]
    assert found.exact_p == pytest.approx(statsmodels_mcnemar(table, exact=True).pvalue, rel=1e-10)
    if first_only != second_only:
        theirs = statsmodels_mcnemar(table, exact=False, correction=True)
        assert found[3:] == pytest.approx((theirs.statistic, theirs.pvalue), rel=1e-12)


def test_items_that_both_or_neither_have_right_do_not_count() -> None:
    gold = ["positive"] * 6
    first = ["positive", "positive", "negative", "neutral", "positive", "negative"]
    second = ["positive", "negative", "negative", "negative", "negative", "positive"]
    assert mcnemar(gold, first, second)[:2] == (2, 1)
    assert mcnemar(gold, second, first)[:2] == (1, 2)


def test_the_difference_is_that_of_the_scores_and_turns_with_the_models() -> None:
    gold, first, second, clusters = run_of(2)
    found = paired_difference(gold, first, second, LABELS, clusters, seed=2)
    theirs = [f1_score(gold, said, labels=LABELS, average="macro") for said in (first, second)]
    assert found.macro_f1.estimate == pytest.approx(theirs[0] - theirs[1])
    assert 0 < found.macro_f1.low < found.macro_f1.estimate < found.macro_f1.high
    assert found.clusters == clusters.count(None) + len(set(clusters) - {None})
    turned = paired_difference(gold, second, first, LABELS, clusters, seed=2).macro_f1
    assert turned.estimate == pytest.approx(-found.macro_f1.estimate)
    assert turned.high - turned.low == pytest.approx(found.macro_f1.high - found.macro_f1.low, rel=0.1)


def test_pairing_makes_the_interval_of_alike_models_narrow() -> None:
    gold, first, _, _ = run_of(3)
    alike = [*first[:-2], *("neutral" if label != "neutral" else "positive" for label in gold[-2:])]
    paired = paired_difference(gold, first, alike, LABELS, seed=3).macro_f1
    unlike = paired_difference(gold, first, [*first[60:], *first[:60]], LABELS, seed=3).macro_f1
    assert paired.high - paired.low < 0.5 * (unlike.high - unlike.low)


def test_the_order_of_items_does_not_matter() -> None:
    gold, first, second, clusters = run_of(4)
    shuffled = list(zip(gold, first, second, clusters, strict=True))
    random.Random(0).shuffle(shuffled)
    golds, firsts, seconds, keys = zip(*shuffled, strict=True)
    assert paired_difference(golds, firsts, seconds, LABELS, keys, seed=4) == paired_difference(
        gold, first, second, LABELS, clusters, seed=4
    )


def test_what_cannot_be_compared_is_refused() -> None:
    with pytest.raises(BadInput, match="1 gold labels, 2 and 1 predictions"):
        mcnemar(["positive"], ["positive"] * 2, ["positive"])
    with pytest.raises(BadInput, match="-1 and 3 items"):
        mcnemar_of_counts(-1, 3)
    with pytest.raises(BadInput, match="1 gold labels and 2 predictions"):
        paired_difference(["positive"], ["positive"], ["positive"] * 2, LABELS, seed=1)
    with pytest.raises(BadInput, match="all items are of one cluster"):
        paired_difference(["positive"] * 2, ["positive"] * 2, ["neutral"] * 2, LABELS, ["a", "a"], seed=1)
