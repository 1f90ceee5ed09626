"""A training that is killed goes on from its last checkpoint, to the same weights bit for bit."""

import os
import shutil
import signal

import pytest
import torch

from dynaround.checkpoints import Checkpoints, differences
from dynaround.encoders import find_encoder
from dynaround.errors import BadInput
from dynaround.folders import file_hash
from dynaround.mixture import plain_row
from dynaround.training import Recipe, train
from dynaround.training_settings import TrainingSettings
from tests.command import start_program
from tests.tiny_model import LABELS, ROWS

CHILD = """
import sys
from pathlib import Path
from tests.test_checkpoints import trained
trained(Path(sys.argv[1]), Path(sys.argv[2]), lambda done, steps: print(done, steps, flush=True))
"""

MANY = [*ROWS, *(plain_row(f"{row.text} {word}", row.shares[0][0]) for row in ROWS for word in ("ok", "very", "again"))]


class Stopped(Exception):
    """What a test stops a training with."""


def trained(folder, encoder, on_step, rows=MANY, **settings):
    """Train with dropout, early stopping and a checkpoint every third step."""
    usual = {"epochs": 6, "learning_rate": 2e-3, "batch_rows": 4, "held_out_share": 0.2, "patience": 0, "threads": 1}
    chosen = TrainingSettings(**usual | settings)
    recipe = Recipe(folder.name, "sentiment", LABELS, find_encoder(str(encoder)), chosen, {})
    return train(rows, recipe, folder, on_step, checkpoint_steps=3)


def stop_at(step):
    def told(done, steps):
        if done == step:
            raise Stopped

    return told


def killed_after(step, folder, encoder):
    """Train in a child process and kill it after a step; return the steps it took."""
    process, took = start_program(CHILD, folder, encoder), []
    for line in process.lines():
        took.append(int(line.split()[0]))
        if took[-1] >= step:
            process.kill()
            break
    process.communicate()
    assert process.returncode == -signal.SIGKILL
    return took


def outcome(folder):
    return file_hash(folder / "model.safetensors")


@pytest.fixture(scope="module")
def straight(tiny_encoder, tmp_path_factory):
    folder = tmp_path_factory.mktemp("straight") / "model"
    manifest = trained(folder, tiny_encoder, lambda done, steps: None)
    return manifest, outcome(folder)


def test_trn_02_a_training_killed_three_times_ends_with_the_same_weights(straight, tiny_encoder, tmp_path):
    folder = tmp_path / "models" / "model"
    firsts = [killed_after(step, folder, tiny_encoder)[0] for step in (4, 11, 29)]
    assert firsts == [1, 4, 10] and os.listdir(folder.parent).count("model") == 0
    steps = []
    manifest = trained(folder, tiny_encoder, lambda done, total: steps.append(done))
    assert steps[0] == 28 and steps[-1] == manifest["steps"]["taken"]
    assert (manifest, outcome(folder)) == straight
    assert os.listdir(folder.parent) == ["model"]


@pytest.mark.long
def test_trn_02_a_training_killed_after_any_step_ends_with_the_same_weights(straight, tiny_encoder, tmp_path):
    for step in range(1, straight[0]["steps"]["taken"], 2):
        folder = tmp_path / str(step) / "model"
        killed_after(step, folder, tiny_encoder)
        trained(folder, tiny_encoder, lambda done, steps: None)
        assert outcome(folder) == straight[1]


@pytest.mark.parametrize("step", [3, 7, 16])
def test_a_training_that_goes_on_has_the_dropout_and_the_checks_of_one_that_never_stopped(
    straight, tiny_encoder, tmp_path, step
):
    with pytest.raises(Stopped):
        trained(tmp_path / "model", tiny_encoder, stop_at(step))
    manifest = trained(tmp_path / "model", tiny_encoder, lambda done, steps: None)
    assert (manifest["early_stopping"], outcome(tmp_path / "model")) == (straight[0]["early_stopping"], straight[1])


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"seed": 3}, "settings.seed"),
        ({"learning_rate": 1e-4}, "settings.learning_rate"),
        ({"rows": [*MANY[:-1], plain_row("ok", "neutral")]}, "rows_sha256"),
    ],
)
def test_trn_02_the_checkpoint_of_another_training_is_refused_with_what_differs(tiny_encoder, tmp_path, changes, named):
    with pytest.raises(Stopped):
        trained(tmp_path / "model", tiny_encoder, stop_at(4))
    kept = file_hash(tmp_path / ".model.checkpoint" / "checkpoint.pt")
    with pytest.raises(BadInput, match=rf"another training \(it differs in {named}\)"):
        trained(tmp_path / "model", tiny_encoder, stop_at(1), **changes)
    assert file_hash(tmp_path / ".model.checkpoint" / "checkpoint.pt") == kept


def test_trn_02_without_its_checkpoint_a_training_starts_from_the_encoder(straight, tiny_encoder, tmp_path):
    with pytest.raises(Stopped):
        trained(tmp_path / "model", tiny_encoder, stop_at(4))
    shutil.rmtree(tmp_path / ".model.checkpoint")
    steps = []
    trained(tmp_path / "model", tiny_encoder, lambda done, total: steps.append(done))
    assert steps[0] == 1 and outcome(tmp_path / "model") == straight[1]


def test_a_checkpoint_that_outlived_its_training_is_removed_by_the_same_command(tiny_encoder, tmp_path):
    with pytest.raises(Stopped):
        trained(tmp_path / "model", tiny_encoder, stop_at(4))
    copy = shutil.copytree(tmp_path / ".model.checkpoint", tmp_path / "copy")
    trained(tmp_path / "model", tiny_encoder, lambda done, steps: None)
    shutil.move(copy, tmp_path / ".model.checkpoint")
    trained(tmp_path / "model", tiny_encoder, stop_at(1))
    assert os.listdir(tmp_path) == ["model"]


def test_a_half_written_checkpoint_is_never_read(tmp_path):
    checkpoints = Checkpoints(tmp_path / "model", {"rows": 1})
    checkpoints.write({"done": 3, "weights": torch.ones(2)})
    (checkpoints.folder / "checkpoint.pt.part").write_bytes(b"half")
    state = checkpoints.read()
    assert state["done"] == 3 and state["weights"].equal(torch.ones(2))


def test_what_differs_is_named_by_its_place():
    one = {"rows": 3, "settings": {"seed": 0, "epochs": 2}, "parent": None}
    other = {"rows": 3, "settings": {"seed": 1, "epochs": 2}}
    assert differences(one, other) == ["parent", "settings.seed"] and differences(one, one) == []
