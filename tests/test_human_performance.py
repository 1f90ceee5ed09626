"""Human F1 on filtered splits, on all gold, against the other four, by worker group, and the paragraph about it."""

import random
import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import precision_recall_fscore_support

from dynaround.answered_items import AnsweredItem
from dynaround.errors import BadInput
from dynaround.human import HumanItem, expected_human_scores, pooled_human_scores
from dynaround.human_explanation import explanation
from dynaround.human_performance import HumanPerformance, PerformanceFigure, human_performance
from dynaround.intervals import human_interval
from dynaround.judged_responses import Bootstrap
from tests.published_rounds import MODEL_LABELS, ORDER, ROUND_1, ROUND_2, SST, answered

WORD = {"p": "positive", "n": "negative", "u": "neutral", "m": "mixed"}
QUICK = Bootstrap(seed=1, resamples=100)


def item(gold: str | None, responses: str, *, held_out: bool = False, cluster: str | None = None) -> AnsweredItem:
    labelled = tuple((f"w{n}", WORD[letter]) for n, letter in enumerate(responses))
    return AnsweredItem(WORD[gold] if gold else None, labelled, cluster, held_out)


def performance(items: list[AnsweredItem], mixed_gold: str = "drop") -> HumanPerformance:
    assert mixed_gold in ("drop", "keep")
    return human_performance(items, MODEL_LABELS, ORDER, QUICK, mixed_gold)  # type: ignore[arg-type]


def macro_f1(figure: PerformanceFigure) -> float:
    assert figure.scores is not None
    return figure.scores.macro_f1


def with_majority_gold(responses: list[str]) -> list[AnsweredItem]:
    golds = [next((letter for letter in "pnum" if word.count(letter) >= 3), None) for word in responses]
    return [item(gold, word) for gold, word in zip(golds, responses, strict=True)]


def scored_by_hand(items: list[AnsweredItem]) -> tuple[float, int]:
    """Score each response against the other four by scikit-learn; also return how many responses have no reference."""
    references, given, unusable = [], [], 0
    for _, responses, _, _ in items:
        labels = [label for _, label in responses]
        for place, label in enumerate(labels):
            others = labels[:place] + labels[place + 1 :]
            reference = next((one for one in ORDER if others.count(one) >= 3), None)
            if reference is None:
                unusable += 1
            else:
                references.append(reference)
                given.append(label)
    f1 = precision_recall_fscore_support(references, given, labels=MODEL_LABELS, zero_division=0)[2]
    return float(np.mean(f1)), unusable


@pytest.mark.parametrize(("name", "macro"), [(ROUND_1, 0.879814), (ROUND_2, 0.903607)])
def test_on_the_published_dev_files_the_three_figures_are_one(shared_data: Path, name: str, macro: float) -> None:
    found = performance(answered(shared_data, name))
    assert macro_f1(found.filtered) == pytest.approx(macro, abs=1e-6)
    assert found.filtered == found.with_gold == found.leave_one_out
    assert (found.leave_one_out.unusable, found.unusable_of_all, found.without_gold) == (0, 0, 0)
    assert found.filtered.smallest_vote == 4


def test_the_figures_of_round_1_by_label_and_its_vote_accuracy(shared_data: Path) -> None:
    found = performance(answered(shared_data, ROUND_1)).filtered
    assert found.scores is not None
    assert [row.f1 for row in found.scores.per_label] == pytest.approx([0.881379, 0.892343, 0.865720], abs=1e-6)
    assert (found.items, found.responses, found.agreeing) == (3600, 18000, 15644)
    assert found.vote_accuracy == pytest.approx(0.8691, abs=5e-5)


def test_sst_against_the_other_four_is_the_stated_figure(shared_data: Path) -> None:
    found = performance(answered(shared_data, SST), "keep")
    assert macro_f1(found.leave_one_out) == pytest.approx(0.7933, abs=5e-5)
    assert (found.leave_one_out.unusable, found.leave_one_out.responses) == (693, 5185)
    assert (found.unusable_of_all, found.responses, found.items, found.without_gold) == (1013, 5505, 1101, 64)
    assert macro_f1(found.with_gold) == pytest.approx(0.823388, abs=1e-6)
    assert found.with_gold.agreeing == 4445


def test_sst_has_no_filtered_split(shared_data: Path) -> None:
    found = performance(answered(shared_data, SST), "keep").filtered
    assert (found.scores, found.intervals, found.vote_accuracy) == (None, None, None)
    assert found.reason == "undefined: no example has a gold label that counts and stands in dev or test"


