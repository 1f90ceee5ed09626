"""Work that is killed, interrupted or short of disk: run again it goes on, and all ends as if nothing had happened."""

import os
import signal
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from dynaround.folders import MANIFEST, read_manifest
from dynaround.harvest import CHUNK
from dynaround.settings import create_workspace
from tests.command import PATIENCE, Command, ended, run, start
from tests.stages import Stages, facts_of, leftovers, play_stages, write_training_rows

ROWS = 400
HARVEST = ("round", "harvest", "1")
CROWD = ("workers", "simulate", "1", "--truth", "corpus/truth-0.jsonl", "--seed", "7")
RELEASE = ("round", "release", "1")


@pytest.fixture(scope="module")
def stages(tiny_encoder: Path, tmp_path_factory: pytest.TempPathFactory) -> Stages:
    """About 4,500 sentences, which are three chunks of a harvest."""
    return play_stages(tmp_path_factory.mktemp("stages"), tiny_encoder, reviews=1500, size=ROWS)


def wait_for(process: Command, moment: Callable[[], bool]) -> None:
    """Wait for a moment in the life of a process, which must not end before."""
    deadline = time.monotonic() + PATIENCE
    while not moment():
        assert process.poll() is None, f"ended before the moment: {process.communicate()}"
        assert time.monotonic() < deadline, "the moment never came"
        time.sleep(0.001)


def killed_at(process: Command, moment: Callable[[], bool]) -> None:
    """Kill a process at a moment."""
    try:
        wait_for(process, moment)
    finally:
        process.kill()
        process.communicate()
    assert process.returncode == -signal.SIGKILL


def answer_of(database: Path, query: str) -> int:
    """Ask a database that another process may just be making; -1 while there is no answer."""
    if not database.is_file():
        return -1
    try:
        with closing(sqlite3.connect(f"file:{database}?mode=ro", uri=True, timeout=5)) as connection:
            row = connection.execute(query).fetchone()
    except sqlite3.OperationalError:
        return -1
    return -1 if row is None else int(row[0])


@contextmanager
def held(bench: Path) -> Iterator[None]:
    """Hold the write lock of a workspace's database, so that whoever wants to store must wait."""
    with closing(sqlite3.connect(bench / "dynaround.sqlite", isolation_level=None, timeout=60)) as connection:
        connection.execute("BEGIN IMMEDIATE")
        yield
        connection.execute("ROLLBACK")


def position_of(bench: Path) -> int:
    return answer_of(bench / "work" / "harvest-1.sqlite", "SELECT position FROM state")


def responses_of(bench: Path) -> int:
    return answer_of(bench / "dynaround.sqlite", "SELECT count(*) FROM response")


def goes_on(bench: Path, stages: Stages, stage: str, *command: str) -> None:
    """Run a command again: it succeeds, all is as without the interruption, and nothing half-done is left."""
    done = run(*command, cwd=bench)
    assert (done.code, done.err) == (0, ""), done
    assert facts_of(bench) == stages.facts(stage)
    assert leftovers(bench) == [] and not list((bench / "work").glob("harvest-1.sqlite*"))


@pytest.mark.parametrize("position", [0, CHUNK, pytest.param(2 * CHUNK, marks=pytest.mark.long)])
def test_a_harvest_killed_while_it_predicts_goes_on(stages: Stages, tmp_path: Path, position: int):
    bench = stages.copy("opened", tmp_path / "bench")
    killed_at(start(*HARVEST, cwd=bench), lambda: position_of(bench) >= position)
    assert facts_of(bench) == stages.facts("opened")
    goes_on(bench, stages, "harvested", *HARVEST)


def test_a_harvest_killed_before_it_stores_goes_on(stages: Stages, tmp_path: Path):
    bench = stages.copy("opened", tmp_path / "bench")
    all_sentences = len((bench / "corpus" / "truth-0.jsonl").read_text().splitlines())
    with held(bench):
        killed_at(start(*HARVEST, cwd=bench), lambda: position_of(bench) == all_sentences)
    assert facts_of(bench) == stages.facts("opened")
    goes_on(bench, stages, "harvested", *HARVEST)


