"""Folders that are whole or not there, the settings of a workspace, and the lock of a long job."""

import json
import os
import signal
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from dynaround.errors import BadInput, Busy, NotFound
from dynaround.folders import completed_folder, data_hash, file_hashes, read_manifest, require_unchanged, write_json
from dynaround.settings import CONFIG_NAME, CONFIG_TEMPLATE, Settings, Workspace, create_workspace, load_settings

FULL_DISK = """
import resource, signal, sys
from pathlib import Path
from dynaround.errors import NoSpace
from dynaround.folders import write_json

signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (100, resource.RLIM_INFINITY))
try:
    write_json(Path(sys.argv[1]), ["long"] * 100)
except NoSpace as error:
    print(error)
"""

HOLD_LOCK = """
import sys, time
from pathlib import Path
from dynaround.settings import Workspace

with Workspace(Path(sys.argv[1])).exclusively("train-model-1"):
    print("held", flush=True)
    time.sleep(60)
"""


@pytest.fixture(autouse=True)
def without_variables(monkeypatch):
    for name in Settings.model_fields:
        monkeypatch.delenv(f"DYNAROUND_{name.upper()}", raising=False)


def config(tmp_path, text):
    path = tmp_path / CONFIG_NAME
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize("value", [float("nan"), float("inf"), {"a": [float("nan")]}])
def test_write_json_refuses_nan_and_leaves_the_old_file(tmp_path, value):
    path = tmp_path / "scores.json"
    write_json(path, {"old": 1})
    with pytest.raises(ValueError, match="not JSON compliant"):
        write_json(path, value)
    assert json.loads(path.read_text()) == {"old": 1} and os.listdir(tmp_path) == ["scores.json"]


def test_a_full_disk_is_said_and_the_old_file_stays(tmp_path):
    path = tmp_path / "scores.json"
    write_json(path, {"old": 1})
    command = [sys.executable, "-c", FULL_DISK, str(path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    sentence = (
        f"there is no room left to write {path} (File too large); free some and run again, nothing of it was kept"
    )
    assert done.stdout.splitlines() == [sentence], done.stderr
    assert json.loads(path.read_text()) == {"old": 1} and os.listdir(tmp_path) == ["scores.json"]


def test_a_folder_appears_whole_with_all_its_files(tmp_path):
    with completed_folder(tmp_path / "deep" / "model") as part:
        (part / "weights").write_text("w")
        assert not (tmp_path / "deep" / "model").exists()
    assert os.listdir(tmp_path / "deep") == ["model"] and file_hashes(tmp_path / "deep" / "model").keys() == {"weights"}


def test_nothing_is_left_of_a_folder_that_failed_and_a_leftover_is_replaced(tmp_path):
    leftover = tmp_path / ".model.part"
    leftover.mkdir()
    (leftover / "old").write_text("of a killed run")
    with pytest.raises(KeyboardInterrupt), completed_folder(tmp_path / "model") as part:
        assert list(part.iterdir()) == []
        raise KeyboardInterrupt
    assert list(tmp_path.iterdir()) == []


def test_a_folder_with_something_in_it_is_refused_and_kept(tmp_path):
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "mine").write_text("kept")
    with pytest.raises(BadInput, match="model already exists and is not empty"), completed_folder(tmp_path / "model"):
        raise AssertionError
    assert (tmp_path / "model" / "mine").read_text() == "kept"


def test_file_hashes_are_of_content_by_relative_name_without_the_manifest(tmp_path):
    (tmp_path / "deep").mkdir()
    for name in ("b", "deep/a", "manifest.json"):
        (tmp_path / name).write_text("")
    empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
    assert list(file_hashes(tmp_path).items()) == [("b", empty), ("deep/a", empty)]


@pytest.mark.parametrize(("change", "told"), [(Path.unlink, "is missing"), (Path.touch, None)])
def test_files_are_compared_with_the_manifest(tmp_path, change, told):
    (tmp_path / "weights").write_text("w")
    files = file_hashes(tmp_path)
    change(tmp_path / "weights")
    if told is None:
        require_unchanged(tmp_path, files)
        (tmp_path / "weights").write_text("v")
    with pytest.raises(BadInput, match=f"weights {told or 'has changed'} since its manifest.json"):
        require_unchanged(tmp_path, files)


def test_the_hash_of_data_does_not_depend_on_the_order_of_keys():
    assert data_hash({"a": 1, "b": [2]}) == data_hash({"b": [2], "a": 1}) != data_hash({"a": 1, "b": [3]})


def test_a_missing_folder_is_named(tmp_path):
    with pytest.raises(NotFound, match=f"there is no folder {tmp_path}/none"):
        read_manifest(tmp_path / "none")


def test_the_template_holds_the_defaults(tmp_path):
    assert load_settings(config(tmp_path, CONFIG_TEMPLATE)).model_dump() == Settings().model_dump()
    assert tomllib.loads(CONFIG_TEMPLATE) == {name: field.default for name, field in Settings.model_fields.items()}


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("encodr = 'minilm'", "setting 'encodr' of {}"),
        ("threads = -1", "setting 'threads' of {}"),
        ("threads = 'many'", "setting 'threads' of {}"),
        ("precision = 'float8'", "setting 'precision' of {}"),
        ("encoder = minilm", "{} is not TOML"),
    ],
)
def test_a_wrong_setting_is_refused_with_file_and_name(tmp_path, text, told):
    path = config(tmp_path, text)
    with pytest.raises(BadInput, match=told.format(path)):
        load_settings(path)


