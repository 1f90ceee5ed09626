"""Whether a round is solved: the paired bootstrap, its two bounds, the three answers, and the sizes it takes."""

import json
import random
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st

from dynaround.errors import BadInput
from dynaround.human import expected_human_scores, pooled_human_scores
from dynaround.paired_resampling import Bounds
from dynaround.scoring import score
from dynaround.solved import (
    NOT_SOLVED,
    SOLVED,
    UNDECIDED,
    JudgedItem,
    SolvedAnswer,
    answer_at,
    answer_lines,
    decide,
    plain,
)
from dynaround.solved_power import DEFAULT_SPREAD, chance_called_solved, items_called_solved
from dynaround.text import natural_order

ORDER = ("positive", "negative", "neutral", "mixed")
LABELS = ORDER[:3]


def judged(
    seed: int, items: int = 60, *, right: float = 0.8, agree: float = 0.8, workers: int = 12, sources: int = 25
) -> list[JudgedItem]:
    """Draw items of both splits; without agreement or a right prediction, any label comes."""
    rng = random.Random(seed)
    made = []
    for place in range(items):
        gold = rng.choice(LABELS)
        responses = tuple(
            (f"w{rng.randrange(workers) + 1}", gold if rng.random() < agree else rng.choice(ORDER)) for _ in range(5)
        )
        made.append(
            JudgedItem(
                identity=f"r1-{place:04}",
                split=rng.choice(["dev", "test"]),
                gold=gold,
                prediction=gold if rng.random() < right else rng.choice(LABELS),
                responses=responses,
                cluster=f"review {rng.randrange(sources)}" if rng.random() < 0.7 else None,
            )
        )
    return made


def asked(items: list[JudgedItem], margin: float = 0.02, seed: int = 3, resamples: int = 200) -> SolvedAnswer:
    return decide(items, LABELS, ORDER, margin=margin, seed=seed, resamples=resamples)


def exact_difference(items: list[JudgedItem]) -> float:
    model = score([item.gold for item in items], [item.prediction for item in items], LABELS)
    people = expected_human_scores(
        [(item.gold, [label for _, label in item.responses]) for item in items], LABELS, ORDER
    )
    return model.macro_f1 - people.macro_f1


def groups_of(items: list[JudgedItem]) -> list[list[JudgedItem]]:
    """Return the items by source, sources in the order of their first identity."""
    found = defaultdict(list)
    for item in sorted(items, key=lambda item: item.identity):
        found[item.identity if item.cluster is None else item.cluster].append(item)
    return list(found.values())


def counted(group: list[JudgedItem]) -> list[int]:
    """Return what a source adds to the sums, in the order of columns that decides which source is drawn by a number."""
    columns: list[list[int]] = []
    for item in group:
        given = [[answer for _, answer in item.responses].count(label) for label in LABELS]
        true = [count if label == item.gold else 0 for label, count in zip(LABELS, given, strict=True)]
        false = [count - right for count, right in zip(given, true, strict=True)]
        gold = [int(label == item.gold) for label in LABELS]
        said = [int(label == item.prediction) for label in LABELS]
        right = [one * other for one, other in zip(gold, said, strict=True)]
        spread = [[a * (5 - a) for a in counts] for counts in (true, false)]
        columns.append([*true, *spread[0], *false, *spread[1], *gold, *said, *right])
    return [sum(column) for column in zip(*columns, strict=True)]


def published(shared_data: Path, name: str, prediction: str | None = None, right: float = 0.88) -> list[JudgedItem]:
    """Return a published split with its stored predictions, or those of a model that errs at random."""
    rng = random.Random(5)
    items = []
    for line in (shared_data / "dynasent" / f"{name}.jsonl").read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        gold = row["gold_label"]
        said = gold if rng.random() < right else rng.choice([label for label in LABELS if label != gold])
        responses = tuple((worker, label) for label in ORDER for worker in row["label_distribution"][label])
        said = row[prediction] if prediction else said
        items.append(JudgedItem(row["text_id"], "dev", gold, said, responses, row.get("review_id")))
    return items


ROUND_1, ROUND_2 = "dynasent-v1.1-round01-yelp-dev", "dynasent-v1.1-round02-dynabench-dev"


def test_the_bounds_equal_those_of_literal_resamples() -> None:
    items = judged(1, 150)
    groups = sorted(groups_of(items), key=counted)
    generator = np.random.default_rng(3)
    values = []
    for _ in range(200):
        drawn = [item for place in generator.integers(len(groups), size=len(groups)) for item in groups[place]]
        values.append(exact_difference(drawn))
    found = asked(items).together
    assert found.difference == pytest.approx(exact_difference(items), abs=1e-15)
    assert (found.items, found.clusters) == (150, len(groups))
    # What is left is the expectation to second order, which is exact to some 1e-6 on the published sizes.
    assert found.bounds == pytest.approx((*np.quantile(values, [0.05, 0.95]), np.std(values)), abs=2e-5)