@pytest.mark.parametrize("share", [0, 0.3, 0.8, pytest.param(0.99, marks=pytest.mark.long)])
def test_a_crowd_killed_between_pages_goes_on(stages: Stages, tmp_path: Path, share: float):
    bench = stages.copy("harvested", tmp_path / "bench")
    killed_at(start(*CROWD, cwd=bench), lambda: responses_of(bench) > share * 5 * ROWS)
    assert responses_of(bench) % 10 == 0, "a page is stored whole or not at all"
    goes_on(bench, stages, "answered", *CROWD)


def test_a_release_killed_while_it_writes_goes_on(stages: Stages, tmp_path: Path):
    bench = stages.copy("closed", tmp_path / "bench")
    killed_at(start(*RELEASE, cwd=bench), lambda: any((bench / "releases").iterdir()))
    goes_on(bench, stages, "released", *RELEASE)


def test_a_release_killed_before_it_is_recorded_goes_on(stages: Stages, tmp_path: Path):
    bench, folder = stages.copy("closed", tmp_path / "bench"), tmp_path / "bench" / "releases" / "round-1"
    with held(bench):
        killed_at(start(*RELEASE, cwd=bench), lambda: (folder / MANIFEST).is_file())
    assert facts_of(bench) == stages.facts("closed")._replace(release=facts_of(bench).release)
    goes_on(bench, stages, "released", *RELEASE)


def test_a_release_killed_before_its_folder_has_its_name_goes_on(stages: Stages, tmp_path: Path):
    bench, folder = stages.copy("closed", tmp_path / "bench"), tmp_path / "bench" / "releases" / "round-1"
    with held(bench):
        killed_at(start(*RELEASE, cwd=bench), lambda: (folder / MANIFEST).is_file())
    # One step back: the moment between the two is too short to be met.
    folder.rename(folder.with_name(".round-1.new"))
    goes_on(bench, stages, "released", *RELEASE)


class Training:
    """A training run of some seconds, and the manifest that it ends with when nobody disturbs it."""

    def __init__(self, folder: Path, encoder: Path):
        create_workspace(folder).close()
        self.folder = folder
        write_training_rows(folder / "rows.csv")
        self.command = ("train", "--corpus", f"csv:{folder / 'rows.csv'}", "--name", "m", "--encoder", str(encoder))
        # As JSON, so that nothing is printed before the end.
        self.command += ("--epochs", "8", "--batch-rows", "4", "--json")
        self.models = folder / "models"

    def has_begun(self) -> bool:
        return (self.models / ".m.part").is_dir()

    def has_weights(self) -> bool:
        return (self.models / ".m.part" / "model.safetensors").exists()


@pytest.fixture(scope="module")
def undisturbed(tiny_encoder: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, object]:
    training = Training(tmp_path_factory.mktemp("undisturbed") / "bench", tiny_encoder)
    assert run(*training.command, cwd=training.folder).code == 0
    return read_manifest(training.models / "m")


@pytest.fixture
def training(tiny_encoder: Path, tmp_path: Path) -> Training:
    return Training(tmp_path / "bench", tiny_encoder)


def trains_at_last(training: Training, undisturbed: dict[str, object]) -> None:
    done = run(*training.command, cwd=training.folder)
    assert (done.code, done.err) == (0, ""), done
    assert read_manifest(training.models / "m") == undisturbed
    assert [p.name for p in training.models.iterdir()] == ["m"]


@pytest.mark.parametrize("moment", [Training.has_begun, Training.has_weights], ids=["fitting", "writing"])
def test_a_training_that_was_killed_starts_anew(
    training: Training, undisturbed: dict[str, object], moment: Callable[[Training], bool]
):
    killed_at(start(*training.command, cwd=training.folder), lambda: moment(training))
    assert not (training.models / "m").exists()
    trains_at_last(training, undisturbed)


def interrupted_at(process: Command, moment: Callable[[], bool]) -> None:
    """Press Ctrl-C at a moment: one sentence, and the code that says so."""
    wait_for(process, moment)
    process.send_signal(signal.SIGINT)
    done = ended(process)
    assert (done.code, done.out) == (130, ""), done
    assert done.err.strip() == "interrupted; run the same command again and it goes on"


