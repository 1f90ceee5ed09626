"""Signals: what stands out in a worker's responses, in figures and plain words; nothing acts on it."""

import random
from collections.abc import Callable, Sequence

import pytest
from scipy.stats import entropy as scipy_entropy

from dynaround.signals import TimedResponse, WorkerSignals, entropy, worker_signals

LABELS = "abcd"


def labelled(
    habits: Sequence[Callable[[int, str, random.Random], str]],
    seconds: Sequence[float | None] = (),
    examples: int = 60,
    seed: int = 0,
) -> list[TimedResponse]:
    """Return responses of w1, w2 ... to all examples, ten on a page; a habit is asked with place, truth and chance."""
    draw = random.Random(seed)
    truths = [draw.choice(LABELS) for _ in range(examples)]
    chances = [random.Random(f"{seed} {worker}") for worker in range(len(habits))]
    return [
        TimedResponse(
            f"e{place}",
            f"w{worker + 1}",
            habits[worker](place, truth, chances[worker]),
            place // 10 * len(habits) + worker,
            seconds[worker] if seconds else None,
        )
        for place, truth in enumerate(truths)
        for worker in range(len(habits))
    ]


def careful(place: int, truth: str, chance: random.Random) -> str:
    return truth if chance.random() < 0.7 else chance.choice(LABELS)


def by_worker(responses: list[TimedResponse]) -> dict[str, WorkerSignals]:
    return {found.worker: found for found in worker_signals(responses)}


def test_careful_workers_stand_out_in_nothing():
    for seed in range(5):
        found = worker_signals(labelled([careful] * 8, [9.0, 10.0, 11.0, 8.0, 12.0, 10.0, 9.5, 14.0], seed=seed))
        assert [one.advice for one in found] == [()] * 8


def test_haste_is_told_from_the_median_of_the_round():
    found = by_worker(labelled([careful] * 5, [9.0, 10.0, 11.0, 8.0, 1.0]))
    assert (found["w5"].page_seconds, found["w5"].pages, found["w5"].fast_pages) == (10.0, 6, 6)
    assert found["w5"].advice == (
        "answered 6 of 6 pages in less than a third of the time that is usual here (median 10 seconds a page)",
    )
    assert (found["w1"].fast_pages, found["w1"].page_seconds) == (0, 90.0)


def test_pages_of_unknown_time_are_left_out():
    found = by_worker(labelled([careful] * 5, [9.0, 10.0, 11.0, 8.0, None]))
    assert (found["w5"].page_seconds, found["w5"].pages, found["w5"].advice) == (None, 0, ())


def test_the_same_answer_always_is_told_beside_the_rounds_share():
    found = by_worker(labelled([*[careful] * 6, lambda place, truth, chance: "a"]))["w7"]
    assert (found.commonest, found.commonest_share, found.entropy) == ("a", 1.0, 0.0)
    assert found.round_share < 0.45 and found.round_entropy > 1.8
    assert (found.run, found.run_label) == (60, "a")
    assert found.advice[0].startswith("answers much alike: 100% a, which is ")
    assert found.advice[1] == "chose a 60 times in a row"


def test_a_long_run_is_told_also_of_who_answers_otherwise_elsewhere():
    def in_rows(place: int, truth: str, chance: random.Random) -> str:
        return LABELS[place // 15]

    found = by_worker(labelled([*[careful] * 6, in_rows]))["w7"]
    assert found.run == 15 and found.entropy == pytest.approx(2)
    assert [said.split(" ")[0] for said in found.advice] == ["chose"]


def test_copying_is_told_to_both_and_of_nobody_else():
    responses = labelled([careful] * 6)
    copied = {r.example: r.label for r in responses if r.worker == "w2"}
    responses = [r._replace(label=copied[r.example]) if r.worker == "w5" else r for r in responses]
    found = by_worker(responses)
    assert [worker for worker, one in found.items() if one.advice] == ["w2", "w5"]
    assert found["w2"].advice[0].startswith("agrees with w5 on 60 of 60 sentences that both answered, where ")
    assert "agrees with w2 on 60 of 60" in found["w5"].advice[0]


def test_of_few_responses_nothing_is_said():
    habits = [*[careful] * 5, lambda place, truth, chance: "a", lambda place, truth, chance: "a"]
    assert all(not one.advice for one in worker_signals(labelled(habits, examples=19)))
    assert worker_signals([]) == []


def test_the_order_of_workers_decides_nothing():
    responses = labelled([*[careful] * 5, lambda place, truth, chance: "b"], [5.0] * 6)
    by_name = sorted(responses, key=lambda r: (r.worker, int(r.example[1:])))
    assert worker_signals(by_name) == worker_signals(responses)


def test_entropy_is_that_of_scipy():
    assert entropy([5, 3, 0, 2]) == pytest.approx(scipy_entropy([5, 3, 2], base=2))
    assert entropy([7]) == entropy([]) == 0
