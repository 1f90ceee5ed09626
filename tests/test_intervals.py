"""Seeded cluster bootstraps of model and human scores."""

import random
from collections import defaultdict

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import accuracy_score, f1_score

from dynaround.agreement import CountTable, fleiss_kappa, krippendorff_alpha
from dynaround.errors import BadInput
from dynaround.human import HumanItem, MixedGold, expected_human_scores
from dynaround.intervals import AgreementInterval, Interval, agreement_intervals, human_interval, score_intervals
from dynaround.scoring import confusion_counts, score

LABELS = ("positive", "negative", "neutral")
ORDER = (*LABELS, "mixed")


def model_run(seed: int, items: int = 90) -> tuple[list[str], list[str], list[str | None]]:
    rng = random.Random(seed)
    gold = rng.choices(LABELS, k=items)
    predicted = [label if rng.random() < 0.7 else rng.choice(LABELS) for label in gold]
    return gold, predicted, [f"review {rng.randrange(items // 3)}" if rng.random() < 0.8 else None for _ in gold]


def human_items(seed: int, items: int = 60) -> list[HumanItem]:
    rng = random.Random(seed)
    golds = rng.choices((*ORDER, None), k=items)
    return [(gold, rng.choices(ORDER, weights=[6 if o == gold else 1 for o in ORDER], k=5)) for gold in golds]


def items_of_clusters(clusters: list[str | None]) -> list[list[int]]:
    members = defaultdict(list)
    for place, key in enumerate(clusters):
        members[place if key is None else key].append(place)
    return list(members.values())


def test_the_bootstrap_equals_a_naive_one_with_the_same_draws() -> None:
    gold, predicted, clusters = model_run(1)
    groups = items_of_clusters(clusters)

    def counts(group: list[int]) -> tuple[tuple[int, ...], ...]:
        return confusion_counts([gold[i] for i in group], [predicted[i] for i in group], LABELS).counts

    groups.sort(key=counts)
    generator = np.random.default_rng(4)
    values = []
    for _ in range(200):
        drawn = [i for place in generator.integers(len(groups), size=len(groups)) for i in groups[place]]
        scores = score([gold[i] for i in drawn], [predicted[i] for i in drawn], LABELS)
        values.append((scores.macro_f1, scores.accuracy, *(row.f1 for row in scores.per_label)))
    naive = np.quantile(values, [0.05, 0.95], axis=0)
    found = score_intervals(gold, predicted, LABELS, clusters, seed=4, resamples=200, confidence=0.9)
    assert (found.macro_f1.low, found.macro_f1.high) == pytest.approx(naive[:, 0])
    assert (found.accuracy.low, found.accuracy.high) == pytest.approx(naive[:, 1])
    assert [(found.f1[label].low, found.f1[label].high) for label in LABELS] == pytest.approx(naive[:, 2:].T)
    assert found.clusters == len(groups)


def test_the_estimate_is_the_score_of_all_items() -> None:
    gold, predicted, clusters = model_run(2)
    found, whole = score_intervals(gold, predicted, LABELS, clusters, seed=1), score(gold, predicted, LABELS)
    assert (found.macro_f1.estimate, found.accuracy.estimate) == pytest.approx((whole.macro_f1, whole.accuracy))
    assert found.macro_f1.low < whole.macro_f1 < found.macro_f1.high
    assert found.macro_f1[3:] == (0.95, 2000)
    for row in whole.per_label:
        assert found.f1[row.label].estimate == row.f1
        assert found.f1[row.label].low < row.f1 < found.f1[row.label].high


@settings(deadline=None)
@given(st.lists(st.tuples(st.sampled_from(LABELS), st.sampled_from(LABELS)), min_size=2, max_size=30))
def test_estimates_agree_with_scikit_learn(pairs: list[tuple[str, str]]) -> None:
    gold, predicted = zip(*pairs, strict=True)
    found = score_intervals(gold, predicted, LABELS, seed=1, resamples=1)
    by_label = f1_score(gold, predicted, labels=LABELS, average=None, zero_division=0)
    assert [found.f1[label].estimate for label in LABELS] == pytest.approx(by_label, abs=1e-12)
    assert found.macro_f1.estimate == pytest.approx(np.mean(by_label), abs=1e-12)
    assert found.accuracy.estimate == pytest.approx(accuracy_score(gold, predicted), abs=1e-12)


