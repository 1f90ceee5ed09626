"""Dawid-Skene and MACE beside the majority: the same for any order and names, and never without the package."""

import random
import sys
from pathlib import Path

import numpy as np
import pytest

from dynaround.aggregation import DAWID_SKENE, MACE, METHODS, aggregated
from dynaround.agreement import WorkerResponse
from dynaround.errors import BadInput, NotInstalled
from tests.test_agreement import SST, published, published_responses

LABELS = ("a", "b", "c")


def crowd(seed: int = 0, examples: int = 150) -> tuple[list[WorkerResponse], dict[str, str]]:
    """Four who are right in nine of ten, and three who always say "a": the majority of five is often wrong."""
    generator = random.Random(seed)
    truths = {f"e{number}": generator.choice(LABELS) for number in range(examples)}
    responses = []
    for example, truth in truths.items():
        for number in generator.sample(range(7), 5):
            said = "a" if number > 3 else truth if generator.random() < 0.9 else generator.choice(LABELS)
            responses.append(WorkerResponse(example, f"w{number}", said))
    return responses, truths


def share_right(found: dict[str, str], truths: dict[str, str]) -> float:
    return sum(found[example] == truth for example, truth in truths.items()) / len(truths)


@pytest.mark.parametrize("method", METHODS)
def test_workers_who_do_not_look_are_outweighed(method: str):
    responses, truths = crowd()
    votes = {example: [r.label for r in responses if r.example == example] for example in truths}
    majority = {example: max(LABELS, key=given.count) for example, given in votes.items()}
    assert share_right(aggregated(responses, method), truths) > 0.9 > share_right(majority, truths)


@pytest.mark.parametrize("method", METHODS)
def test_neither_order_nor_names_decide_a_label(method: str):
    responses, _ = crowd()
    found = aggregated(responses, method)
    shuffled = random.Random(1).sample(responses, len(responses))
    assert aggregated(shuffled, method) == found
    # Backwards in the alphabet, so that the first to appear sorts last.
    renamed = {"a": "z", "b": "y", "c": "x"}
    others = [WorkerResponse(r.example, f"w{99 - int(r.worker[1:])}", renamed[r.label]) for r in responses]
    assert aggregated(others, method) == {example: renamed[label] for example, label in found.items()}


def dawid_skene_by_hand(responses: list[WorkerResponse], steps: int) -> dict[str, str]:
    """Return what the equations of Dawid and Skene (1979, sec. 3) give, from the shares of votes."""
    examples, workers = (sorted({r[place] for r in responses}) for place in (0, 1))
    given = np.zeros((len(examples), len(workers), len(LABELS)))
    for r in responses:
        given[examples.index(r.example), workers.index(r.worker), LABELS.index(r.label)] = 1
    truth = given.sum(axis=1) / given.sum(axis=(1, 2))[:, None]
    for _ in range(steps):
        counts = np.einsum("ewk,ec->wck", given, truth) + 1e-12
        answers, priors = counts / counts.sum(axis=2, keepdims=True), truth.mean(axis=0)
        logs = np.einsum("ewk,wck->ec", given, np.log(answers)) + np.log(priors)
        truth = np.exp(logs - logs.max(axis=1, keepdims=True))
        truth /= truth.sum(axis=1, keepdims=True)
    return {example: LABELS[place] for example, place in zip(examples, truth.argmax(axis=1), strict=True)}


def test_dawid_skene_is_what_its_equations_give():
    responses, _ = crowd(seed=2)
    assert aggregated(responses, DAWID_SKENE) == dawid_skene_by_hand(responses, steps=100)


@pytest.mark.parametrize(("method", "agreeing"), [(DAWID_SKENE, 1002), (MACE, 1031)])
def test_published_responses_are_aggregated(shared_data: Path, method: str, agreeing: int):
    # Computed here once; who knows what crowd-kit does differently from now on should look.
    found = aggregated(published_responses(shared_data, SST), method)
    golds = {row["text_id"]: row["gold_label"] for row in published(shared_data, SST) if row["gold_label"]}
    assert len(found) == 1101 and sum(found[example] == gold for example, gold in golds.items()) == agreeing


def test_nothing_is_aggregated_from_nothing():
    assert [aggregated([], method) for method in METHODS] == [{}, {}]
    only = [WorkerResponse("e1", f"w{number}", "a") for number in range(5)]
    assert [aggregated(only, method) for method in METHODS] == [{"e1": "a"}] * 2


def test_another_method_and_a_missing_package_are_told(monkeypatch: pytest.MonkeyPatch):
    with pytest.raises(BadInput, match="'GLAD'; there is Dawid-Skene, MACE"):
        aggregated([], "GLAD")
    monkeypatch.setitem(sys.modules, "crowdkit", None)
    with pytest.raises(NotInstalled, match=r"pip install 'dynaround\[crowd\]'"):
        aggregated([], MACE)
