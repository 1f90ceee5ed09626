"""Kappa, alpha, worker agreement and retained responses."""

import json
import random
from fractions import Fraction
from pathlib import Path
from typing import Any

import krippendorff
import numpy as np
import pandas as pd
import pytest
from crowdkit.metrics.data import alpha_krippendorff
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from statsmodels.stats.inter_rater import fleiss_kappa as statsmodels_kappa

from dynaround.agreement import (
    CountTable,
    WorkerAgreement,
    WorkerResponse,
    fleiss_kappa,
    krippendorff_alpha,
    natural_order,
    retained,
    worker_agreement,
)
from dynaround.errors import BadInput

ORDER = ("positive", "negative", "neutral", "mixed")
ROUND_1, ROUND_2 = "dynasent-v1.1-round01-yelp-dev", "dynasent-v1.1-round02-dynabench-dev"
SST = "sst-dev-validated"
MET_02 = ((5, 0, 0, 0), (3, 0, 1, 1), (0, 5, 0, 0), (1, 3, 1, 0), (0, 1, 4, 0), (1, 0, 3, 1), (2, 2, 1, 0))


count = st.integers(0, 4)
unequal_rows = st.lists(st.tuples(count, count, count), min_size=1, max_size=12)


@st.composite
def equal_rows(draw: st.DrawFn) -> list[tuple[int, ...]]:
    """Rows of counts in four columns, all of the same number of responses, from two on."""
    responses = draw(st.integers(2, 7))
    labels = st.lists(st.integers(0, 3), min_size=responses, max_size=responses)
    return [tuple(np.bincount(row, minlength=4).tolist()) for row in draw(st.lists(labels, min_size=1, max_size=12))]


def published(shared_data: Path, name: str) -> list[dict[str, Any]]:
    lines = (shared_data / "dynasent" / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


def published_table(shared_data: Path, name: str) -> CountTable:
    rows = published(shared_data, name)
    return CountTable.from_distributions(
        ({label: len(workers) for label, workers in row["label_distribution"].items()} for row in rows), ORDER
    )


def published_responses(shared_data: Path, name: str) -> list[WorkerResponse]:
    return [
        WorkerResponse(row["text_id"], worker, label)
        for row in published(shared_data, name)
        for label, workers in row["label_distribution"].items()
        for worker in workers
    ]


@pytest.mark.parametrize("coefficient", [fleiss_kappa, krippendorff_alpha])
def test_met_01_one_label_throughout_is_undefined_and_never_nan(coefficient: Any) -> None:
    result = coefficient(CountTable(ORDER, ((5, 0, 0, 0),) * 3))
    assert result == (None, "undefined: expected agreement is 1", 1.0, 1.0)
    assert json.loads(json.dumps(result._asdict(), allow_nan=False))["value"] is None


def test_met_02_fleiss_kappa_counts_every_row_exactly() -> None:
    kappa = fleiss_kappa(CountTable(ORDER, MET_02))
    assert kappa == (557 / 1712, None, 37 / 70, 369 / 1225)
    majority_only = fleiss_kappa(CountTable(ORDER, tuple(row for row in MET_02 if max(row) >= 3)))
    assert majority_only.value == pytest.approx(259 / 634)


def test_met_02_a_label_that_nobody_uses_changes_nothing() -> None:
    wider = CountTable((*ORDER, "unused"), tuple((*row, 0) for row in MET_02))
    assert fleiss_kappa(wider) == fleiss_kappa(CountTable(ORDER, MET_02))


def test_met_02_a_row_with_seven_responses_is_refused_by_number() -> None:
    with pytest.raises(BadInput, match="row 8 has 7 responses where row 1 has 5"):
        fleiss_kappa(CountTable(ORDER, (*MET_02, (4, 3, 0, 0))))


@pytest.mark.parametrize("coefficient", [fleiss_kappa, krippendorff_alpha])
def test_met_02_raw_codes_are_refused_by_type(coefficient: Any) -> None:
    with pytest.raises(TypeError, match="from a CountTable, not from list"):
        coefficient([[1, 1, 1], [1, 1, 1]])


@pytest.mark.parametrize("coefficient", [fleiss_kappa, krippendorff_alpha])
@pytest.mark.parametrize("rows", [(), ((1, 0, 0, 0), (0, 1, 0, 0)), ((0, 0, 0, 0),)])
def test_without_two_responses_on_an_example_nothing_can_agree(coefficient: Any, rows: Any) -> None:
    assert coefficient(CountTable(ORDER, rows)) == (None, "undefined: no example has two responses", None, None)


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (((5, 0, 0, 0), (1, 1, 1)), "row 2 has 3 counts for 4 labels"),
        (((5, 0, -1, 0),), "row 1 is"),
        (((2.5, 2.5, 0, 0),), "row 1 is"),
        (((True, False, False, True),), "row 1 is"),
    ],
)
def test_a_table_of_counts_refuses_what_is_no_count(rows: Any, message: str) -> None:
    with pytest.raises(BadInput, match=message):
        CountTable(ORDER, rows)