def test_the_sst_figure_by_other_means(shared_data: Path) -> None:
    items = answered(shared_data, SST)
    macro, unusable = scored_by_hand(items)
    assert unusable == 1013
    assert macro_f1(performance(items, "keep").leave_one_out) == pytest.approx(macro, abs=1e-12)


@settings(max_examples=40, deadline=None)
@given(st.lists(st.text("pnum", min_size=5, max_size=5), min_size=1, max_size=12))
def test_against_the_other_four_equals_scikit_learn(responses: list[str]) -> None:
    items = [*with_majority_gold(responses), item("p", "pppmn")]
    found = performance(items, "keep")
    macro, unusable = scored_by_hand(items)
    assert found.unusable_of_all == unusable
    # Without a majority nothing is usable: with or without such items, the same responses are scored.
    assert macro_f1(found.leave_one_out) == pytest.approx(macro)


def test_three_of_five_leave_only_the_two_that_differ() -> None:
    found = performance([item("p", "pppnu"), item("n", "nnnnn"), item("u", "uuuuu")])
    assert (found.leave_one_out.unusable, found.leave_one_out.agreeing) == (3, 10)
    assert found.leave_one_out.scores is not None
    # Positive: two responses are due and none is given; negative and neutral: one of six given is wrong.
    assert [row.f1 for row in found.leave_one_out.scores.per_label] == pytest.approx([0, 10 / 11, 10 / 11])
    assert [row.support for row in found.leave_one_out.scores.per_label] == [1, 1, 1]
    assert found.leave_one_out.scores.procedure == "responses pooled"


def test_the_filtered_splits_are_scored_on_their_own() -> None:
    chosen = [item("p", "ppppn", held_out=True), item("n", "nnnnn", held_out=True), item("u", "uuuup", held_out=True)]
    found = performance([*chosen, item("p", "pppnn"), item(None, "ppnnu", held_out=True)])
    alone: list[HumanItem] = [(gold, [label for _, label in responses]) for gold, responses, _, _ in chosen]
    assert found.filtered.scores == expected_human_scores(alone, MODEL_LABELS, ORDER)
    assert (found.filtered.items, found.with_gold.items, found.without_gold) == (3, 4, 1)


def test_mixed_gold_is_left_out_or_lowers_precision_only() -> None:
    items = [item("p", "ppppp"), item("n", "nnnnn"), item("u", "uuuuu"), item("m", "mmmpp")]
    dropped, kept = performance(items).with_gold, performance(items, "keep").with_gold
    assert dropped.scores is not None and kept.scores is not None
    assert (dropped.items, kept.items) == (3, 4)
    assert dropped.scores.macro_precision > kept.scores.macro_precision
    assert dropped.scores.macro_recall == kept.scores.macro_recall == 1


def many(seed: int, items: int = 60, workers: int = 40) -> list[AnsweredItem]:
    rng = random.Random(seed)
    found = []
    for number in range(items):
        gold = rng.choice(ORDER)
        labels = rng.choices(ORDER, weights=[6 if label == gold else 1 for label in ORDER], k=5)
        # A few workers do most of the work.
        chosen = sorted(range(workers), key=lambda worker: rng.random() * (worker + 1))[:5]
        majority = next((label for label in ORDER if labels.count(label) >= 3), None)
        responses = tuple((f"w{worker}", label) for worker, label in zip(chosen, labels, strict=True))
        found.append(AnsweredItem(majority, responses, f"review {number // 2}", number % 3 == 0))
    return found


def test_intervals_are_those_of_human_scores_and_cover_the_figure() -> None:
    items = many(1)
    found = performance(items).with_gold
    pairs: list[HumanItem] = [(gold, [label for _, label in responses]) for gold, responses, _, _ in items]
    clusters = [one.cluster for one in items]
    assert found.intervals is not None and found.intervals.macro is not None and found.scores is not None
    assert found.intervals.macro == human_interval(pairs, MODEL_LABELS, ORDER, clusters, seed=1, resamples=100)
    for row, interval in zip(found.scores.per_label, found.intervals.per_label, strict=True):
        assert interval.low < row.f1 == interval.estimate < interval.high


def test_the_interval_against_the_other_four_equals_a_naive_bootstrap_in_width() -> None:
    items = many(2, items=200)
    found = human_performance(items, MODEL_LABELS, ORDER, Bootstrap(seed=3, resamples=1000), "keep").leave_one_out
    rng = random.Random(4)
    counted = [one for one in items if one.gold is not None]
    members: dict[str, list[AnsweredItem]] = {}
    for one in counted:
        members.setdefault(str(one.cluster), []).append(one)
    groups = list(members.values())
    draws = [[one for group in rng.choices(groups, k=len(groups)) for one in group] for _ in range(150)]
    naive = np.std([scored_by_hand(draw)[0] for draw in draws])
    assert found.intervals is not None and found.intervals.macro is not None
    width = found.intervals.macro.high - found.intervals.macro.low
    assert width == pytest.approx(2 * 1.96 * naive, rel=0.2)