def test_ctrl_c_in_a_harvest(stages: Stages, tmp_path: Path):
    bench = stages.copy("opened", tmp_path / "bench")
    interrupted_at(start(*HARVEST, cwd=bench), lambda: position_of(bench) >= CHUNK)
    assert facts_of(bench) == stages.facts("opened")
    goes_on(bench, stages, "harvested", *HARVEST)


def test_ctrl_c_in_a_crowd(stages: Stages, tmp_path: Path):
    bench = stages.copy("harvested", tmp_path / "bench")
    interrupted_at(start(*CROWD, cwd=bench), lambda: responses_of(bench) > ROWS)
    goes_on(bench, stages, "answered", *CROWD)


def test_ctrl_c_in_a_training(training: Training, undisturbed: dict[str, object]):
    interrupted_at(start(*training.command, cwd=training.folder), training.has_begun)
    assert list(training.models.iterdir()) == []
    trains_at_last(training, undisturbed)


def short_of_disk(bench: Path, file_bytes: int, *command: str) -> None:
    done = run(*command, cwd=bench, file_bytes=file_bytes)
    assert (done.code, done.out) == (2, ""), done
    assert done.err.startswith("Error: ") and "no " in done.err and done.err.count("\n") == 1, done


@pytest.mark.parametrize("room", ["spool", "database"])
def test_a_harvest_without_room_goes_on_with_some(stages: Stages, tmp_path: Path, room: str):
    bench = stages.copy("opened", tmp_path / "bench")
    database = os.stat(bench / "dynaround.sqlite").st_size
    # The spool needs some megabytes. With all sentences in it, only the examples are left to be stored.
    if room == "database":
        with held(bench):
            killed_at(start(*HARVEST, cwd=bench), lambda: position_of(bench) > 2 * CHUNK)
    short_of_disk(bench, database + 100_000, *HARVEST)
    assert facts_of(bench) == stages.facts("opened")
    goes_on(bench, stages, "harvested", *HARVEST)


def test_a_crowd_without_room_goes_on_with_some(stages: Stages, tmp_path: Path):
    bench = stages.copy("harvested", tmp_path / "bench")
    short_of_disk(bench, os.stat(bench / "dynaround.sqlite").st_size + 50_000, *CROWD)
    goes_on(bench, stages, "answered", *CROWD)


def test_a_release_without_room_is_made_with_some(stages: Stages, tmp_path: Path):
    bench = stages.copy("closed", tmp_path / "bench")
    longest = max(len(content) for content in stages.facts("released").release.values())
    short_of_disk(bench, longest - 1, *RELEASE)
    assert facts_of(bench) == stages.facts("closed") and list((bench / "releases").iterdir()) == []
    goes_on(bench, stages, "released", *RELEASE)


@pytest.fixture(scope="module")
def seconds_of_a_harvest(stages: Stages, tmp_path_factory: pytest.TempPathFactory) -> float:
    bench = stages.copy("opened", tmp_path_factory.mktemp("timed") / "bench")
    # The first command of all waits until what it is forked from has loaded torch.
    assert run("--version").code == 0
    begun = time.monotonic()
    assert run(*HARVEST, cwd=bench).code == 0
    return time.monotonic() - begun


def test_a_training_without_room_is_done_with_some(training: Training, undisturbed: dict[str, object]):
    short_of_disk(training.folder, 50_000, *training.command)
    assert list(training.models.iterdir()) == []
    trains_at_last(training, undisturbed)


@pytest.mark.long
@pytest.mark.parametrize("share", [0.02, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9])
def test_a_harvest_killed_at_any_time_goes_on(
    stages: Stages, tmp_path: Path, seconds_of_a_harvest: float, share: float
):
    seconds = share * seconds_of_a_harvest
    for place in range(20):
        bench = stages.copy("opened", tmp_path / f"bench-{place}")
        process = start(*HARVEST, cwd=bench)
        time.sleep(seconds)
        process.kill()
        process.communicate()
        if process.returncode == -signal.SIGKILL:
            break
        # It ended before: the machine is quicker now than when it was timed.
        seconds *= 0.8
    assert process.returncode == -signal.SIGKILL
    assert run(*HARVEST, cwd=bench).code == 0
    assert facts_of(bench) == stages.facts("harvested")