def test_the_order_of_items_and_the_names_of_clusters_do_not_matter() -> None:
    gold, predicted, clusters = model_run(3)
    shuffled = list(zip(gold, predicted, clusters, strict=True))
    random.Random(0).shuffle(shuffled)
    turned = [[row[column] for row in shuffled] for column in range(3)]
    renamed = [None if key is None else f"other {key}" for key in turned[2]]
    assert score_intervals(turned[0], turned[1], LABELS, renamed, seed=5) == score_intervals(
        gold, predicted, LABELS, clusters, seed=5
    )


def test_another_seed_draws_otherwise() -> None:
    gold, predicted, _ = model_run(5)
    first, second = (score_intervals(gold, predicted, LABELS, seed=seed).macro_f1 for seed in (1, 2))
    assert first.estimate == second.estimate and first.low != second.low


def test_items_without_a_key_are_clusters_of_their_own() -> None:
    gold, predicted, _ = model_run(6)
    without = score_intervals(gold, predicted, LABELS, seed=7)
    assert without == score_intervals(gold, predicted, LABELS, [None] * len(gold), seed=7)
    assert without.clusters == len(gold)


def test_items_that_hang_together_widen_the_interval() -> None:
    gold, predicted, _ = model_run(7, items=100)
    single = score_intervals(gold, predicted, LABELS, seed=8).accuracy
    # Each item four times over is no more evidence when the copies share a cluster.
    copies = [str(place) for place in range(100)] * 4
    clustered = score_intervals(gold * 4, predicted * 4, LABELS, copies, seed=8).accuracy
    separate = score_intervals(gold * 4, predicted * 4, LABELS, seed=8).accuracy
    assert clustered == pytest.approx(single)
    assert separate.high - separate.low < 0.7 * (clustered.high - clustered.low)


def test_the_accuracy_interval_has_the_width_of_theory() -> None:
    gold, predicted, _ = model_run(8, items=1_000)
    found = score_intervals(gold, predicted, LABELS, seed=9).accuracy
    deviation = (found.estimate * (1 - found.estimate) / 1_000) ** 0.5
    assert found.high - found.low == pytest.approx(2 * 1.96 * deviation, rel=0.06)


def test_a_model_without_errors_has_an_interval_of_no_width() -> None:
    gold = ["positive"] * 40
    found = score_intervals(gold, gold, ("positive",), seed=1)
    assert found.macro_f1 == found.accuracy == found.f1["positive"] == (1.0, 1.0, 1.0, 0.95, 2000)


@pytest.mark.parametrize("mixed_gold", ["drop", "keep"])
def test_the_human_bootstrap_is_near_a_naive_one_with_the_same_draws(mixed_gold: MixedGold) -> None:
    items = human_items(1, items=200)
    left_out = (None,) if mixed_gold == "keep" else (None, "mixed")
    used = [row for row in items if row[0] not in left_out]

    def moments(row: HumanItem) -> list[int]:
        given = [list(row[1]).count(label) for label in LABELS]
        gold = [int(row[0] == label) for label in LABELS]
        true = [n * g for n, g in zip(given, gold, strict=True)]
        false = [n - t for n, t in zip(given, true, strict=True)]
        return [*true, *(n * (5 - n) for n in true), *false, *(n * (5 - n) for n in false), *gold]

    used.sort(key=moments)
    draws = np.random.default_rng(3).integers(len(used), size=(30, len(used)))
    values = [
        expected_human_scores([used[place] for place in draw], LABELS, ORDER, mixed_gold).macro_f1 for draw in draws
    ]
    found = human_interval(items, LABELS, ORDER, seed=3, mixed_gold=mixed_gold, resamples=30)
    assert found.estimate == expected_human_scores(items, LABELS, ORDER, mixed_gold).macro_f1
    assert found[1:3] == pytest.approx(np.quantile(values, [0.025, 0.975]), abs=4e-5)