def test_a_config_file_that_is_not_utf_8_is_refused_with_its_name(tmp_path):
    path = tmp_path / CONFIG_NAME
    path.write_bytes("encoder = 'größer'".encode("latin-1"))
    with pytest.raises(BadInput, match=f"{path} is not TOML"):
        load_settings(path)


def test_a_variable_wins_over_the_file(tmp_path, monkeypatch):
    path = config(tmp_path, "encoder = 'roberta-base'\nthreads = 3\n")
    monkeypatch.setenv("DYNAROUND_ENCODER", "minilm")
    settings = load_settings(path)
    assert (settings.encoder, settings.threads) == ("minilm", 3)


def test_a_wrong_variable_is_refused_with_its_name(tmp_path, monkeypatch):
    monkeypatch.setenv("DYNAROUND_PRECISION", "float8")
    with pytest.raises(BadInput, match="DYNAROUND_PRECISION"):
        load_settings(config(tmp_path, ""))


def test_making_a_workspace_again_changes_nothing(tmp_path):
    create_workspace(tmp_path / "w")
    path = config(tmp_path / "w", "threads = 2\n")
    again = create_workspace(tmp_path / "w")
    assert path.read_text() == "threads = 2\n" and again.settings.threads == 2
    assert sorted(p.name for p in again.root.iterdir() if p.is_dir()) == ["models", "releases", "work"]


def test_no_workspace_is_refused_with_what_to_do(tmp_path):
    with pytest.raises(NotFound, match=rf"{tmp_path} is no dynaround workspace .*run: dynaround init {tmp_path}"):
        Workspace(tmp_path)


def test_a_file_in_the_way_of_a_workspace_is_refused(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(BadInput, match="file is a file"):
        create_workspace(tmp_path / "file")
    with pytest.raises(BadInput, match="no workspace can be made in"):
        create_workspace(tmp_path / "file" / "below")


def test_paths_are_kept_relative_below_the_workspace_and_found_again(tmp_path, monkeypatch):
    workspace = create_workspace(tmp_path / "w")
    monkeypatch.chdir(tmp_path)
    assert workspace.recorded("csv:w/data/reviews.csv") == "csv:data/reviews.csv"
    assert workspace.recorded("csv:other.csv") == f"csv:{tmp_path}/other.csv"
    for kept, found in [("csv:data/a.csv", workspace.root / "data/a.csv"), ("csv:/far/a.csv", Path("/far/a.csv"))]:
        assert workspace.located(kept) == f"csv:{found}"
    assert workspace.recorded(workspace.located("csv:data/a.csv")) == "csv:data/a.csv"


def test_a_second_process_is_told_who_is_at_work_and_a_killed_one_frees_the_lock(tmp_path):
    workspace = create_workspace(tmp_path)
    command = [sys.executable, "-c", HOLD_LOCK, str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "held\n"
        with pytest.raises(Busy, match=f"another dynaround process is at train-model-1 in {tmp_path}"):
            with workspace.exclusively("train-model-1"):
                raise AssertionError
        with workspace.exclusively("train-model-2"):
            process.send_signal(signal.SIGKILL)
            process.wait()
    with workspace.exclusively("train-model-1"), pytest.raises(Busy), workspace.exclusively("train-model-1"):
        raise AssertionError


def test_the_lock_is_freed_by_an_error_in_the_work(tmp_path):
    workspace = create_workspace(tmp_path)
    with pytest.raises(KeyError), workspace.exclusively("release-1"):
        raise KeyError
    with workspace.exclusively("release-1"):
        assert (workspace.work / "release-1.lock").is_file()
