"""Twelve authors at once against three processes: what they were told is stored, all of it and once."""

import os
import signal
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import pytest
from sqlmodel import col, select

from dynaround.database import reading, writing
from dynaround.settings import Workspace
from dynaround.tables import (
    COMPLETED,
    CONFIRMED,
    TAKEN_BACK,
    WORKER,
    Attempt,
    AttemptDecision,
    AuthoredExample,
    Example,
    Submission,
    Writing,
)
from dynaround.terminal import now
from tests.author_site import let_in
from tests.authored_round import add_authored_round
from tests.authors_over_http import THREADS, Acknowledged, BusyAuthor, Gunicorn
from tests.site import PASSWORD, SECRET
from workers.accounts import hashed_password, make_account
from workers.pay import shown

AUTHORS = 12


class Served(NamedTuple):
    """The workspace of an open round, and the authors who are let in."""

    workspace: Workspace
    workers: list[int]


@pytest.fixture
def served(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> Served:
    monkeypatch.setenv("DYNAROUND_SECRET", SECRET)
    engine = workspace.engine()
    add_authored_round(engine, prompts=60, authors=0, authors_per_prompt=100)
    password_hash = hashed_password(PASSWORD)
    workers = []
    with writing(engine) as session:
        for place in range(AUTHORS):
            made = make_account(session, f"author {place}", WORKER, password_hash, now(), f"PLATFORM-{place}")
            assert made.worker_id is not None
            workers.append(made.worker_id)
    for worker_id in workers:
        let_in(engine, worker_id, now())
    return Served(workspace, workers)


def work(served: Served, folder: Path, submissions: int, kills: int = 0) -> list[Acknowledged]:
    """Let all authors work at once, while so many times a process is killed; return what each was told."""
    calls = folder / "calls"
    with Gunicorn(served.workspace.root, calls, folder / "log") as server, ThreadPoolExecutor(AUTHORS) as threads:
        authors = [BusyAuthor(server.port, f"author {place}", place) for place in range(AUTHORS)]
        told = [threads.submit(author.work, submissions) for author in authors]
        for kill in range(kills):
            while not calls.exists() or len(calls.read_text().splitlines()) < (kill + 1) * submissions:
                time.sleep(0.01)
            os.kill(int(calls.read_text().splitlines()[-1].split()[0]), signal.SIGKILL)
        return [one.result() for one in told]


def require_stored_once(served: Served, told: list[Acknowledged], calls: list[str], kills: int = 0) -> None:
    """Hold what was acknowledged against what is stored; a killed process may have asked without storing."""
    with reading(served.workspace.engine()) as session:
        attempts = session.exec(select(Attempt)).all()
        texts = session.exec(
            select(Submission.token, Attempt.text).join(Attempt, col(Attempt.id) == col(Submission.attempt_id))
        ).all()
        said = dict(session.exec(select(AttemptDecision.attempt_id, AttemptDecision.decision)).all())
        examples = session.exec(select(Example)).all()
        chosen = set(session.exec(select(AuthoredExample.attempt_id)).all())
        completed = session.exec(select(Writing).where(Writing.outcome == COMPLETED)).all()
    assert dict(texts) == {token: text for one in told for token, text in one.texts.items()}
    assert len(attempts) == len(texts) == len(set(texts))
    assert said == {number: word for one in told for number, word in one.said.items()}
    assert len(examples) == len(chosen) == len(completed) > 0
    assert sorted(example.number for example in examples) == list(range(1, len(examples) + 1))
    assert {number for number, word in said.items() if word == CONFIRMED} <= chosen
    assert not {number for number, word in said.items() if word == TAKEN_BACK} & chosen
    written = Counter(example.author_id for example in examples)
    assert [one.earned for one in told] == [shown(30 * written[worker], "USD") for worker in served.workers]
    asked = Counter(line.partition(" ")[2] for line in calls)
    assert set(asked) == {text for _, text in texts}
    assert sum(asked.values()) <= len(texts) + kills * THREADS
    assert len({line.partition(" ")[0] for line in calls}) > 1, "more than one process took part"


def test_of_many_authors_and_three_processes_nothing_is_lost_or_doubled(served: Served, tmp_path: Path) -> None:
    told = work(served, tmp_path, 4)
    require_stored_once(served, told, (tmp_path / "calls").read_text().splitlines())


@pytest.mark.long
def test_nothing_is_lost_or_doubled_over_a_long_time_and_when_processes_are_killed(
    served: Served, tmp_path: Path
) -> None:
    told = work(served, tmp_path, 60, kills=6)
    require_stored_once(served, told, (tmp_path / "calls").read_text().splitlines(), kills=6)