def test_human_clusters_stand_for_all_items_and_only_used_ones_are_drawn() -> None:
    items = human_items(2)
    keys: list[str | None] = [f"review {place // 2}" for place in range(len(items))]
    used = [(row, key) for row, key in zip(items, keys, strict=True) if row[0] is not None and row[0] != "mixed"]
    alone = human_interval([row for row, _ in used], LABELS, ORDER, [key for _, key in used], seed=4)
    assert human_interval(items, LABELS, ORDER, keys, seed=4) == alone


def test_a_single_cluster_is_refused_because_it_would_look_certain() -> None:
    with pytest.raises(BadInput, match="all items are of one cluster"):
        score_intervals(["positive"] * 3, ["positive"] * 3, LABELS, ["review 1"] * 3, seed=1)
    with pytest.raises(BadInput, match="all items are of one cluster"):
        human_interval([("positive", ["positive"] * 5)], LABELS, ORDER, seed=1)


def test_empty_input_and_missing_keys_are_refused() -> None:
    with pytest.raises(BadInput, match="nothing to score"):
        score_intervals([], [], LABELS, seed=1)
    with pytest.raises(BadInput, match="no item has a gold label"):
        human_interval([], LABELS, ORDER, seed=1)
    with pytest.raises(BadInput, match="1 cluster keys for 2 items"):
        score_intervals(["positive"] * 2, ["positive"] * 2, LABELS, ["review 1"], seed=1)
    with pytest.raises(BadInput, match="1 cluster keys for 60 items"):
        human_interval(human_items(3), LABELS, ORDER, ["review 1"], seed=1)


@pytest.mark.parametrize(("resamples", "confidence"), [(0, 0.95), (10, 1.0), (10, 0.0), (10, 95.0)])
def test_senseless_settings_are_refused(resamples: int, confidence: float) -> None:
    gold, predicted, _ = model_run(9)
    with pytest.raises(BadInput, match="resamples were asked for|give a share between 0 and 1"):
        score_intervals(gold, predicted, LABELS, seed=1, resamples=resamples, confidence=confidence)


def count_rows(seed: int, examples: int = 50, responses: tuple[int, ...] = (5,)) -> list[tuple[int, ...]]:
    rng = np.random.default_rng(seed)
    shares = rng.dirichlet([0.5, 0.3, 0.3], size=examples)
    return [tuple(rng.multinomial(rng.choice(responses), share).tolist()) for share in shares]


def table_of(rows: list[tuple[int, ...]]) -> CountTable:
    return CountTable(LABELS, tuple(rows))


@pytest.mark.parametrize("responses", [(5,), (1, 2, 5, 7)])
def test_the_agreement_bootstrap_equals_a_naive_one_with_the_same_draws(responses: tuple[int, ...]) -> None:
    rows = count_rows(1, responses=responses)
    sizes = sorted({sum(row) for row in rows} - {0, 1})

    def sums(row: tuple[int, ...]) -> list[int]:
        agreeing = sum(n * (n - 1) for n in row)
        return [agreeing * (sum(row) == size) for size in sizes] + [n * (sum(row) >= 2) for n in row]

    rows.sort(key=sums)
    draws = np.random.default_rng(5).integers(len(rows), size=(60, len(rows)))
    drawn = [table_of([rows[place] for place in draw]) for draw in draws]
    found = agreement_intervals(table_of(rows), seed=5, resamples=60)
    alphas = np.quantile([krippendorff_alpha(table).value or 0.0 for table in drawn], [0.025, 0.975])
    assert interval_of(found.krippendorff_alpha)[1:3] == pytest.approx(alphas)
    assert found.krippendorff_alpha.coefficient == krippendorff_alpha(table_of(rows))
    if len(responses) == 1:
        kappas = np.quantile([fleiss_kappa(table).value or 0.0 for table in drawn], [0.025, 0.975])
        assert interval_of(found.fleiss_kappa)[1:3] == pytest.approx(kappas)


def interval_of(found: AgreementInterval) -> Interval:
    assert found.interval is not None and found.reason is None
    return found.interval