def test_a_table_refuses_repeated_labels_and_foreign_ones() -> None:
    with pytest.raises(BadInput, match="each once"):
        CountTable(("positive", "positive"), ((1, 1),))
    with pytest.raises(BadInput, match="distribution 1 counts 'happy'"):
        CountTable.from_distributions([{"happy": 5}], ORDER)


@pytest.mark.parametrize(
    ("name", "kappa", "alpha", "observed", "expected"),
    [
        (ROUND_1, 0.615758, 0.615779, 0.738222, 0.318717),
        (ROUND_2, 0.681024, 0.681113, 0.781667, 0.315517),
        (SST, 0.588194, 0.588268, 0.718983, 0.317599),
    ],
)
def test_published_agreement(
    shared_data: Path, name: str, kappa: float, alpha: float, observed: float, expected: float
) -> None:
    table = published_table(shared_data, name)
    found = fleiss_kappa(table)
    assert (found.value, found.observed, found.expected) == pytest.approx((kappa, observed, expected), abs=1e-6)
    assert krippendorff_alpha(table).value == pytest.approx(alpha, abs=1e-6)
    assert found.value == pytest.approx(statsmodels_kappa(np.array(table.rows)), abs=1e-12)


@settings(deadline=None)
@given(equal_rows())
def test_kappa_agrees_with_statsmodels_and_with_alpha(rows: list[tuple[int, ...]]) -> None:
    table = CountTable(ORDER, tuple(rows))
    kappa, alpha = fleiss_kappa(table).value, krippendorff_alpha(table).value
    if kappa is None or alpha is None:
        assert kappa is alpha is None and np.count_nonzero(np.sum(rows, axis=0)) == 1
        return
    assert kappa == pytest.approx(statsmodels_kappa(np.array(rows)), abs=1e-9)
    assert alpha == pytest.approx(kappa + (1 - kappa) / (sum(rows[0]) * len(rows)), abs=1e-9)


@settings(deadline=None)
@given(unequal_rows)
def test_alpha_agrees_with_krippendorff_and_crowd_kit(rows: list[tuple[int, ...]]) -> None:
    alpha = krippendorff_alpha(CountTable(ORDER[:3], tuple(rows))).value
    assume(alpha is not None)
    assert alpha == pytest.approx(
        krippendorff.alpha(value_counts=np.array(rows), level_of_measurement="nominal"), abs=1e-9
    )
    # One response a row, and no worker twice on one item.
    answers = [
        (item, f"worker {place}", label)
        for item, row in enumerate(rows)
        for place, label in enumerate(np.repeat(np.arange(3), row).tolist())
    ]
    frame = pd.DataFrame(answers, columns=["task", "worker", "label"])
    assert alpha == pytest.approx(alpha_krippendorff(frame), abs=1e-9)


def test_one_item_has_a_kappa_and_an_alpha_unless_all_agree() -> None:
    # Ten pairs of five responses, four of them agreeing; by the shares .52 would, without itself (3*2 + 2*1) / 20.
    split = CountTable(ORDER, ((3, 2, 0, 0),))
    assert fleiss_kappa(split) == pytest.approx(((0.4 - 0.52) / 0.48, None, 0.4, 0.52))
    assert krippendorff_alpha(split) == pytest.approx((0.0, None, 0.4, 0.4))
    assert fleiss_kappa(CountTable(ORDER, ((0, 5, 0, 0),))).value is None


def test_alpha_is_the_same_with_a_label_that_nobody_uses_and_with_seven_responses() -> None:
    wider = CountTable((*ORDER, "unused"), tuple((*row, 0) for row in MET_02))
    assert krippendorff_alpha(wider) == krippendorff_alpha(CountTable(ORDER, MET_02))
    seven = CountTable(ORDER, (*MET_02, (4, 3, 0, 0)))
    assert krippendorff_alpha(seven).value == pytest.approx(
        krippendorff.alpha(value_counts=np.array(seven.rows), level_of_measurement="nominal"), abs=1e-12
    )


def test_ties_throughout_are_less_agreement_than_by_chance() -> None:
    tied = CountTable(("+", "-"), ((2, 2), (2, 2)))
    assert fleiss_kappa(tied) == pytest.approx((-1 / 3, None, 1 / 3, 1 / 2))


def test_alpha_takes_unequal_rows_and_drops_single_responses() -> None:
    rows = ((3, 1, 0, 0), (0, 2, 0, 0), (1, 1, 4, 1), (0, 0, 5, 0))
    alpha = krippendorff_alpha(CountTable(ORDER, rows))
    assert alpha.value == pytest.approx(
        krippendorff.alpha(value_counts=np.array(rows), level_of_measurement="nominal"), abs=1e-12
    )
    assert krippendorff_alpha(CountTable(ORDER, (*rows, (1, 0, 0, 0), (0, 0, 0, 0)))) == alpha


