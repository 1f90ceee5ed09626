"""Loads and agreement of workers."""

import random
from fractions import Fraction
from pathlib import Path

import pytest

from dynaround.agreement import WorkerResponse
from dynaround.errors import BadInput
from dynaround.worker_figures import worker_figures
from tests.published_rounds import ROUND_1, ROUND_2, SST, worker_responses


def responses(**examples: str) -> list[WorkerResponse]:
    """Return the responses of w1, w2 ... on each example, a letter a label; a blank is no response."""
    return [
        WorkerResponse(example, f"w{number}", label)
        for example, labels in examples.items()
        for number, label in enumerate(labels, start=1)
        if label != " "
    ]


@pytest.mark.parametrize(
    ("name", "workers", "perfect", "from_95", "share"),
    [
        (ROUND_1, 1280, 614, 654, 0.5109375),
        (ROUND_2, 244, 116, 126, 0.5163934),
        (SST, 103, 4, 6, 0.0582524),
    ],
)
def test_published_agreement_of_workers(
    shared_data: Path, name: str, workers: int, perfect: int, from_95: int, share: float
) -> None:
    found = worker_figures(worker_responses(shared_data, name))
    assert (found.workers, found.comparable, found.perfect, found.from_95) == (workers, workers, perfect, from_95)
    assert found.share_from_95 == pytest.approx(share, abs=1e-6)
    assert sum(row.workers for row in found.rates) == workers


@pytest.mark.parametrize(
    ("name", "median_rate", "lowest", "median_load"),
    [(ROUND_1, 0.9590, 58, 4), (ROUND_2, 0.9559, 4, 7), (SST, 0.8684, 0, 31)],
)
def test_the_middle_and_the_low_end_of_published_rates(
    shared_data: Path, name: str, median_rate: float, lowest: int, median_load: float
) -> None:
    found = worker_figures(worker_responses(shared_data, name))
    assert found.median_rate == pytest.approx(median_rate, abs=5e-5)
    assert found.rates[0] == (0.0, 0.05, lowest)
    assert found.median_load == median_load


def test_published_loads_of_sst(shared_data: Path) -> None:
    found = worker_figures(worker_responses(shared_data, SST))
    assert (found.workers, found.responses, found.median_load, found.mode_load) == (103, 5505, 31, 10)
    assert found.most_active == (("w135", 280), ("w55", 241), ("w3", 220), ("w352", 172), ("w26", 171))


def test_the_mode_is_the_smallest_of_the_most_common_loads() -> None:
    found = worker_figures(responses(e1="aaaa", e2="  aa"))
    assert (found.mode_load, found.median_load) == (1, 1.5)
    assert [load.worker for load in found.most_active] == ["w3", "w4", "w1", "w2"]


def test_the_most_active_are_at_most_five_and_ties_go_by_number() -> None:
    found = worker_figures(responses(e1="aaaaaaaaaaaa"))
    assert [load.worker for load in found.most_active] == ["w1", "w2", "w3", "w4", "w5"]


def test_rates_are_over_examples_with_a_majority_of_five() -> None:
    found = worker_figures(responses(gold="aaaab", tie="aabbc", short="bbbb"))
    assert (found.workers, found.comparable, found.perfect, found.from_95) == (5, 5, 4, 4)
    assert (found.rates[0].workers, found.rates[-1].workers) == (1, 4)
    assert (found.share_from_95, found.median_rate, found.reason) == (0.8, 1.0, None)


def test_nineteen_of_twenty_is_from_95() -> None:
    examples = {f"e{number}": "aaaaa" for number in range(19)}
    found = worker_figures(responses(**examples, last="baaaa"))
    assert (found.from_95, found.perfect, found.rates[-1].workers) == (5, 4, 5)
    with_another = worker_figures(responses(**examples, last="baaaa", more="baaaa"))
    assert (with_another.from_95, with_another.rates[-2].workers) == (4, 1)


def test_bins_hold_their_lower_edge_exactly() -> None:
    examples = {f"e{number}": ("a" if number < 3 else "b") + "aaaa" for number in range(5)}
    found = worker_figures(responses(**examples))
    filled = {Fraction(row.low).limit_denominator(20): row.workers for row in found.rates if row.workers}
    assert filled == {Fraction(3, 5): 1, Fraction(19, 20): 4}


def test_one_worker_alone_has_a_load_and_no_rate() -> None:
    found = worker_figures(responses(e1="a", e2="a"))
    assert (found.workers, found.median_load, found.mode_load, found.most_active) == (1, 2, 2, (("w1", 2),))
    assert (found.comparable, found.share_from_95, found.median_rate) == (0, None, None)
    assert found.reason == "undefined: no worker responded on an example with a gold label"


def test_no_response_at_all_is_no_figure() -> None:
    found = worker_figures([])
    assert (found.workers, found.median_load, found.mode_load, found.share_from_95) == (0, None, None, None)
    assert found.reason == "undefined: there is no response"


def test_the_order_of_responses_does_not_matter() -> None:
    given = responses(e1="aaabb", e2="aaaab", e3="bbbbb")
    turned = random.Random(1).sample(given, len(given))
    assert worker_figures(turned) == worker_figures(given)


def test_a_worker_twice_on_one_example_is_refused() -> None:
    with pytest.raises(BadInput, match="worker w1 has two responses on example e"):
        worker_figures([WorkerResponse("e", "w1", "a")] * 2)
