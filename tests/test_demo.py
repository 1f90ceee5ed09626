"""The demo: one whole round, the same every time, gone on with after a kill, and told without promising too much."""

import json
import re
import shutil
import signal
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, nullcontext
from pathlib import Path
from typing import NamedTuple

import pytest
import torch
from sqlmodel import func, select
from transformers import AutoModel, BertConfig, BertModel

from dynaround.database import reading
from dynaround.demo_corpus import HELD_OUT_SEEDS, demo_seeds
from dynaround.folders import read_manifest
from dynaround.mixture import plain_row
from dynaround.settings import Workspace
from dynaround.tables import Evaluation, Round
from server.demo import play
from tests.command import PATIENCE, run, start
from tests.small_round import now
from tests.stages import facts_of
from tests.tiny_model import make_encoder, make_model

STEPS = ["workspace", "model 0", "round 1", "harvest", "validation", "labels", "release", "model 1", "round 2"]
CROWD = "a scripted crowd (not people)"


class NoBars:
    """Progress that nobody watches."""

    def counting(self, label: str, total: int | None, unit: str):
        return nullcontext(lambda count=1: None)

    def training(self, label: str):
        return nullcontext(lambda done, steps: None)


class Played(NamedTuple):
    """A folder with a demo in it, and the lines that it told."""

    folder: Path
    lines: list[str]


def played(folder: Path, seed: int = 0) -> Played:
    return Played(folder, list(play(folder, seed=seed, now=now, bars=NoBars())))


@contextmanager
def settings_of(**variables: str) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        for name, value in variables.items():
            patch.setenv(f"DYNAROUND_{name.upper()}", value)
        yield


@pytest.fixture(scope="module")
def small_encoder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small encoder that has seen the seeds once, so that the demo's gentle training makes it err in every cell."""
    folder = tmp_path_factory.mktemp("small")
    encoder = make_encoder(folder / "random")
    sizes = {"hidden_size": 256, "intermediate_size": 256, "num_hidden_layers": 1}
    config = BertConfig(**{**json.loads((encoder / "config.json").read_text()), **sizes})
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        BertModel(config).save_pretrained(encoder)
    rows = [plain_row(seed.text, seed.label) for seed in demo_seeds()[:-HELD_OUT_SEEDS]]
    settings = {"batch_rows": 16, "learning_rate": 1e-3, "max_tokens": 64}
    trained = make_model(folder / "trained", encoder, rows=rows, epochs=3, settings=settings)
    shutil.copytree(encoder, folder / "encoder")
    AutoModel.from_pretrained(trained).save_pretrained(folder / "encoder")
    return folder / "encoder"


@pytest.fixture(scope="module")
def small(small_encoder: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Played]:
    """The demo played with the small encoder, which then stays the setting."""
    with settings_of(encoder=str(small_encoder), threads="1"):
        yield played(tmp_path_factory.mktemp("demo") / "demo")


def test_every_step_is_told_in_order(small: Played):
    steps = small.lines[: len(STEPS)]
    assert [step[:14].strip() for step in steps] == [f"{number} {name}" for number, name in enumerate(STEPS, 1)]


def test_the_summary_says_who_answered_and_what_so_few_can_mean(small: Played):
    summary = small.lines[len(STEPS) :]
    scores = [line for line in summary if re.search(r"macro F1 0\.\d{3} \[0\.\d{3}, 0\.\d{3}\]", line)]
    assert [line.split("  macro")[0].strip() for line in scores] == [
        *("model-0", "model-1"),
        *("model-0", "model-1", CROWD) * 2,
    ]
    text = "\n".join(summary)
    assert "Models 0 and 1, with 95 % intervals (bootstrap over reviews)" in text
    assert re.search(
        r"With \d+ sentences a score is known to about \+-0\.\d\d: .*far too few to rank good models", text
    )
    assert "The validators were a script" in text and "by construction" in text


def test_dev_and_test_are_even_so_model_0_stands_at_one_third(small: Played):
    manifest = read_manifest(small.folder / "releases" / "round-1")
    sizes = manifest["examples"]
    assert sizes["dev"] == sizes["test"] >= 9 and sizes["dev"] % 9 == 0
    assert manifest["responses_from"] == CROWD
    assert [s["macro_f1"] for s in stored(small, "model-0")[1:]] == [pytest.approx(1 / 3)] * 2