def test_neither_order_of_items_nor_of_responses_matters() -> None:
    items = many(5)
    turned = [one._replace(responses=tuple(reversed(one.responses))) for one in reversed(items)]
    assert performance(items) == performance(turned)


def test_worker_groups_share_out_all_workers_and_responses() -> None:
    items = many(6, items=150)
    found = performance(items, "keep")
    assert [group.name for group in found.groups] == ["1–9", "10–49", "50–199", "200 and more"]
    workers = {worker for one in items for worker, _ in one.responses}
    assert sum(group.workers for group in found.groups) == len(workers)
    assert sum(group.responses for group in found.groups) == 750 == found.responses
    assert sum(group.figure.responses for group in found.groups) == found.with_gold.responses
    assert sum(group.figure.agreeing for group in found.groups) == found.with_gold.agreeing


def test_a_group_is_scored_on_its_own_responses() -> None:
    busy = [item(letter, letter * 4 + "p")._replace(responses=()) for letter in "pnu" * 4]
    items = [
        one._replace(responses=(("busy", "positive"), *((f"w{n}-{m}", str(one.gold)) for m in range(4))))
        for n, one in enumerate(busy)
    ]
    few, ten = performance(items).groups[:2]
    assert (few.workers, few.responses, ten.workers, ten.responses) == (48, 48, 1, 12)
    assert macro_f1(few.figure) == 1
    # Always positive: 4 of 12 right, the other two labels never given.
    assert ten.figure.scores is not None
    assert [row.f1 for row in ten.figure.scores.per_label] == pytest.approx([0.5, 0, 0])
    assert [row.support for row in ten.figure.scores.per_label] == [4, 4, 4]


def test_published_worker_groups_count_every_worker(shared_data: Path) -> None:
    groups = performance(answered(shared_data, ROUND_1)).groups
    assert [(group.workers, group.responses) for group in groups] == [(888, 2739), (288, 5968), (99, 8126), (5, 1167)]


def test_a_group_of_everyone_is_the_figure_on_all_gold() -> None:
    found = performance([item("p", "ppppn"), item("n", "nnnnu"), item("u", "uuuup")])
    assert found.groups[0].figure == found.with_gold
    assert found.groups[1].figure.reason == "undefined: none of these responses is on an example that counts"


def test_where_all_count_pooling_is_that_of_human_scores() -> None:
    items = [*many(7), *with_majority_gold(["pppnn"])]
    pairs: list[HumanItem] = [(gold, [label for _, label in responses]) for gold, responses, _, _ in items]
    pooled = pooled_human_scores(pairs, MODEL_LABELS, ORDER, "keep").macro_f1
    assert macro_f1(performance(items, "keep").with_gold) == pytest.approx(pooled, abs=5e-3)


def test_one_item_has_scores_and_no_interval() -> None:
    found = performance([item("p", "ppppn")]).with_gold
    assert macro_f1(found) == pytest.approx(8 / 10 / 3)
    assert found.intervals is not None
    assert found.intervals[0:3] == (None, (), 1)
    assert found.intervals.reason == "undefined: all examples are of one cluster, which cannot be resampled"


@pytest.mark.parametrize("items", [[], [item(None, "ppnnu")], [item("m", "mmmmm")], [item(None, "ppn")]])
def test_without_gold_nothing_is_scored(items: list[AnsweredItem]) -> None:
    found = performance(items)
    for figure in (found.filtered, found.with_gold, found.leave_one_out, *(group.figure for group in found.groups)):
        assert (figure.scores, figure.intervals, figure.items) == (None, None, 0)
        assert figure.reason is not None and figure.reason.startswith("undefined: no example has a gold label")
    assert explanation(found, "people").startswith("There is no F1 of people: of")


def test_a_label_that_is_missing_scores_zero() -> None:
    found = performance([item("p", "ppppp"), item("n", "nnnnn")])
    assert macro_f1(found.with_gold) == macro_f1(found.leave_one_out) == pytest.approx(2 / 3)


def test_responses_without_four_others_are_unusable() -> None:
    found = performance([item("p", "ppppp"), item(None, "pppp"), item(None, "ppnnu")])
    assert (found.unusable_of_all, found.responses, found.leave_one_out.unusable) == (9, 14, 0)