@pytest.mark.parametrize("workers", [1, 12, 300])
def test_items_and_workers_resampled_together_equal_a_literal_loop(workers: int) -> None:
    items = judged(2, 40, workers=workers)
    groups = groups_of(items)
    names = sorted({worker for item in items for worker, _ in item.responses}, key=natural_order)
    of_clusters, of_workers = np.random.default_rng(3).spawn(2)

    def weighted(cluster_times: list[int], worker_times: dict[str, int]) -> float:
        gains = []
        for label in LABELS:
            model = [0, 0]
            people = [0, 0]
            for times, group in zip(cluster_times, groups, strict=True):
                for item in group:
                    model[0] += 2 * times * (item.gold == item.prediction == label)
                    model[1] += times * ((item.gold == label) + (item.prediction == label))
                    for worker, answer in item.responses:
                        weight = times * worker_times[worker]
                        people[0] += 2 * weight * (answer == item.gold == label)
                        people[1] += weight * ((answer == label) + (item.gold == label))
            gains.append(model[0] / (model[1] or 1) - people[0] / (people[1] or 1))
        return sum(gains) / len(gains)

    values = []
    for _ in range(150):
        drawn = [int(d) for d in of_clusters.integers(len(groups), size=len(groups))]
        called = [names[int(d)] for d in of_workers.integers(len(names), size=len(names))]
        values.append(
            weighted([drawn.count(place) for place in range(len(groups))], {name: called.count(name) for name in names})
        )
    pooled = pooled_human_scores([(item.gold, [label for _, label in item.responses]) for item in items], LABELS, ORDER)
    expected = expected_human_scores(
        [(item.gold, [label for _, label in item.responses]) for item in items], LABELS, ORDER
    )
    low, high = np.quantile(values, [0.05, 0.95]) + pooled.macro_f1 - expected.macro_f1
    found = asked(items, resamples=150).with_workers
    assert found.workers == len(names)
    assert found.bounds == pytest.approx((low, high, np.std(values)), abs=1e-12)


def test_how_many_resamples_are_held_at_once_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = asked(judged(4))
    monkeypatch.setattr("dynaround.paired_resampling._BLOCK", 7)
    assert asked(judged(4)).with_workers.bounds == pytest.approx(whole.with_workers.bounds, abs=1e-15)


def test_the_seed_decides_and_nothing_else_does() -> None:
    assert asked(judged(5)) == asked(judged(5))
    assert asked(judged(5)).together.bounds != asked(judged(5), seed=4).together.bounds


@settings(deadline=None, max_examples=25)
@given(st.integers(0, 10_000), st.randoms(use_true_random=False))
def test_the_order_of_items_and_responses_does_not_matter(seed: int, rng: random.Random) -> None:
    items = judged(seed, 30)
    turned = [item._replace(responses=tuple(rng.sample(item.responses, 5))) for item in rng.sample(items, len(items))]
    assert asked(turned, resamples=60) == asked(items, resamples=60)


@settings(deadline=None, max_examples=25)
@given(st.integers(0, 10_000), st.floats(0, 1), st.floats(0, 1), st.floats(0.001, 0.5))
def test_an_answer_says_what_its_bounds_say(seed: int, right: float, agree: float, margin: float) -> None:
    found = asked(judged(seed, 40, right=right, agree=agree), margin, resamples=60)
    for one in (found.together, *found.splits):
        assert -1 <= one.difference <= 1
        assert one.bounds.lower <= one.bounds.upper
        assert (one.answer == SOLVED) == (one.bounds.lower > -margin)
        assert (one.answer == NOT_SOLVED) == (one.bounds.upper < -margin)
    assert found.answer == found.together.answer
    assert found.items_for_80 >= 2
    wider = asked(judged(seed, 40, right=right, agree=agree), 0.9, resamples=60)
    assert wider.together.bounds == found.together.bounds
    assert wider.answer == SOLVED or found.answer != SOLVED


@pytest.mark.parametrize(
    ("lower", "upper", "answer"),
    [
        (-0.0199, 0.03, SOLVED),
        (-0.02, 0.03, UNDECIDED),
        (-0.03, 0.01, UNDECIDED),
        (-0.03, -0.02, UNDECIDED),
        (-0.03, -0.0201, NOT_SOLVED),
        (0.01, 0.02, SOLVED),
    ],
)
def test_a_bound_on_the_margin_decides_nothing(lower: float, upper: float, answer: str) -> None:
    assert answer_at(Bounds(lower, upper, 0.01), 0.02) == answer


