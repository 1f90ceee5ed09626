"""Training: from the pretrained encoder, the same weights again, a folder that is whole or not there."""

import os
import random
import re
import shutil
import signal
from dataclasses import asdict, replace
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from dynaround import training_commands
from dynaround.encoders import find_encoder
from dynaround.errors import BadInput
from dynaround.folders import data_hash, file_hash, file_hashes, read_manifest
from dynaround.mixture import TrainingRow, plain_row
from dynaround.processor import has_bfloat16
from dynaround.target_model import TargetModel
from dynaround.training import Recipe, read_review_ids, train
from dynaround.training_settings import TrainingSettings
from tests.command import ended, start_program
from tests.tiny_model import LABELS, ROWS, make_encoder, make_model

SLOW_TRAINING = """
import sys, time
from pathlib import Path
from tests import tiny_model

def slowly(rows, recipe, folder, on_step):
    def told(done, steps):
        print("step", flush=True)
        time.sleep(60)
    return train(rows, recipe, folder, told)

train, tiny_model.train = tiny_model.train, slowly
tiny_model.make_model(Path(sys.argv[1]), Path(sys.argv[2]))
"""

FULL_DISK = """
import resource, signal, sys
from pathlib import Path
from dynaround.errors import NoSpace
from tests.tiny_model import make_model

signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
for bytes_left in (300, 20_000):
    resource.setrlimit(resource.RLIMIT_FSIZE, (bytes_left, resource.RLIM_INFINITY))
    try:
        make_model(Path(sys.argv[1]), Path(sys.argv[2]), epochs=1)
    except NoSpace as error:
        print(error)
"""


def recipe_of(encoder, name="model-1", origin=(), review_ids=(), **settings):
    usual = {"epochs": 2, "learning_rate": 3e-3, "batch_rows": 4, "threads": 1}
    chosen = TrainingSettings(**usual | settings)
    return Recipe(name, "sentiment", LABELS, find_encoder(str(encoder)), chosen, dict(origin), review_ids)


def unheard(done, steps):
    pass


def weights_of(folder):
    return load_file(folder / "model.safetensors")


def test_trn_02_every_model_starts_from_the_encoder_and_stops_after_its_steps(tiny_encoder, tmp_path):
    make_model(tmp_path / "model-1", tiny_encoder)
    steps = []
    recipe = recipe_of(tiny_encoder, "model-2", epochs=1, learning_rate=1e-12)
    train(ROWS, recipe, tmp_path / "model-2", lambda done, total: steps.append((done, total)))
    assert steps == [(1, 3), (2, 3), (3, 3)]
    encoder, trained = load_file(tiny_encoder / "model.safetensors"), weights_of(tmp_path / "model-2")
    assert all(torch.allclose(trained[f"bert.{name}"], weights, atol=1e-9) for name, weights in encoder.items())
    assert set(trained) - {f"bert.{name}" for name in encoder} == {"classifier.weight", "classifier.bias"}


def test_trn_02_the_manifest_records_encoder_data_seed_and_no_parent(tiny_encoder, tmp_path):
    manifest = train(ROWS, recipe_of(tiny_encoder, seed=7), tmp_path / "model-1", unheard)
    weights_hash = file_hash(tiny_encoder / "model.safetensors")
    assert manifest["encoder"] == {"name": str(tiny_encoder), "weights_sha256": weights_hash}
    assert manifest["rows_sha256"] == data_hash([list(row) for row in ROWS]) and manifest["rows"] == 9
    assert manifest["settings"]["seed"] == 7 and manifest["parent"] is None
    assert manifest["versions"]["torch"] == torch.__version__ and manifest["threads"] == 1
    # The card may be added to by whoever keeps the folder.
    assert {"README.md", *manifest["files"]} == set(file_hashes(tmp_path / "model-1"))
    assert manifest["hash"] == data_hash(manifest["files"])


@pytest.mark.parametrize("changes", [{"seed": 1}, {"epochs": 3}, {"threads": 2}, {"origin": {"label_mode": "x"}}])
def test_trn_02_the_folder_of_another_run_is_refused_and_left_alone(tiny_encoder, tmp_path, changes):
    train(ROWS, recipe_of(tiny_encoder), tmp_path / "model-1", unheard)
    before = file_hashes(tmp_path / "model-1")
    with pytest.raises(BadInput, match=r"model-1 already holds another model \(it differs in"):
        train(ROWS, recipe_of(tiny_encoder, **changes), tmp_path / "model-1", unheard)
    assert file_hashes(tmp_path / "model-1") == before


