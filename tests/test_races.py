"""Two processes at the same work in one workspace: one does it, the other says so, and nothing is stored twice."""

import time
from pathlib import Path

import pytest
from sqlalchemy import text
from sqlmodel import select

from dynaround.database import reading
from dynaround.settings import Workspace, create_workspace
from dynaround.tables import Event, Page, Response, Round
from rounds.harvesting import harvest_round
from rounds.opening import open_new_round
from tests.command import PATIENCE, Command, Outcome, ended, run, start
from tests.small_round import add_tiny_model, now, write_reviews
from tests.stages import Stages, facts_of, play_stages

HARVEST = ("round", "harvest", "1")
SIZE = 60
ANOTHER = "another dynaround process is at"


@pytest.fixture(scope="module")
def stages(tiny_encoder: Path, tmp_path_factory: pytest.TempPathFactory) -> Stages:
    return play_stages(tmp_path_factory.mktemp("races"), tiny_encoder, reviews=300, size=300)


def both(*commands: Command) -> list[Outcome]:
    """Return how two commands ended, the one that did it first."""
    return sorted((ended(process) for process in commands), key=lambda done: done.code or 0)


def assert_one_did_it(outcomes: list[Outcome], otherwise: str) -> None:
    """The second was told that the first is at it, or came when it was done already."""
    first, second = outcomes
    assert (first.code, first.err) == (0, ""), first
    assert ANOTHER in second.err or otherwise in second.out + second.err, second
    assert second.code == (2 if second.err else 0) and second.err.count("\n") <= 1


def test_two_harvests_at_once(stages: Stages, tmp_path: Path):
    bench = stages.copy("opened", tmp_path / "bench")
    outcomes = both(start(*HARVEST, cwd=bench), start(*HARVEST, cwd=bench))
    assert_one_did_it(outcomes, "round 1 was harvested already")
    assert facts_of(bench) == stages.facts("harvested")


JOBS = {
    "harvest-1": ("opened", HARVEST),
    "crowd-1": ("harvested", ("workers", "simulate", "1", "--truth", "corpus/truth-0.jsonl")),
    "release-1": ("closed", ("round", "release", "1")),
}


@pytest.mark.parametrize("job", JOBS)
def test_the_second_is_told_while_the_first_is_at_it(stages: Stages, tmp_path: Path, job: str):
    stage, command = JOBS[job]
    bench = stages.copy(stage, tmp_path / "bench")
    with Workspace(bench).exclusively(job):
        second = run(*command, cwd=bench)
    assert (second.code, second.out) == (2, "") and f"Error: {ANOTHER} {job} in {bench}" in second.err
    assert facts_of(bench) == stages.facts(stage)


def ready(workspace: Workspace, encoder: Path) -> list[object]:
    """Put a model and reviews into a workspace and return the options that open a round with them."""
    files = write_reviews(workspace.root / "corpus", 60)
    add_tiny_model(workspace, encoder)
    spec = f"jsonl:{files.reviews}"
    return ["--target", "model-0", "--reviews", spec, "--size", str(SIZE), "-w", workspace.root]


def test_two_openings_at_once(workspace: Workspace, tiny_encoder: Path):
    options = ready(workspace, tiny_encoder)
    outcomes = both(start("round", "open", *options), start("round", "open", *options))
    assert_one_did_it(outcomes, "round 1 is still open")
    with reading(workspace.engine()) as session:
        assert [(r.number, r.state) for r in session.exec(select(Round))] == [(1, "open")]
        assert [e.what for e in session.exec(select(Event))] == ["open"]


def test_two_crowds_at_once(workspace: Workspace, tiny_encoder: Path):
    ready(workspace, tiny_encoder)
    engine, corpus = workspace.engine(), workspace.root / "corpus"
    spec, options = f"jsonl:{corpus / 'reviews-0.jsonl'}", {"size": SIZE, "seed": 1}
    open_new_round(workspace, engine, target="model-0", reviews=spec, options=options, who="a", now=now)
    harvest_round(workspace, engine, 1, "a", now, lambda count: None)
    crowd = ["workers", "simulate", "1", "--truth", corpus / "truth-0.jsonl", "-w", workspace.root]
    assert_one_did_it(both(start(*crowd), start(*crowd)), "0 responses by a scripted crowd")
    with reading(engine) as session:
        assert len(session.exec(select(Response)).all()) == 5 * SIZE
        assert len(session.exec(select(Page)).all()) == 5 * SIZE // 10


@pytest.mark.parametrize("back_end", ["postgresql"], indirect=True)
def test_two_machines_on_one_database_cannot_open_the_same_round(
    workspace: Workspace, tiny_encoder: Path, tmp_path: Path
):
    other = create_workspace(tmp_path / "other")
    other.close()
    options = ready(other, tiny_encoder)
    engine = workspace.engine()
    # The first machine is amid its transaction, which no lock of a folder shows to the second.
    with engine.begin() as connection:
        row = "(1, 'sentiment', 'open', '{}', 'model-0', 'hash')"
        connection.execute(
            text(f"INSERT INTO round (number, task, state, plan, target_model, target_model_hash) VALUES {row}")
        )
        second = start("round", "open", *options)
        waiting = text("SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'")
        deadline = time.monotonic() + PATIENCE
        while not _one(engine, waiting):
            assert second.poll() is None and time.monotonic() < deadline, second.communicate()
            time.sleep(0.02)
    done = ended(second)
    assert done.code == 2 and "another process stored the same at the same moment" in done.err, done
    assert _one(engine, text("SELECT count(*) FROM round")) == 1


def _one(engine: object, query: object) -> int:
    with engine.connect() as connection:  # type: ignore[attr-defined]
        return int(connection.execute(query).scalar_one())