def test_a_model_that_equals_gold_solves_a_round() -> None:
    items = [item._replace(prediction=item.gold) for item in judged(6, 90, agree=0.7)]
    found = asked(items)
    assert found.together.model.macro_f1 == 1
    assert found.answer == SOLVED and found.with_workers.answer == SOLVED and found.together.bounds.lower > 0


def test_where_nothing_varies_both_bounds_are_the_difference() -> None:
    agreed = [item._replace(responses=tuple((w, item.gold) for w, _ in item.responses)) for item in judged(7)]
    equal = asked([item._replace(prediction=item.gold) for item in agreed])
    assert (equal.answer, *equal.together.bounds, *equal.with_workers.bounds) == (SOLVED, *[0.0] * 6)
    assert equal.items_for_80 == 2
    turned = dict(zip(LABELS, LABELS[1:] + LABELS[:1], strict=True))
    never = asked([item._replace(prediction=turned[item.gold]) for item in agreed])
    assert (never.answer, never.together.bounds[:2]) == (NOT_SOLVED, (-1.0, -1.0))


def test_a_label_that_no_item_has_counts_as_nought_on_both_sides() -> None:
    two = [item for item in judged(8, 90) if item.gold != "neutral"]
    two = [item._replace(prediction=item.gold) for item in two]
    found = asked(two)
    assert found.together.model.macro_f1 == pytest.approx(2 / 3)
    assert found.together.people.per_label[2].f1 == 0
    assert found.together.difference == pytest.approx(exact_difference(two), abs=1e-15)


def test_splits_whose_bounds_do_not_overlap_are_warned_about() -> None:
    items = [
        item._replace(prediction=item.gold if item.split == "dev" else LABELS[LABELS.index(item.gold) - 1])
        for item in judged(9, 200, agree=0.9)
    ]
    found = asked(items)
    assert [(split.on, split.answer) for split in found.splits] == [("dev", SOLVED), ("test", NOT_SOLVED)]
    assert found.warning is not None and found.warning.startswith("test and dev point apart")
    assert found.together.on == "dev and test"
    assert sum(split.items for split in found.splits) == found.together.items == 200


def test_splits_that_agree_are_not_warned_about() -> None:
    assert asked(judged(10, 300)).warning is None


def test_one_split_alone_decides_alone() -> None:
    test = [item for item in judged(11, 200) if item.split == "test"]
    found = asked(test)
    assert found.splits == (found.together,) and found.together.on == "test" and found.warning is None
    # A split beside another one has the bounds that it has alone.
    assert asked(judged(11, 200)).splits[1] == found.together


def without(item: JudgedItem, **changed: Any) -> list[JudgedItem]:
    return [item._replace(identity="r1-9999", **changed), *judged(12)]


@pytest.mark.parametrize(
    ("items", "message"),
    [
        ([], "no item to judge"),
        ([judged(12)[0], *judged(12)], "item r1-0000 is there twice"),
        (without(judged(12)[0], gold="mixed"), "item r1-9999 has the gold label 'mixed'"),
        (without(judged(12)[0], gold=None), "item r1-9999 has the gold label None"),
        (without(judged(12)[0], responses=(("w1", "positive"),) * 4), "item r1-9999 has 4 responses"),
        (without(judged(12)[0], responses=(("w1", "nosentiment"),) * 5), "has the label 'nosentiment'"),
        (without(judged(12)[0], prediction="mixed"), "prediction .* is 'mixed'"),
        ([item._replace(cluster="review 1", split="dev") for item in judged(12)], "dev: all items are of one cluster"),
        (without(judged(12)[0], split="held out"), "held out: all items are of one cluster"),
    ],
)
def test_what_cannot_be_judged_is_refused(items: list[JudgedItem], message: str) -> None:
    with pytest.raises(BadInput, match=message):
        asked(items)


@pytest.mark.parametrize("margin", [0.0, -0.02, 1.0, float("nan")])
def test_a_margin_is_a_share(margin: float) -> None:
    with pytest.raises(BadInput, match="the margin is"):
        asked(judged(13), margin)