@pytest.mark.parametrize(
    ("items", "message"),
    [
        ([item("p", "ppppppn")], "item 1 has 7 responses; each is compared with the other four"),
        ([item("p", "ppppp"), item(None, "ppppnnn")], "item 2 has 7 responses"),
        ([item("p", "pppp")], "item 1 has 4 responses"),
        ([AnsweredItem("joy", (), None, False)], "item 1 has the label 'joy'"),
        ([AnsweredItem("positive", (("w1", "positive"),) * 5, None, False)], "two responses of one worker"),
    ],
)
def test_what_cannot_be_compared_is_refused(items: list[AnsweredItem], message: str) -> None:
    with pytest.raises(BadInput, match=message):
        performance(items)


def test_a_confidence_that_is_no_share_is_refused() -> None:
    with pytest.raises(BadInput, match="confidence is 95"):
        human_performance(many(1), MODEL_LABELS, ORDER, Bootstrap(1, 10, 95))


def test_the_paragraph_on_the_published_dev_file(shared_data: Path) -> None:
    text = explanation(performance(answered(shared_data, ROUND_1)), "people")
    assert "(a) On the filtered splits, 3,600 examples of dev and test, it is 0.8798 (95 % interval" in text
    assert "at least 4 of 5 agree with the gold label of each example" in text
    assert "guarantees a vote accuracy of at least 0.80; it is 0.8691" in text
    assert "as in (a): what a filter left out is not among these examples" in text
    assert "the other four always have one, and (c) is 0.8798" in text and "the same as (b)" in text


def test_the_paragraph_on_sst(shared_data: Path) -> None:
    text = explanation(performance(answered(shared_data, SST), "keep"), "people")
    assert "(a) On the filtered splits, dev and test, there is none" in text
    assert "(b) On all 1,037 examples with a gold label it is 0.8234" in text
    assert "693 of 5,185 responses are unusable" in text and "of all examples together 1,013 of 5,505" in text
    assert "(c) is 0.7933" in text and "lower than (b)" in text
    assert "these 3 are unusable and those that differ stay: (c) is strict where (b) is lenient" in text


@pytest.mark.parametrize("crowd", ["a scripted crowd (not people)", "a replayed crowd (recorded people)"])
def test_the_paragraph_calls_a_crowd_by_its_name(crowd: str) -> None:
    text = explanation(performance(many(1)), crowd)
    assert f"The macro F1 of {crowd} is given" in text
    assert "human" not in text.lower() and "people" not in text.replace(crowd, "")


def test_the_paragraph_says_where_more_examples_score_higher() -> None:
    chosen = [item(letter, letter * 4 + "m", held_out=True) for letter in "pnu"]
    text = explanation(performance([*chosen, *(item(letter, letter * 5) for letter in "pnu")]), "people")
    assert "higher than (a). The vote accuracy is 0.9000 there; it is 1.0000 on the 3 examples" in text
    assert "strict" not in text


def test_the_paragraph_says_where_gold_labels_lack_to_the_model() -> None:
    text = explanation(performance([item("p", "ppppp"), item("n", "nnnnn"), item("m", "mmmmm")]), "people")
    assert "(b) On all 2 examples with a gold label that the model has" in text


def test_the_paragraph_on_a_single_example_has_no_interval() -> None:
    text = explanation(performance([item("p", "ppppn", held_out=True)]), "people")
    assert "1 example of dev and test, it is 0.2667 (without an interval: all examples are of one cluster)" in text


@settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(st.text("pnum", min_size=5, max_size=5), st.booleans()), max_size=8))
def test_the_paragraph_orders_the_figures_as_it_prints_them(rows: list[tuple[str, bool]]) -> None:
    items = with_majority_gold([responses for responses, _ in rows])
    found = performance([one._replace(held_out=held_out) for one, (_, held_out) in zip(items, rows, strict=True)])
    text = explanation(found, "people")
    printed = dict(re.findall(r"\(([abc])\) (?:[^.(]*) is ([01]\.[0-9]{4}) \(", text))
    printed |= dict(re.findall(r"\((c)\) is ([01]\.[0-9]{4})", text))
    assert ("b" in printed) == ("c" in printed) == (found.with_gold.scores is not None)
    assert ("a" in printed) == (found.filtered.scores is not None)
    compared = re.findall(r"(lower than|higher than|the same as) \(([ab])\)", text)
    assert len(compared) >= (found.with_gold.scores is not None)
    for word, other in compared:
        here, there = float(printed["b" if other == "a" else "c"]), float(printed[other])
        assert word == ("the same as" if here == there else "lower than" if here < there else "higher than")