def test_trn_02_other_rows_are_another_run(tiny_encoder, tmp_path):
    train(ROWS, recipe_of(tiny_encoder), tmp_path / "model-1", unheard)
    with pytest.raises(BadInput, match="it differs in rows_sha256"):
        train([plain_row("ok", "neutral"), *ROWS[1:]], recipe_of(tiny_encoder), tmp_path / "model-1", unheard)


def test_trn_02_the_same_run_returns_its_manifest_without_a_step(tiny_encoder, tmp_path):
    recipe = recipe_of(tiny_encoder, origin={"corpora": ("a", "b")}, review_ids=["v1"])
    first = train(ROWS, recipe, tmp_path / "model-1", unheard)
    steps = []
    assert train(ROWS, recipe, tmp_path / "model-1", lambda *step: steps.append(step)) == first
    assert steps == [] and read_manifest(tmp_path / "model-1") == first


def test_trn_02_a_folder_with_a_checkpoint_of_another_program_is_refused(tiny_encoder, tmp_path):
    checkpoint = tmp_path / "model-1" / "checkpoint-500" / "model.safetensors"
    checkpoint.parent.mkdir(parents=True)
    checkpoint.write_bytes(b"other")
    with pytest.raises(BadInput, match="model-1 already exists and is not empty; name another one"):
        train(ROWS, recipe_of(tiny_encoder), tmp_path / "model-1", unheard)
    assert checkpoint.read_bytes() == b"other"


def test_an_empty_folder_is_filled_and_a_file_in_the_way_is_refused(tiny_encoder, tmp_path):
    (tmp_path / "model-1").mkdir()
    train(ROWS, recipe_of(tiny_encoder), tmp_path / "model-1", unheard)
    assert read_manifest(tmp_path / "model-1")["name"] == "model-1"
    (tmp_path / "model-2").write_text("in the way")
    with pytest.raises(BadInput, match="model-2 already exists"):
        train(ROWS, recipe_of(tiny_encoder), tmp_path / "model-2", unheard)


def test_the_same_seed_gives_the_same_weights_and_hash_whatever_was_drawn_before(tiny_encoder, tmp_path):
    first = train(ROWS, recipe_of(tiny_encoder), tmp_path / "a" / "model-1", unheard)
    torch.rand(3), random.random()
    second = train(ROWS, recipe_of(tiny_encoder), tmp_path / "b" / "model-1", unheard)
    assert first == second
    one, other = weights_of(tmp_path / "a" / "model-1"), weights_of(tmp_path / "b" / "model-1")
    assert all(one[name].equal(other[name]) for name in one)


def test_another_seed_gives_other_weights(tiny_encoder, tmp_path):
    hashes = {train(ROWS, recipe_of(tiny_encoder, seed=s), tmp_path / str(s), unheard)["hash"] for s in (0, 1)}
    assert len(hashes) == 2


def test_training_leaves_the_random_state_and_the_thread_count_untouched(tiny_encoder, tmp_path):
    torch.manual_seed(5)
    random.seed(5)
    state, other, threads = torch.random.get_rng_state(), random.getstate(), torch.get_num_threads()
    train(ROWS, recipe_of(tiny_encoder, threads=threads + 1), tmp_path / "model-1", unheard)
    assert torch.random.get_rng_state().equal(state) and random.getstate() == other
    assert torch.get_num_threads() == threads


def test_training_teaches_the_rows(tiny_encoder, tmp_path):
    model = TargetModel(make_model(tmp_path / "model-1", tiny_encoder, epochs=40), LABELS, threads=1)
    predictions = model.predict([row.text for row in ROWS])
    assert [p.label for p in predictions] == [row.shares[0][0] for row in ROWS]


def test_a_crash_in_the_middle_leaves_nothing(tiny_encoder, tmp_path):
    def crash(done, steps):
        if done == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train(ROWS, recipe_of(tiny_encoder), tmp_path / "models" / "model-1", crash)
    assert list((tmp_path / "models").iterdir()) == []