def test_an_answer_is_plain_data_and_says_who_answered() -> None:
    figures = plain(asked(judged(14)))
    assert json.loads(json.dumps(figures, allow_nan=False)) == figures
    assert figures["together"]["half_width"] == (figures["together"]["upper"] - figures["together"]["lower"]) / 2
    lines = list(answer_lines({**figures, "responses_from": "a scripted crowd"}))
    assert lines[0].startswith(f"{figures['answer']}: ") and sum("a scripted crowd" in line for line in lines) >= 2
    assert not any("people" in line for line in lines)
    assert any("gold itself is not re-drawn" in line for line in lines)
    assert [line.split()[0] for line in lines[2:5]] == ["dev", "dev", "test"]


def test_a_warning_is_the_last_line() -> None:
    figures = {**plain(asked(judged(15))), "responses_from": "people", "warning": "they differ"}
    assert list(answer_lines(figures))[-1] == "warning: they differ"


def test_the_chance_of_being_called_solved_is_that_of_a_normal_estimate() -> None:
    for items, margin, spread in [(1440, 0.02, 0.35), (7200, 0.02, 0.35), (90, 0.05, 0.4)]:
        error = spread / items**0.5
        expected = scipy.stats.norm(0, error).sf(scipy.stats.norm.ppf(0.95) * error - margin)
        assert chance_called_solved(items, margin, spread) == pytest.approx(expected, abs=1e-12)
    assert chance_called_solved(1440, 0.02) == pytest.approx(0.70, abs=0.005)


@given(st.floats(0.06, 0.99), st.floats(0.005, 0.2), st.floats(0.1, 2))
def test_the_advised_size_is_the_smallest_with_the_chance(chance: float, margin: float, spread: float) -> None:
    items = items_called_solved(chance, margin, spread)
    assert chance_called_solved(items, margin, spread) >= chance - 1e-9
    assert items == 2 or chance_called_solved(items - 1, margin, spread) < chance + 1e-9


@pytest.mark.parametrize(("items", "margin", "spread"), [(0, 0.02, 0.35), (100, 0.0, 0.35), (100, 0.02, 0.0)])
def test_no_chance_without_items_margin_or_spread(items: int, margin: float, spread: float) -> None:
    with pytest.raises(BadInput, match="must be above 0"):
        chance_called_solved(items, margin, spread)


@pytest.mark.parametrize(
    ("chance", "margin", "spread"), [(0.05, 0.02, 0.3), (1.0, 0.02, 0.3), (0.8, 0, 0.3), (0.8, 1, -1)]
)
def test_no_size_is_advised_for_an_impossible_chance(chance: float, margin: float, spread: float) -> None:
    with pytest.raises(BadInput, match="give no size"):
        items_called_solved(chance, margin, spread)


def test_a_model_as_good_as_people_solves_round_1_with_the_documented_spread(shared_data: Path) -> None:
    found = asked(published(shared_data, ROUND_1), resamples=2_000)
    assert found.together.people.macro_f1 == pytest.approx(0.879814, abs=1e-6)
    assert (found.together.clusters, found.with_workers.workers) == (3469, 1280)
    assert abs(found.together.difference) < 0.01 and found.answer == SOLVED
    assert found.together.bounds.standard_error * 3600**0.5 == pytest.approx(DEFAULT_SPREAD, abs=0.02)
    # Workers differ, so drawing them too must say less.
    assert found.with_workers.bounds.standard_error > 1.2 * found.together.bounds.standard_error
    # The round is larger than it need be, and the advice says by how much.
    assert 1_400 < found.items_for_80 < 2_100


@pytest.mark.parametrize(("name", "target"), [(ROUND_1, "model_0_label"), (ROUND_2, "model_1_label")])
def test_the_target_of_a_published_round_does_not_solve_it(shared_data: Path, name: str, target: str) -> None:
    found = asked(published(shared_data, name, target), resamples=500)
    assert found.together.model.macro_f1 == pytest.approx(1 / 3, abs=1e-12)
    assert (found.answer, found.with_workers.answer) == (NOT_SOLVED, NOT_SOLVED)


def test_simulated_rounds_have_the_true_difference_they_are_made_for() -> None:
    calibration = pytest.importorskip("benchmarks.solved_calibration")
    generator = np.random.default_rng(1)
    people = calibration.simulated_responses(generator, 120_000)
    human = calibration.people_macro_f1(calibration.PATTERNS)
    sums = calibration.response_moments(people.table).sum(axis=0)
    for true in (0.02, -0.05):
        predicted = calibration.simulated_predictions(generator, people, calibration.skill_for(human + true))
        found = calibration.differences(sums, calibration.model_counts(people.table, predicted).sum(axis=0))
        # Four standard errors of a spread of .4.
        assert found == pytest.approx(true, abs=4 * 0.4 / 120_000**0.5)
