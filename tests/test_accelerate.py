"""Training in several processes that `accelerate launch` starts, as it does for several cards."""

import json
import subprocess
import sys

import pytest
from safetensors.torch import load_file

from dynaround.folders import read_manifest
from dynaround.processes import Processes, Share
from dynaround.settings import create_workspace
from tests.tiny_model import ROWS

pytest.importorskip("accelerate")


def test_rows_of_a_batch_are_dealt_out_and_a_process_without_one_counts_nothing():
    alone = Processes()
    assert alone.share([4, 5, 6]) == Share([4, 5, 6], 1.0) and alone.main and alone.gathered(3) == [3]
    alone.count, alone.rank = 2, 1
    assert alone.share([4, 5, 6]) == Share([5], 1.0) and alone.share([4]) == Share([4], 0.0) and not alone.main


def launched(processes, workspace, name, *options):
    """Train under `accelerate launch`; return the manifest. "multi_gpu" means several processes, also without cards."""
    command = [sys.executable, "-m", "accelerate.commands.launch", "--num_processes", str(processes)]
    command += ["--multi_gpu"] if processes > 1 else ["--cpu"]
    command += ["--main_process_port", "29613", "-m", "dynaround", "train", "-w", str(workspace.root), "--name", name]
    done = subprocess.run([*command, *map(str, options)], capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count(f"model {name} is ready") == 1
    return read_manifest(workspace.models / name)


@pytest.mark.long
def test_without_dropout_two_processes_take_the_steps_of_one(tiny_encoder, tmp_path):
    """The last batch has one row, of which the second process has none."""
    config = tiny_encoder / "config.json"
    still = tmp_path / "encoder"
    still.mkdir()
    for file in tiny_encoder.iterdir():
        (still / file.name).write_bytes(file.read_bytes())
    told = json.loads(config.read_text()) | {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
    (still / "config.json").write_text(json.dumps(told))
    workspace = create_workspace(tmp_path / "bench")
    rows = tmp_path / "rows.csv"
    rows.write_text("text,label\n" + "".join(f"{row.text},{row.shares[0][0]}\n" for row in ROWS))
    options = ("--corpus", f"csv:{rows}", "--encoder", still, "--epochs", 2, "--batch-rows", 4)
    weights = []
    for processes in (1, 2):
        manifest = launched(processes, workspace, f"m{processes}", *options)
        assert manifest["processes"] == processes and manifest["steps"] == {"planned": 6, "taken": 6}
        weights.append(load_file(workspace.models / f"m{processes}" / "model.safetensors"))
    one, two = weights
    start = load_file(still / "model.safetensors")
    far = max((one[name] - two[name]).abs().max().item() for name in one)
    moved = max((one[f"bert.{name}"] - start[name]).abs().max().item() for name in start)
    assert far < 0.05 * moved