def test_a_killed_training_leaves_no_model_and_runs_again(tiny_encoder, tmp_path):
    folder = tmp_path / "models" / "model-1"
    process = start_program(SLOW_TRAINING, folder, tiny_encoder)
    assert next(process.lines()) == "step\n"
    process.kill()
    process.communicate()
    assert process.returncode == -signal.SIGKILL and not folder.exists()
    make_model(folder, tiny_encoder, epochs=1)
    assert os.listdir(tmp_path / "models") == ["model-1"] and read_manifest(folder)["kind"] == "model"


def test_a_full_disk_while_saving_is_said_and_nothing_is_left(tiny_encoder, tmp_path):
    folder = tmp_path / "models" / "model-1"
    done = ended(start_program(FULL_DISK, folder, tiny_encoder))
    sentence = (
        f"there is no room left to write {folder} (File too large); free some and run again, nothing of it was kept"
    )
    assert done.out.splitlines() == [sentence, sentence], done.err
    assert os.listdir(tmp_path / "models") == []


def test_weights_that_run_away_are_no_model(tiny_encoder, tmp_path):
    with pytest.raises(BadInput, match=r"training diverged at step \d+ of 6; take a smaller --learning-rate"):
        train(ROWS, recipe_of(tiny_encoder, learning_rate=1e30), tmp_path / "model-1", unheard)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "settings",
    [
        {"batch_tokens": 24},
        {"freeze_embeddings": True},
        {"weighting": "sampling", "drawn_rows": 12},
        {"precision": "bfloat16"},
        {"clip_norm": 0.01},
    ],
)
def test_each_setting_shapes_the_weights_and_gives_the_same_ones_again(tiny_encoder, tmp_path, settings):
    hashes = [
        train(ROWS, recipe_of(tiny_encoder, **chosen), tmp_path / name / "m", unheard)["hash"]
        for name, chosen in (("usual", {}), ("one", settings), ("two", settings))
    ]
    assert hashes[0] != hashes[1] == hashes[2]


def test_precision_is_resolved_for_the_manifest(tiny_encoder, tmp_path):
    asked = {p: train(ROWS, recipe_of(tiny_encoder, precision=p), tmp_path / p, unheard) for p in ("auto", "bfloat16")}
    assert asked["auto"]["precision"] == ("bfloat16" if has_bfloat16() else "float32")
    assert asked["bfloat16"]["precision"] == "bfloat16" and asked["auto"]["settings"]["precision"] == "auto"
    one, other = (weights_of(tmp_path / p) for p in ("auto", "bfloat16"))
    assert all(torch.allclose(one[name], other[name], atol=0.1) for name in one)


def test_class_balance_is_stated_in_rows_and_weight(tiny_encoder, tmp_path):
    heavy = [*ROWS[1:], TrainingRow(ROWS[0].text, (("positive", 0.5), ("neutral", 0.5)), 4.0)]
    balance = train(heavy, recipe_of(tiny_encoder), tmp_path / "model", unheard)["class_balance"]
    assert balance["positive"] == {"rows": 2.5, "weight": round(4 / 12, 6)}
    assert balance["neutral"]["rows"] == 3.5 and balance["negative"]["weight"] == 0.25


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"epochs": 0}, "epochs is 0"),
        ({"batch_rows": 0}, "batch_rows is 0"),
        ({"learning_rate": float("nan")}, "learning_rate is nan"),
        ({"seed": -1}, "seed is -1"),
        ({"seed": 2**63}, "seed is 9223372036854775808"),
        ({"max_tokens": 129}, "reads at most 128 tokens, not 129"),
        ({"held_out_share": 0.5}, "held_out_share is 0.5"),
        ({"drawn_rows": 5}, "drawn_rows is 5, but rows are only drawn"),
    ],
)
def test_settings_that_cannot_be_trained_with_are_refused(tiny_encoder, tmp_path, settings, told):
    with pytest.raises(BadInput, match=told):
        train(ROWS, recipe_of(tiny_encoder, **settings), tmp_path / "model-1", unheard)
    assert list(tmp_path.iterdir()) == []


def test_the_command_shows_the_defaults_of_the_library():
    usual = asdict(TrainingSettings())
    shown = {p.name: p.show_default for p in training_commands.train.params if p.name in usual}
    assert {"epochs", "learning_rate", "batch_rows", "max_tokens", "seed", "held_out_share", "precision"} == set(shown)
    assert shown == {name: str(usual[name]) for name in shown}


