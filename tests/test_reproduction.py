"""A model made again from its manifest, models beside each other, and the card in a model's folder."""

import re
from datetime import UTC, datetime

import pytest
from click.testing import CliRunner
from safetensors.torch import load_file, save_file

from dynaround import training_commands
from dynaround.ablation import ablation_lines, train_arms
from dynaround.errors import BadInput
from dynaround.folders import file_hash, read_manifest, write_json
from dynaround.model_card import model_card
from dynaround.model_training import Heard, Order, train_model
from dynaround.models import evaluate_models
from dynaround.recipe import MixtureRecipe, choices
from dynaround.reproduction import KINDS, reproduce, reproduction_lines
from dynaround.settings import create_workspace
from tests.tiny_model import ROWS, make_encoder


def refuse(spec, rejected):
    raise AssertionError(rejected)


MOMENT = datetime(2026, 11, 30, tzinfo=UTC)
QUIET = Heard(refuse, lambda done, steps: None)


@pytest.fixture
def workspace(tmp_path):
    return create_workspace(tmp_path / "bench")


def corpus(folder, times, name="rows.csv"):
    path = folder / name
    lines = [f"{row.text} {number},{row.shares[0][0]}" for number in range(times) for row in ROWS]
    path.write_text("\n".join(["text,label", *lines]) + "\n")
    return f"csv:{path}"


def ordered(spec, encoder, stop_on=(), **settings):
    usual = {"epochs": 2, "batch_rows": 8, "learning_rate": 3e-3, "threads": 1}
    return Order(MixtureRecipe(corpus=choices([spec])), usual | settings, encoder=str(encoder), stop_on=stop_on)


@pytest.fixture
def made(workspace, tiny_encoder, tmp_path):
    spec = corpus(workspace.root, 5)
    return train_model(workspace, "model-1", ordered(spec, tiny_encoder, held_out_share=0.2), QUIET)


def test_a_model_made_again_has_the_same_weights_and_nothing_differs(workspace, made):
    result = reproduce(workspace, "model-1", QUIET)
    assert result.same and result.scores is None and not any(result.different.values())
    assert list(result.different) == list(KINDS)
    assert not list((workspace.work / "reproduce").iterdir())
    assert "bit for bit" in reproduction_lines("model-1", result)[-1]


def test_what_is_different_here_is_told_by_kind_and_the_scores_are_compared(workspace, made):
    folder = workspace.models / "model-1"
    changed = {**made, "versions": {**made["versions"], "torch": "2.6.0"}}
    changed["processor"] = {**made["processor"], "capability": "AVX512"}
    write_json(folder / "manifest.json", changed)
    (workspace.root / "rows.csv").write_text((workspace.root / "rows.csv").read_text() + "one more,neutral\n")
    result = reproduce(workspace, "model-1", QUIET, threads=2)
    told = {kind: " ".join(keys) for kind, keys in result.different.items()}
    assert "rows (45 before, 46 here)" in told["inputs"] and "rows_sha256" in told["inputs"]
    assert told["torch"].startswith("versions.torch (2.6.0 before")
    assert "processor.capability (AVX512 before" in told["processor features"]
    assert told["thread count"] == "threads (1 before, 2 here)"
    assert not result.same and result.scores.rows >= 9 and 0 <= result.scores.again <= 1


def test_a_model_whose_corpus_is_gone_or_whose_files_changed_is_not_made_again(workspace, made):
    (workspace.root / "rows.csv").rename(workspace.root / "elsewhere.csv")
    with pytest.raises(Exception, match=r"rows\.csv"):
        reproduce(workspace, "model-1", QUIET)
    (workspace.models / "model-1" / "config.json").write_text("{}")
    with pytest.raises(BadInput, match=r"config\.json has changed"):
        reproduce(workspace, "model-1", QUIET)


def test_early_stopping_on_a_named_set_is_in_the_manifest_and_made_again(workspace, tiny_encoder):
    spec, dev = corpus(workspace.root, 4), corpus(workspace.root, 2, "dev.csv")
    dev_rows = (workspace.root / "dev.csv").read_text().replace("0", "8").replace("1", "9")
    (workspace.root / "dev.csv").write_text(dev_rows)
    manifest = train_model(workspace, "model-1", ordered(spec, tiny_encoder, stop_on=[dev]), QUIET)
    [chosen] = manifest["selected_on"]
    assert (chosen["use"], chosen["spec"]) == ("early stopping", "csv:dev.csv") and len(chosen["sha256"]) == 64
    assert manifest["early_stopping"]["on"] == ["csv:dev.csv"] and manifest["temperature"] is None
    assert reproduce(workspace, "model-1", QUIET).same


