"""Validators at the same moment: in threads and processes, for the last places, with one page, and killed halfway."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import NamedTuple

import pytest
from sqlalchemy import Engine
from sqlmodel import Session, col, func, select

from dynaround.database import reading, writing
from dynaround.errors import IllegalMove
from dynaround.tables import Batch, Page, Response, Uncounted
from rounds.lifecycle import close_round
from tests.command import PATIENCE
from tests.sound_validation import assert_sound
from tests.validators import (
    LEASE,
    MOMENT,
    NO_CHECKS,
    ONE_PLACE,
    add_examples,
    add_round,
    ask,
    at_once,
    counted,
    page_for,
    reason_for,
    remove,
    rows_of,
    say,
    taken,
    the_round,
    work,
)
from tests.validators_at_work import answer_all
from workers.giving_in import GivenIn
from workers.places import Nothing, PageView
from workers.reasons import EVERYTHING_ANSWERED, HELD_BY_OTHERS, YOURS

on_sqlite = pytest.mark.parametrize("back_end", ["sqlite"], indirect=True)


def times(normally: int, in_all: int) -> list[object]:
    """Repeat a test so often, and more often when the long ones are asked for."""
    return [*range(normally), *(pytest.param(place, marks=pytest.mark.long) for place in range(normally, in_all))]


def test_val_04_six_ask_at_once_for_five_places(engine: Engine):
    race_for_one_example(engine, repeats=3)


@pytest.mark.long
def test_val_04_fifty_times(engine: Engine):
    race_for_one_example(engine, repeats=50)


def race_for_one_example(engine: Engine, repeats: int) -> None:
    """Let one example after the other come, and w1 to w6 ask at once each time."""
    ids = add_round(engine, examples=0, workers=6)
    for repeat in range(1, repeats + 1):
        with writing(engine) as session:
            add_examples(session, the_round(session), [f"The only open example, {repeat}."])
        results = at_once(*(partial(ask, engine, worker, settings=ONE_PLACE) for worker in ids))
        pages = {worker: page for worker, page in zip(ids, results, strict=True) if isinstance(page, PageView)}
        refused = [nothing.reason for nothing in results if isinstance(nothing, Nothing)]
        assert (len(pages), refused, taken(engine)[repeat]) == (5, [HELD_BY_OTHERS], 5)
        given = at_once(*(partial(say, engine, worker, page) for worker, page in pages.items()))
        assert sorted(len(one.filled) for one in given) == [0, 0, 0, 0, 1]
        assert sorted(counted(engine)[repeat]) == sorted(pages)
    assert_sound(engine)


@pytest.mark.parametrize("repeat", times(1, 20))
def test_fifty_workers_racing_for_the_last_places_give_each_example_five(engine: Engine, repeat: int):
    ids = add_round(engine, examples=200, workers=50)
    reasons = at_once(*(partial(answer_all, engine, worker) for worker in ids))
    assert_five_each(engine, 200)
    # Whoever asked before the last page came in had done the rest.
    assert set(reasons) <= {EVERYTHING_ANSWERED, YOURS}
    assert {reason_for(engine, worker) for worker in ids} == {EVERYTHING_ANSWERED}


def assert_five_each(engine: Engine, examples: int) -> None:
    """Assert that every example has five responses that count and none beside, and its batches are filled."""
    by_example = counted(engine)
    assert sum(map(len, by_example.values())) == 5 * examples == len(rows_of(engine, Response))
    assert all(len(set(workers)) == len(workers) == 5 for workers in by_example.values())
    assert rows_of(engine, Uncounted) == [] and all(batch.filled_at for batch in rows_of(engine, Batch))
    assert_sound(engine)


class Processes(NamedTuple):
    """Processes of validators, forked one by one; `running` are those that may still be."""

    server: subprocess.Popen[str]
    folder: Path
    running: list[int]

    def start(self, workers: Sequence[int]) -> int:
        """Fork a process for workers and return its number."""
        assert self.server.stdin and self.server.stdout
        self.server.stdin.write(json.dumps(list(workers)) + "\n")
        self.server.stdin.flush()
        self.running.append(int(self.server.stdout.readline()))
        return self.running[-1]

    def lines(self, name: str) -> list[int]:
        """Return the numbers that the processes noted in a file."""
        file = self.folder / name
        return [int(line) for line in file.read_text().splitlines()] if file.exists() else []

    def wait_for(self, name: str, lines: int) -> None:
        """Wait until a file has so many lines."""
        deadline = time.monotonic() + PATIENCE
        while len(self.lines(name)) < lines:
            assert self.server.poll() is None and time.monotonic() < deadline, f"{name}: {self.lines(name)}"
            time.sleep(0.002)

    def kill(self, child: int) -> None:
        """Kill a process."""
        self.running.remove(child)
        os.kill(child, signal.SIGKILL)


@contextmanager
def processes(engine: Engine, folder: Path) -> Iterator[Processes]:
    """Run `tests.validators_at_work`; what still works at the end is killed."""
    url = engine.url.set(drivername=engine.url.get_backend_name()).render_as_string(hide_password=False)
    server = subprocess.Popen(
        [sys.executable, "-m", "tests.validators_at_work", url, str(folder)],
        cwd=Path(__file__).parents[1],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    started = Processes(server, folder, [])
    try:
        yield started
    finally:
        for child in started.running:
            os.kill(child, signal.SIGKILL)
        server.communicate(timeout=PATIENCE)


@pytest.mark.parametrize("repeat", times(1, 20))
def test_three_processes_racing_give_each_example_five(engine: Engine, tmp_path: Path, repeat: int):
    ids = add_round(engine, examples=200, workers=51)
    engine.dispose()
    with processes(engine, tmp_path) as started:
        for place in range(3):
            started.start(ids[place::3])
        started.wait_for("ready", 3)
        (tmp_path / "go").touch()
        started.wait_for("done", 3)
        started.running.clear()
    assert_five_each(engine, 200)
    assert sorted(started.lines("acknowledged")) == sorted(page.id for page in rows_of(engine, Page))


@pytest.mark.parametrize("seed", times(1, 20))
def test_a_killed_process_loses_no_acknowledged_page(engine: Engine, tmp_path: Path, seed: int):
    ids = add_round(engine, examples=800, workers=4)
    draw = random.Random(seed)
    engine.dispose()
    (tmp_path / "go").touch()
    with processes(engine, tmp_path) as started:
        for kill in range(5):
            child = started.start(ids)
            started.wait_for("acknowledged", len(started.lines("acknowledged")) + 4)
            time.sleep(draw.random() * 0.05)
            started.kill(child)
            stored = answers_by_page(engine)
            assert set(started.lines("acknowledged")) <= set(stored) <= set(started.lines("sent")), kill
            assert set(stored.values()) == {(True, 10)}, "a page is stored whole or not at all"
    assert_sound(engine)
    # Whose process died finds the page again, and can give it in.
    open_pages = [page for page in rows_of(engine, Page) if page.given_in is None]
    for page in open_pages:
        again = page_for(engine, page.worker_id)
        assert again.page_id == page.id and say(engine, page.worker_id, again).counted == 10
    engine.dispose()


def answers_by_page(engine: Engine) -> dict[int, tuple[bool, int]]:
    """Return of each page with answers whether it is given in and how many they are.

    Read by one statement, since PostgreSQL may still be storing what a killed process sent last.
    """
    rows = select(Page.id, Page.given_in, func.count()).join(Response, col(Response.page_id) == col(Page.id))
    with reading(engine) as session:
        found = session.exec(rows.group_by(col(Page.id), col(Page.given_in)))
        return {page_id: (at is not None, answers) for page_id, at, answers in found if page_id is not None}


# One page, and others' business


@pytest.mark.parametrize("repeat", times(3, 20))
def test_a_page_sent_five_times_at_once_is_stored_once(engine: Engine, repeat: int):
    [worker] = add_round(engine, examples=10, workers=1)
    page = page_for(engine, worker)
    results = at_once(*[partial(say, engine, worker, page)] * 5)
    assert sorted(len(one.filled) for one in results) == [0] * 5
    assert results == [results[0]] * 5 and len(rows_of(engine, Response)) == 10
    assert_sound(engine)


def test_a_worker_who_asks_in_five_tabs_at_once_has_one_page(engine: Engine):
    [worker] = add_round(engine, examples=50, workers=1)
    results = at_once(*[partial(ask, engine, worker)] * 5)
    assert results == [results[0]] * 5 and len(rows_of(engine, Page)) == 1
    assert set(taken(engine).values()) == {0, 1}


@pytest.mark.parametrize("repeat", times(3, 20))
def test_late_pages_at_once_share_what_is_free(engine: Engine, repeat: int):
    ids = add_round(engine, examples=10, workers=9)
    late = {worker: page_for(engine, worker) for worker in ids[:4]}
    for worker in ids[4:7]:
        work(engine, worker, at=MOMENT + LEASE)
    jobs = [partial(say, engine, worker, page, at=MOMENT + 2 * LEASE) for worker, page in late.items()]
    results = at_once(*jobs, partial(ask, engine, ids[7], at=MOMENT + 2 * LEASE))
    given = [result for result in results if isinstance(result, GivenIn)]
    assert len(given) == 4 and sum(one.counted + one.uncounted for one in given) == 40
    assert set(taken(engine).values()) == {5}
    assert_sound(engine)


@pytest.mark.parametrize("repeat", times(3, 20))
def test_a_removal_while_others_work_leaves_nothing_of_the_worker_counted(engine: Engine, repeat: int):
    ids = add_round(engine, examples=60, workers=8)
    gone = ids[0]
    work(engine, gone)
    page = page_for(engine, gone)
    jobs = [partial(answer_all, engine, worker) for worker in ids[1:]]
    at_once(partial(remove, engine, gone), partial(say, engine, gone, page), *jobs)
    # Some may have been done before the removal re-opened places.
    for worker in ids[1:]:
        answer_all(engine, worker)
    assert gone not in {worker for workers in counted(engine).values() for worker in workers}
    assert all(len(workers) == 5 for workers in counted(engine).values())
    assert_sound(engine)


@pytest.mark.parametrize("repeat", times(3, 20))
def test_nothing_is_stored_once_the_round_is_closed(engine: Engine, repeat: int):
    ids = add_round(engine, examples=10, workers=10)
    pages = {worker: page_for(engine, worker, settings=NO_CHECKS) for worker in ids[:5]}

    def close() -> int:
        with writing(engine) as session:
            close_round(session, the_round(session), "launcher", MOMENT, abandon=True)
            return responses_in(session)

    def responses_in(session: Session) -> int:
        return len(session.connection().exec_driver_sql("SELECT id FROM response").all())

    jobs: list[Callable[[], object]] = [partial(say, engine, worker, page) for worker, page in pages.items()]
    results = at_once(*jobs[:2], close, *jobs[2:])
    at_closing = next(result for result in results if isinstance(result, int))
    refused = [result for result in results if isinstance(result, IllegalMove)]
    assert len(rows_of(engine, Response)) == at_closing == 50 - 10 * len(refused)
