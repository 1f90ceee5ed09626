"""Reliability of predicted probabilities and the expected calibration error."""

import math
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.calibration import calibration_curve

from dynaround.calibration import calibration, fit_temperature
from dynaround.errors import BadInput
from tests.published_rounds import ROUND_1, ROUND_2, published


def test_two_bins_by_hand() -> None:
    found = calibration([0.4, 0.5, 0.9, 1.0], [False, True, True, True], bins=2)
    assert found.bins[0] == (0.0, 0.5, 2, pytest.approx(0.45), 0.5)
    assert found.bins[1] == (0.5, 1.0, 2, pytest.approx(0.95), 1.0)
    # Both bins are off by .05 and hold half of the items.
    assert found.error == pytest.approx(0.05)
    assert (found.items, found.accuracy, found.mean_probability) == (4, 0.75, pytest.approx(0.7))


@pytest.mark.parametrize(("probability", "place"), [(0.0, 0), (1 / 15, 0), (1.0, 14), (0.5, 7), (1e-300, 0)])
def test_every_probability_from_0_to_1_has_a_bin(probability: float, place: int) -> None:
    found = calibration([probability], [True])
    assert [row.items for row in found.bins] == [int(number == place) for number in range(15)]
    assert found.error == pytest.approx(1 - probability)


def test_an_edge_belongs_to_the_bin_below() -> None:
    assert [row.items for row in calibration([0.25, 0.5, 0.75], [True] * 3, bins=4).bins] == [1, 1, 1, 0]


def test_an_empty_bin_has_no_accuracy() -> None:
    assert calibration([0.9], [True]).bins[0][2:] == (0, None, None)


def test_certain_and_right_has_no_error_and_certain_and_wrong_all_of_it() -> None:
    assert calibration([1.0, 1.0], [True, True]).error == 0
    assert calibration([1.0, 1.0], [False, False]).error == 1


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(st.floats(0, 1) | st.sampled_from([0.2, 0.4, 0.6]), st.booleans()), min_size=1, max_size=60),
    st.integers(1, 20),
)
def test_bins_equal_those_of_scikit_learn(items: list[tuple[float, bool]], bins: int) -> None:
    probabilities, right = [list(column) for column in zip(*items, strict=True)]
    accuracies, means = calibration_curve(right, probabilities, n_bins=bins, pos_label=True)
    filled = [row for row in calibration(probabilities, right, bins=bins).bins if row.items]
    assert [row.accuracy for row in filled] == pytest.approx(accuracies)
    assert [row.mean_probability for row in filled] == pytest.approx(means)


def test_the_error_is_the_mean_gap_weighted_by_items() -> None:
    rng = random.Random(1)
    probabilities = [rng.random() for _ in range(500)]
    right = [rng.random() < probability**2 for probability in probabilities]
    found = calibration(probabilities, right)
    gaps = [abs((row.accuracy or 0) - (row.mean_probability or 0)) for row in found.bins]
    assert found.error == pytest.approx(np.average(gaps, weights=[row.items for row in found.bins]))


def test_the_order_of_items_does_not_matter() -> None:
    rng = random.Random(2)
    items = [(rng.random(), rng.random() < 0.5) for _ in range(300)]
    turned = items[::-1]
    assert calibration(*zip(*items, strict=True)) == calibration(*zip(*turned, strict=True))


@pytest.mark.parametrize(
    ("name", "model", "mean", "right", "wrong"),
    [(ROUND_1, "model_0", 0.7003, 0.7701, 0.6653), (ROUND_2, "model_1", 0.6577, 0.7920, 0.5905)],
)
def test_the_published_models_are_right_one_time_in_three(
    shared_data: Path, name: str, model: str, mean: float, right: float, wrong: float
) -> None:
    rows = published(shared_data, name)
    tops = [max(row[f"{model}_probs"].values()) for row in rows]
    hits = [row[f"{model}_label"] == row["gold_label"] for row in rows]
    found = calibration(tops, hits)
    assert (found.items, found.accuracy) == (len(rows), pytest.approx(1 / 3))
    assert found.mean_probability == pytest.approx(mean, abs=5e-5)
    for outcome, expected in ((True, right), (False, wrong)):
        part = [top for top, hit in zip(tops, hits, strict=True) if hit is outcome]
        assert calibration(part, [outcome] * len(part)).mean_probability == pytest.approx(expected, abs=5e-5)


@pytest.mark.parametrize(
    ("probabilities", "right", "bins", "message"),
    [
        ([], [], 15, "nothing to calibrate"),
        ([0.5], [True, False], 15, "1 probabilities and 2 outcomes"),
        ([0.5, 1.5], [True, True], 15, "probability 2 is 1.5"),
        ([-0.1], [True], 15, "probability 1 is -0.1"),
        ([float("nan")], [True], 15, "probability 1 is nan"),
        ([0.5], [True], 0, "0 bins were asked for"),
    ],
)
def test_what_cannot_be_calibrated_is_refused(probabilities: Any, right: Any, bins: int, message: str) -> None:
    with pytest.raises(BadInput, match=message):
        calibration(probabilities, right, bins=bins)


@pytest.mark.parametrize("temperature", [0.4, 1.0, 3.0])
def test_the_temperature_that_logits_were_multiplied_by_is_found(temperature: float) -> None:
    rng = random.Random(2)
    logits = [[rng.gauss(0, 2) for _ in range(3)] for _ in range(200)]
    targets = [[math.exp(x) / sum(map(math.exp, row)) for x in row] for row in logits]
    found = fit_temperature([[temperature * x for x in row] for row in logits], targets)
    assert found.value == pytest.approx(temperature, rel=1e-4)
    assert found.nll_after <= found.nll_before + 1e-12
    entropy = -sum(p * math.log(p) for row in targets for p in row) / len(targets)
    assert found.nll_after == pytest.approx(entropy, rel=1e-6)


def test_a_temperature_needs_logits_and_targets_of_the_same_rows() -> None:
    with pytest.raises(BadInput, match=r"not \(2, 3\) and \(1, 3\)"):
        fit_temperature([[0.0, 1.0, 2.0]] * 2, [[1.0, 0.0, 0.0]])
    with pytest.raises(BadInput, match="a temperature needs logits"):
        fit_temperature([], [])