def test_agreement_intervals_depend_on_clusters_and_not_on_the_order_of_examples() -> None:
    rows = count_rows(2)
    keys: list[str | None] = [f"review {place // 5}" for place in range(len(rows))]
    clustered = agreement_intervals(table_of(rows), keys, seed=6)
    assert agreement_intervals(table_of(rows[::-1]), keys[::-1], seed=6) == clustered
    alone = interval_of(agreement_intervals(table_of(rows), seed=6).fleiss_kappa)
    assert interval_of(clustered.fleiss_kappa)[1:3] != alone[1:3]
    assert alone.low < alone.estimate < alone.high


def test_kappa_of_unequal_rows_has_a_reason_where_alpha_has_an_interval() -> None:
    found = agreement_intervals(table_of([*count_rows(3), (4, 3, 0)]), seed=1)
    assert found.fleiss_kappa.interval is None and "row 51 has 7 responses" in str(found.fleiss_kappa.reason)
    assert interval_of(found.krippendorff_alpha).estimate == found.krippendorff_alpha.coefficient.value


def test_resamples_of_one_label_only_are_left_out_and_counted() -> None:
    # Without the one example that differs, which a resample misses with chance (2/3) ** 3, all is one label.
    found = agreement_intervals(table_of([(5, 0, 0), (5, 0, 0), (0, 4, 1)]), seed=1, resamples=4_000).fleiss_kappa
    assert found.left_out / 4_000 == pytest.approx(8 / 27, abs=0.03)
    assert interval_of(found).resamples == 4_000 - found.left_out


def test_met_01_one_label_throughout_has_no_interval_but_a_reason() -> None:
    for found in agreement_intervals(table_of([(5, 0, 0)] * 30), seed=1):
        assert (found.coefficient.value, found.interval) == (None, None)
        assert found.reason == "undefined: expected agreement is 1"


@pytest.mark.parametrize("rows", [[], [(1, 0, 0), (0, 1, 0)], [(0, 0, 0)] * 2])
def test_without_two_responses_on_an_example_there_is_no_interval(rows: list[tuple[int, ...]]) -> None:
    for found in agreement_intervals(table_of(rows), seed=1):
        assert (found.interval, found.reason) == (None, "undefined: no example has two responses")


def test_a_single_cluster_has_a_coefficient_and_a_reason_for_no_interval() -> None:
    for rows, keys in (([(3, 2, 0)], None), (count_rows(4), ["review 1"] * 50)):
        for found in agreement_intervals(table_of(rows), keys, seed=1):
            assert found.coefficient.value is not None and found.interval is None
            assert str(found.reason).startswith("all items are of one cluster")


def test_met_08_the_agreement_bootstrap_of_constants_has_no_width() -> None:
    for found in agreement_intervals(table_of([(3, 2, 0)] * 40), seed=1):
        interval = interval_of(found)
        assert interval.low == interval.high
    kappa = interval_of(agreement_intervals(table_of([(3, 2, 0)] * 40), seed=1).fleiss_kappa)
    assert kappa[:3] == pytest.approx(((0.4 - 0.52) / 0.48,) * 3)


def test_agreement_intervals_refuse_missing_keys_senseless_settings_and_bare_lists() -> None:
    table = table_of(count_rows(5))
    with pytest.raises(BadInput, match="1 cluster keys for 50 items"):
        agreement_intervals(table, ["review 1"], seed=1)
    with pytest.raises(BadInput, match="0 resamples were asked for"):
        agreement_intervals(table, seed=1, resamples=0)
    with pytest.raises(BadInput, match="confidence is 95"):
        agreement_intervals(table, seed=1, confidence=95)
    with pytest.raises(TypeError, match="from a CountTable"):
        agreement_intervals([[1, 1]], seed=1)  # type: ignore[arg-type]


def test_the_human_bootstrap_of_constants_has_no_width() -> None:
    found = human_interval(
        [("positive", ["positive"] * 5), ("negative", ["negative"] * 5)] * 20, LABELS[:2], ORDER, seed=1
    )
    assert found[:3] == (1.0, 1.0, 1.0)