def stored(demo: Played, model: str) -> list[dict[str, float]]:
    """Return the readings of a model: on the held-out seeds, on dev, on test."""
    workspace = Workspace(demo.folder)
    with reading(workspace.engine()) as session:
        rows = session.exec(select(Evaluation).where(Evaluation.model == model).order_by(Evaluation.data)).all()
    workspace.close()
    return [row.scores for row in rows]


def test_round_2_is_open_against_model_1(small: Played):
    workspace = Workspace(small.folder)
    with reading(workspace.engine()) as session:
        rounds = session.exec(select(Round).order_by(Round.number)).all()
    workspace.close()
    assert [(r.number, r.state, r.target_model) for r in rounds] == [(1, "released", "model-0"), (2, "open", "model-1")]
    assert rounds[1].target_model_hash == read_manifest(small.folder / "models" / "model-1")["hash"]


def test_playing_it_again_adds_nothing_and_tells_the_same(small: Played):
    before = facts_of(small.folder)
    assert played(small.folder).lines == small.lines
    assert facts_of(small.folder) == before
    workspace = Workspace(small.folder)
    with reading(workspace.engine()) as session:
        assert session.exec(select(func.count()).select_from(Evaluation)).one() == 6
    workspace.close()


def test_another_seed_in_the_same_folder_is_refused(small: Played):
    done = run("demo", "--no-serve", "--seed", "1", "--folder", small.folder, cwd=small.folder)
    assert done.code == 2 and "holds another demo; name another --folder" in done.err, done


MOMENTS = {
    "training": lambda folder: (folder / "models" / ".model-0.part").is_dir(),
    "harvest": lambda folder: (folder / "work" / "harvest-1.sqlite").is_file(),
    "crowd": lambda folder: count_of(folder, "response") > 1500,
    "release": lambda folder: any((folder / "releases").glob("*round-1*")),
    "training again": lambda folder: (folder / "models" / ".model-1.part").is_dir(),
    "readings": lambda folder: count_of(folder, "evaluation") > 2,
}


def count_of(folder: Path, table: str) -> int:
    try:
        with closing(sqlite3.connect(f"file:{folder / 'dynaround.sqlite'}?mode=ro", uri=True)) as connection:
            return int(connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0])
    except sqlite3.OperationalError:
        return 0


@pytest.mark.long
@pytest.mark.parametrize("moment", MOMENTS)
def test_a_killed_demo_goes_on_to_the_same_release(small: Played, tmp_path: Path, moment: str):
    folder = tmp_path / "demo"
    process = start("demo", "--no-serve", "--folder", folder, cwd=tmp_path)
    deadline = time.monotonic() + PATIENCE
    while not MOMENTS[moment](folder) and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.002)
    process.kill()
    process.communicate()
    assert process.returncode == -signal.SIGKILL
    assert played(folder).lines[1:] == small.lines[1:]
    found, wanted = facts_of(folder), facts_of(small.folder)
    # Judging a model once more than needed is one more event, and no harm.
    assert found._replace(events=set(found.events)) == wanted._replace(events=set(wanted.events))


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> Played:
    """The demo as a user plays it, with the packaged encoder, but in one thread: more are slower on busy cores."""
    with settings_of(encoder="minilm", threads="1"):
        return played(tmp_path_factory.mktemp("real") / "demo")


@pytest.mark.long
def test_the_real_demo_reaches_what_the_readme_says(real: Played):
    manifest = read_manifest(real.folder / "releases" / "round-1")
    assert manifest["examples"]["dev"] == manifest["examples"]["test"] >= 27
    on_seeds, *on_round = stored(real, "model-0")
    assert on_seeds["macro_f1"] >= 0.60
    assert [s["macro_f1"] for s in on_round] == [pytest.approx(1 / 3)] * 2
    assert all(s["macro_f1"] > 1 / 3 for s in stored(real, "model-1")[1:])


@pytest.mark.long
def test_the_real_demo_is_the_same_in_another_folder_and_process(real: Played, tmp_path: Path):
    done = run(
        "demo", "--no-serve", "--folder", "demo", cwd=tmp_path, env={"DYNAROUND_ENCODER": "minilm"}, patience=3600
    )
    assert done.code == 0, done.err
    assert done.out.splitlines()[1:] == real.lines[1:]
    for model in ("model-0", "model-1"):
        mine, other = (read_manifest(folder / "models" / model) for folder in (real.folder, tmp_path / "demo"))
        assert mine["hash"] == other["hash"]
    assert facts_of(tmp_path / "demo").release == facts_of(real.folder).release