def test_alpha_by_hand() -> None:
    # Responses ++, +-, --: observed 2/3; pooled 3 of 6 each, so expected (3*2 + 3*2) / (6*5) = 2/5.
    alpha = krippendorff_alpha(CountTable(("+", "-"), ((2, 0), (1, 1), (0, 2))))
    assert alpha == pytest.approx((float(Fraction(4, 9)), None, 2 / 3, 2 / 5))


@pytest.mark.parametrize(
    ("name", "workers", "perfect", "from_95"), [(ROUND_1, 1280, 614, 654), (ROUND_2, 244, 116, 126), (SST, 103, 4, 6)]
)
def test_published_worker_agreement(shared_data: Path, name: str, workers: int, perfect: int, from_95: int) -> None:
    rates = [found.rate for found in worker_agreement(published_responses(shared_data, name)).values()]
    assert None not in rates
    assert (len(rates), rates.count(1.0), sum(rate >= 0.95 for rate in rates if rate)) == (workers, perfect, from_95)


def test_worker_agreement_counts_the_own_response_and_skips_what_has_no_majority() -> None:
    labels = {"e1": "aaabb", "e2": "aabbc", "e3": "aaa"}
    responses = [WorkerResponse(e, f"w{n}", label) for e, word in labels.items() for n, label in enumerate(word, 8)]
    found = worker_agreement(responses)
    assert list(found) == ["w8", "w9", "w10", "w11", "w12"]
    assert found["w10"] == (1, 1, 1.0) and found["w12"] == (1, 0, 0.0)


def test_worker_agreement_needs_more_than_half_of_seven() -> None:
    responses = [WorkerResponse("e", f"w{n}", label) for n, label in enumerate("aaabbcc")]
    assert worker_agreement(responses)["w0"] == (0, 0, None)
    decided = worker_agreement([*responses, WorkerResponse("f", "w0", "a")], at_least=1)
    assert decided["w0"] == (1, 1, 1.0)


def test_one_worker_alone_has_no_rate() -> None:
    alone = [WorkerResponse(example, "w1", "a") for example in ("e1", "e2")]
    assert worker_agreement(alone) == {"w1": (0, 0, None)}
    assert worker_agreement([]) == {}


def test_worker_agreement_refuses_a_second_response_of_one_worker() -> None:
    with pytest.raises(BadInput, match="worker w1 has two responses on example e"):
        worker_agreement([WorkerResponse("e", "w1", "a"), WorkerResponse("e", "w1", "b")])


def test_natural_order_reads_digits_as_numbers() -> None:
    assert sorted(["w10", "w2", "w1", "x1", "w02"], key=natural_order) == ["w1", "w02", "w2", "w10", "x1"]


def rates(**of_workers: float | None) -> dict[str, WorkerAgreement]:
    return {
        worker: WorkerAgreement(0 if rate is None else 100, round(100 * (rate or 0)), rate)
        for worker, rate in of_workers.items()
    }


@pytest.mark.parametrize("seed", range(5))
def test_retained_keeps_the_best_workers_for_any_arrival_order(seed: int) -> None:
    known = rates(w1=0.5, w2=0.9, w3=0.0, w4=None, w10=0.7, w20=0.7, w30=0.7)
    responses = [WorkerResponse("e", worker, "positive") for worker in (*known, "w99")]
    random.Random(seed).shuffle(responses)
    assert [kept.worker for kept in retained(responses, known)] == ["w1", "w2", "w10", "w20", "w30"]


def test_retained_breaks_ties_by_natural_order_and_ranks_unknown_workers_last() -> None:
    known = rates(w2=0.7, w10=0.7, w1=0.7, w5=0.7, w7=0.7, w11=0.7)
    responses = [WorkerResponse("e", worker, "positive") for worker in ("w0", *known)]
    assert [kept.worker for kept in retained(responses, known)] == ["w1", "w2", "w5", "w7", "w10"]


def test_retained_ranks_a_rate_of_zero_before_no_rate() -> None:
    responses = [WorkerResponse("e", worker, "positive") for worker in ("w1", "w2")]
    assert [kept.worker for kept in retained(responses, rates(w1=None, w2=0.0), count=1)] == ["w2"]


def test_retained_keeps_all_of_five_or_fewer() -> None:
    responses = [WorkerResponse("e", f"w{n}", "positive") for n in (10, 9, 8)]
    assert [kept.worker for kept in retained(responses, {})] == ["w8", "w9", "w10"]


def test_retained_refuses_several_examples_and_repeated_workers() -> None:
    with pytest.raises(BadInput, match="several examples"):
        retained([WorkerResponse("e", "w1", "a"), WorkerResponse("f", "w2", "a")], {})
    with pytest.raises(BadInput, match="worker w1 has two responses on example e"):
        retained([WorkerResponse("e", "w1", "a"), WorkerResponse("e", "w1", "a")], {})