def test_review_ids_come_back_as_they_were(tiny_encoder, tmp_path):
    review_ids = ["v2", "v10", "v2", "with blank ", "bell\x0b", "line\u2028separator", "return\r", "ümlaut"]
    manifest = train(ROWS, recipe_of(tiny_encoder, review_ids=review_ids), tmp_path / "model-1", unheard)
    assert read_review_ids(tmp_path / "model-1") == set(review_ids)
    assert manifest["reviews"] == {"file": "review_ids.txt", "count": 7}
    assert (tmp_path / "model-1" / "review_ids.txt").read_bytes().count(b"v2\n") == 1


def test_a_review_id_with_a_line_break_is_refused(tiny_encoder, tmp_path):
    with pytest.raises(BadInput, match=re.escape(r"review_id 'a\nb' holds a line break")):
        train(ROWS, recipe_of(tiny_encoder, review_ids=["a\nb"]), tmp_path / "model-1", unheard)


def test_a_model_is_the_same_from_a_copy_of_its_encoder(tiny_encoder, tmp_path):
    copy = shutil.copytree(tiny_encoder, tmp_path / "copy")
    files = [train(ROWS, recipe_of(e), tmp_path / e.name / "m", unheard)["hash"] for e in (tiny_encoder, copy)]
    assert files[0] == files[1]
    other = make_encoder(tmp_path / "other", seed=1)
    assert train(ROWS, recipe_of(other), tmp_path / "m", unheard)["hash"] != files[0]


def test_minilm_is_fitted_from_its_packaged_weights(tmp_path):
    folder = make_model(tmp_path / "model-1", Path("minilm"), epochs=1, settings={"learning_rate": 1e-12})
    encoder = load_file(Path(find_encoder("minilm").source) / "model.safetensors")
    trained = weights_of(folder)
    shared = [name for name in encoder if f"bert.{name}" in trained]
    assert len(shared) == 103 and all(torch.allclose(trained[f"bert.{n}"], encoder[n], atol=1e-9) for n in shared)
    shutil.rmtree(folder)


def test_a_row_with_two_shares_draws_the_model_between_its_labels(tiny_encoder, tmp_path):
    torn = [TrainingRow("the soup was ok", (("positive", 0.75), ("negative", 0.25)))]
    others = [row for row in ROWS for _ in range(3)]
    folder = make_model(tmp_path / "torn", tiny_encoder, rows=torn * 9 + others, epochs=30)
    probs = TargetModel(folder, LABELS).predict(["the soup was ok"])[0].probs
    assert 0.6 < probs["positive"] < 0.9 and 0.1 < probs["negative"] < 0.4


def test_a_heavy_row_wins_over_light_ones_and_equal_weights_change_nothing(tiny_encoder, tmp_path):
    def label_at(weight, name):
        rows = [plain_row("it was ok", "negative"), TrainingRow("it was ok", (("positive", 1.0),), weight)]
        folder = make_model(tmp_path / name, tiny_encoder, rows=rows, epochs=40)
        return TargetModel(folder, LABELS).predict(["it was ok"])[0].label

    assert [label_at(5, "heavy"), label_at(0.2, "light")] == ["positive", "negative"]
    alike = [row._replace(weight=3.0) for row in ROWS]
    one = weights_of(make_model(tmp_path / "one", tiny_encoder, epochs=1))
    three = weights_of(make_model(tmp_path / "three", tiny_encoder, rows=alike, epochs=1))
    assert all(torch.equal(one[name], three[name]) for name in one)


def test_a_file_to_keep_stands_in_the_folder_with_its_hash(tiny_encoder, tmp_path):
    recipe = replace(recipe_of(tiny_encoder, epochs=1), kept_files={"recipe.toml": "# ünder\r\n"})
    manifest = train(ROWS, recipe, tmp_path / "model-1", unheard)
    assert (tmp_path / "model-1" / "recipe.toml").read_bytes() == "# ünder\r\n".encode()
    assert manifest["files"]["recipe.toml"] == manifest["kept_files"]["recipe.toml"]
    with pytest.raises(BadInput, match="it differs in kept_files"):
        train(ROWS, recipe_of(tiny_encoder, epochs=1), tmp_path / "model-1", unheard)