def test_what_a_model_is_chosen_on_is_not_trained_on(workspace, tiny_encoder):
    spec, dev = corpus(workspace.root, 3), corpus(workspace.root, 2, "dev.csv")
    with pytest.raises(BadInput, match=r"18 of 27 sentences of csv:.*rows\.csv are judged on elsewhere"):
        train_model(workspace, "model-1", ordered(spec, tiny_encoder, stop_on=[dev]), QUIET)


def test_a_continued_model_is_marked_and_judged_beside_one_from_scratch(workspace, made, tiny_encoder):
    spec = corpus(workspace.root, 5)
    order = ordered(spec, tiny_encoder, learning_rate=1e-12, epochs=1)
    arms = train_arms(workspace, "model-2", "model-1", order, QUIET)
    scratch, continued = (read_manifest(workspace.models / arm) for arm in arms)
    assert scratch["parent"] is None and continued["parent"] == {"name": "model-1", "hash": made["hash"]}
    assert scratch["rows_sha256"] == continued["rows_sha256"]
    options = {"without": (), "seed": 0, "who": "t", "now": lambda: MOMENT, "on_reject": refuse}
    summaries = evaluate_models(workspace, ["model-1", *arms], [spec], on_reading=lambda: None, **options)
    parent, _, again = summaries
    assert again["macro_f1"] == parent["macro_f1"]
    [line] = ablation_lines(arms, summaries[1:])
    assert re.search(r"scratch - continued, macro F1 [+-]0\.\d{3}  positive [+-].* neutral [+-]", line)


def test_a_model_does_not_go_on_from_one_with_another_encoder(workspace, made, tmp_path):
    other = make_encoder(tmp_path / "other", seed=5)
    order = ordered(corpus(workspace.root, 5), other)
    with pytest.raises(BadInput, match="has other labels or another encoder"):
        train_arms(workspace, "model-2", "model-1", order, QUIET)


def test_the_card_tells_of_the_manifest_and_escapes_it(workspace, made):
    card = (workspace.models / "model-1" / "README.md").read_text()
    assert card.startswith("# model\\-1\n") and "csv:rows.csv" in card and "held\\-out training rows" in card
    assert "From the pretrained encoder" in card and f"{made['temperature']['value']:.3f}" in card
    assert "README.md" not in made["files"]
    evil = {**made, "name": "<script>alert(1)</script> | [x](javascript:y)\n# no"}
    first = model_card(evil).splitlines()[0]
    assert first == r"# \<script\>alert\(1\)\</script\> \| \[x\]\(javascript:y\) \# no"


def test_the_card_of_a_continued_model_says_so_first(made):
    card = model_card({**made, "parent": {"name": "model-0", "hash": "ab12"}})
    assert "**Not from scratch**: it goes on from the weights of model\\-0 (hash ab12)" in card


def test_the_command_ends_with_1_where_nothing_differs_and_the_weights_do(workspace, made):
    asked = ["model-1", "-w", str(workspace.root)]
    done = CliRunner().invoke(training_commands.reproduce, asked)
    assert done.exit_code == 0 and "thread count: the same" in done.output and "bit for bit" in done.output
    folder = workspace.models / "model-1"
    weights = load_file(folder / "model.safetensors")
    save_file({name: tensor + 0.25 for name, tensor in weights.items()}, folder / "model.safetensors", {"format": "pt"})
    files = {**made["files"], "model.safetensors": file_hash(folder / "model.safetensors")}
    write_json(folder / "manifest.json", {**made, "files": files})
    done = CliRunner().invoke(training_commands.reproduce, asked)
    assert done.exit_code == 1 and "has other weights" in done.output
    assert re.search(r"held-out training rows: macro F1 0\.\d+ before, 0\.\d+ here", done.output)


def test_the_command_ablate_prints_both_models_on_every_set(workspace, made, tiny_encoder):
    spec, old = corpus(workspace.root, 5), corpus(workspace.root, 1, "old.csv")
    asked = [
        "-w",
        str(workspace.root),
        "--corpus",
        spec,
        "--name",
        "m",
        "--encoder",
        str(tiny_encoder),
        "--epochs",
        "1",
    ]
    asked += ["--continue-from", "model-1", "--on", spec, "--on", old]
    done = CliRunner().invoke(training_commands.ablate, asked)
    assert done.exit_code == 0, done.output
    for name in ("csv:rows.csv", "csv:old.csv"):
        assert f"{name}: scratch - continued, macro F1" in done.output
    assert done.output.count("m-scratch") == done.output.count("m-continued") == 2
