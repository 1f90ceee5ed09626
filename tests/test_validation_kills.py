"""A server that is killed at any moment under load loses no acknowledged response, and doubles none."""

import os
import random
import signal
import threading
import time
from collections.abc import Sequence

import pytest
from sqlmodel import select

from dynaround.database import reading
from dynaround.settings import Workspace
from dynaround.tables import Worker
from tests.http_validators import Validator, all_work, faults, prepare, serving

VALIDATORS = 8
PATIENCE = 120
"""Seconds before a server counts as hung; generous, since the machine may be shared."""


def killed_again_and_again(workspace: Workspace, *, kills: int, examples: int, seed: int) -> None:
    """Kill the processes of a server at random moments while validators work; what these were told must be stored."""
    cookies = prepare(workspace, examples=examples, workers=VALIDATORS)
    with reading(workspace.engine()) as session:
        worker_ids = list(session.exec(select(Worker.id).order_by(Worker.id)))
    draw, stop = random.Random(seed), threading.Event()
    with serving(workspace, processes=2, threads=4) as served:
        validators = [Validator(served.port, cookie) for cookie in cookies]
        threads = all_work(validators, stop.is_set)
        try:
            for _ in range(kills):
                wait_for_pages(validators, VALIDATORS)
                time.sleep(draw.uniform(0, 0.5))
                for child in served.children():
                    os.kill(child, signal.SIGKILL)
            wait_for_pages(validators, VALIDATORS)
        finally:
            stop.set()
            for thread in threads:
                thread.join()
    assert sum(validator.broken_off for validator in validators) >= kills
    assert faults(workspace.engine(), validators, worker_ids) == []


def wait_for_pages(validators: Sequence[Validator], more: int) -> None:
    """Return when so many pages more than now were acknowledged: all is up and under load again."""
    wanted, end = told(validators) + more, time.monotonic() + PATIENCE
    while told(validators) < wanted:
        assert time.monotonic() < end, "the server takes no pages any more"
        time.sleep(0.02)


def told(validators: Sequence[Validator]) -> int:
    return sum(len(validator.told) for validator in validators)


def test_a_server_killed_under_load_loses_no_acknowledged_response(workspace: Workspace):
    killed_again_and_again(workspace, kills=3, examples=1000, seed=1)


@pytest.mark.long
def test_a_server_killed_a_hundred_times_loses_no_acknowledged_response(workspace: Workspace):
    killed_again_and_again(workspace, kills=100, examples=20_000, seed=2)
