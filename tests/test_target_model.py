"""Predictions: labels by name, empty and long sentences, batches equal to single ones, near ties, what is refused."""

import json
import random
import shutil
import threading
from pathlib import Path

import pytest
import torch
from tokenizers import Tokenizer, models, pre_tokenizers, processors
from transformers import (
    AutoTokenizer,
    BertForSequenceClassification,
    PreTrainedTokenizerFast,
    RobertaConfig,
    RobertaModel,
)

from dynaround.errors import BadInput, NotFound
from dynaround.folders import MANIFEST, data_hash, file_hashes, read_manifest, require_unchanged, write_json
from dynaround.target_model import NEAR_TIE, START, TargetModel, batches_by_length, padded, threads_of
from tests.tiny_model import LABELS, WORDS, make_model

MAX_TOKENS = 128


def random_sentences(count, seed=0):
    draw = random.Random(seed)
    return [" ".join(draw.choices(WORDS, k=draw.randint(1, 40))) for _ in range(count)]


def model_of_logits(folder, encoder, id2label, logits):
    """Write a model that says the same of every sentence: a head without weights, the logits as its bias."""
    model = BertForSequenceClassification.from_pretrained(encoder, num_labels=len(logits), id2label=id2label)
    with torch.no_grad():
        model.classifier.weight.zero_()
        model.classifier.bias.copy_(torch.tensor(logits))
    model.save_pretrained(folder)
    AutoTokenizer.from_pretrained(encoder).save_pretrained(folder)
    files = dict(file_hashes(folder))
    settings = {"max_tokens": MAX_TOKENS}
    about = {"kind": "model", "name": "made", "hash": data_hash(files), "settings": settings, "files": files}
    write_json(folder / MANIFEST, about)
    return folder


@pytest.fixture(scope="module")
def folder(tiny_encoder, tmp_path_factory) -> Path:
    return make_model(tmp_path_factory.mktemp("models") / "model-1", tiny_encoder)


@pytest.fixture(scope="module")
def model(folder) -> TargetModel:
    return TargetModel(folder, LABELS, threads=1)


@pytest.fixture(scope="module")
def minilm_folder(tmp_path_factory) -> Path:
    made = make_model(
        tmp_path_factory.mktemp("models") / "minilm", Path("minilm"), epochs=8, settings={"learning_rate": 2e-4}
    )
    yield made
    shutil.rmtree(made)


@pytest.mark.parametrize(
    ("logits", "label", "probs"),
    [
        ([0.2, 1.9, 0.4], "positive", {"negative": 0.129949, "positive": 0.711332, "neutral": 0.15872}),
        ([1.1, -0.3, 2.0], "neutral", {"negative": 0.269818, "positive": 0.066536, "neutral": 0.663646}),
    ],
)
def test_prd_01_labels_come_by_name_from_the_config(tiny_encoder, tmp_path, logits, label, probs):
    names = {0: "negative", 1: "positive", 2: "neutral"}
    model = TargetModel(model_of_logits(tmp_path / "m", tiny_encoder, names, logits), LABELS)
    (prediction,) = model.predict(["the soup was good"])
    assert prediction.label == label and prediction.probs == pytest.approx(probs, abs=1e-6)


def test_prd_01_a_head_with_nameless_labels_is_refused(tiny_encoder, tmp_path):
    names = {0: "LABEL_0", 1: "LABEL_1", 2: "LABEL_2"}
    folder = model_of_logits(tmp_path / "m", tiny_encoder, names, [1.1, -0.3, 2.0])
    with pytest.raises(BadInput, match="labels LABEL_0, LABEL_1, LABEL_2, not positive, negative, neutral"):
        TargetModel(folder, LABELS)


def test_prd_02_empty_is_skipped_long_is_flagged_and_the_rest_is_as_alone(model):
    sentences = ["ok ", "slow " * 700, "   ", "", *random_sentences(60)]
    predictions = model.predict(sentences)
    assert predictions[2] is None and predictions[3] is None
    assert [p.truncated for p in predictions if p] == [False, True, *[False] * 60]
    for sentence, together in zip(sentences, predictions, strict=True):
        (alone,) = model.predict([sentence])
        if together is not None:
            assert together.probs == pytest.approx(alone.probs, abs=1e-5)
            assert sum(together.probs.values()) == pytest.approx(1, abs=1e-6)
            assert together.probs[together.label] == max(together.probs.values())


@pytest.mark.parametrize(("words", "truncated"), [(126, False), (127, True)])
def test_a_sentence_is_truncated_only_beyond_the_last_token_that_fits(model, words, truncated):
    # Two of the 128 tokens open and close the sentence.
    (at_limit,) = model.predict(["slow " * words])
    assert at_limit.truncated is truncated
    assert at_limit.probs == model.predict(["slow " * 126])[0].probs


def test_only_empty_sentences_give_only_none(model):
    assert model.predict([]) == [] and model.predict([" ", "\n\t", ""]) == [None, None, None]


def test_two_calls_are_identical_and_order_does_not_matter(model):
    sentences = random_sentences(40, seed=1)
    first = model.predict(sentences)
    assert model.predict(sentences) == first
    backwards = model.predict(sentences[::-1])[::-1]
    assert all(a.probs == pytest.approx(b.probs, abs=1e-5) for a, b in zip(first, backwards, strict=True))


def test_padding_changes_nothing_and_the_mask_is_what_sees_to_it(model):
    tokens = model._tokenizer("good soup")["input_ids"]
    inputs = padded([tokens, [5] * MAX_TOKENS], model._tokenizer.pad_token_id)
    with torch.inference_mode():
        alone = model._model(**padded([tokens], 0)).logits[0]
        beside = model._model(**inputs).logits[0]
        unmasked = model._model(inputs["input_ids"]).logits[0]
    assert torch.allclose(alone, beside, atol=1e-5) and not torch.allclose(alone, unmasked, atol=1e-3)


def test_bfloat16_decides_near_ties_as_float32_does_on_the_sentence_alone(folder, model):
    sentences = random_sentences(400, seed=2)
    low = TargetModel(folder, LABELS, precision="bfloat16", threads=1).predict(sentences)
    exact = [model.predict([sentence])[0] for sentence in sentences]
    margins = [first - second for first, second, _ in (sorted(p.probs.values(), reverse=True) for p in exact)]
    # Half of the margin: beyond it bfloat16 itself may have seen no near tie.
    near = [place for place, margin in enumerate(margins) if margin < NEAR_TIE / 2]
    assert near and all(low[place] == exact[place] for place in near)
    others = [place for place, margin in enumerate(margins) if margin > 2 * NEAR_TIE]
    assert others and all(low[place].label == exact[place].label for place in others)
    assert any(low[place].probs != exact[place].probs for place in others)


def test_minilm_in_batches_is_as_alone_and_bfloat16_stays_within_a_near_tie(minilm_folder):
    sentences = [*random_sentences(9, seed=3), "The staff could not have been kinder; we'll be back!"]
    exact, low = (TargetModel(minilm_folder, LABELS, precision=p, threads=1) for p in ("float32", "bfloat16"))
    together, rounded = exact.predict(sentences), low.predict(sentences)
    for sentence, prediction, coarse in zip(sentences, together, rounded, strict=True):
        assert prediction.probs == pytest.approx(exact.predict([sentence])[0].probs, abs=1e-5)
        assert coarse.probs == pytest.approx(prediction.probs, abs=NEAR_TIE / 2)
        assert coarse.label == prediction.label
    assert max(max(p.probs.values()) for p in together) > 0.5


def test_a_tie_to_the_last_bit_goes_to_the_first_name(tiny_encoder, tmp_path):
    names = {0: "positive", 1: "neutral", 2: "negative"}
    folder = model_of_logits(tmp_path / "m", tiny_encoder, names, [1.0, 1.0, 1.0])
    assert TargetModel(folder, LABELS).predict(["ok"])[0].label == "negative"


def test_an_encoder_of_the_roberta_kind_predicts_in_batches_as_alone(tmp_path):
    vocabulary = {word: place for place, word in enumerate(["<s>", "<pad>", "</s>", "<unk>", *WORDS])}
    words = Tokenizer(models.WordLevel(vocabulary, unk_token="<unk>"))
    words.pre_tokenizer = pre_tokenizers.Whitespace()
    words.post_processor = processors.RobertaProcessing(("</s>", 2), ("<s>", 0))
    special = {"pad_token": "<pad>", "cls_token": "<s>", "sep_token": "</s>", "unk_token": "<unk>"}
    PreTrainedTokenizerFast(tokenizer_object=words, **special).save_pretrained(tmp_path / "encoder")
    # Positions count from behind that of padding, so 130 of them read 128 tokens.
    size = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 64}
    config = RobertaConfig(vocab_size=len(vocabulary), max_position_embeddings=130, pad_token_id=1, **size)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        RobertaModel(config, add_pooling_layer=False).save_pretrained(tmp_path / "encoder")
    with pytest.raises(BadInput, match="reads at most 128 tokens, not 129"):
        make_model(tmp_path / "long", tmp_path / "encoder", settings={"max_tokens": 129})
    model = TargetModel(make_model(tmp_path / "model", tmp_path / "encoder"), LABELS, threads=1)
    sentences = ["lovely staff", "slow " * 300, *random_sentences(20)]
    together = model.predict(sentences)
    assert [p.truncated for p in together] == [False, True, *[False] * 20]
    assert max(max(p.probs.values()) for p in together) > 0.5
    for sentence, prediction in zip(sentences, together, strict=True):
        assert prediction.probs == pytest.approx(model.predict([sentence])[0].probs, abs=1e-5)


def test_threads_that_predict_at_once_get_what_one_alone_gets(model):
    sentences = ["slow " * 300, "good soup", "awful cold soup"]
    expected = model.predict(sentences)
    wrong = []

    def predict_often():
        try:
            wrong.extend(found for _ in range(20) if (found := model.predict(sentences)) != expected)
        except RuntimeError as error:
            wrong.append(error)

    threads = [threading.Thread(target=predict_often) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_batches_hold_every_sentence_once_within_the_budget():
    draw = random.Random(4)
    lengths = [draw.randint(1, 128) for _ in range(500)]
    batches = list(batches_by_length(lengths, 1000))
    assert sorted(place for batch in batches for place in batch) == list(range(500))
    assert all(len(batch) * max(lengths[place] for place in batch) <= 1000 for batch in batches)
    assert len(batches) < 1.3 * sum(lengths) / 1000 + 1
    assert list(batches_by_length([5, 2000], 1000)) == [[0], [1]]


def test_padding_of_a_batch_costs_no_more_than_one_of_its_own():
    assert list(batches_by_length([60, 9, 10, 11, 61], 1000)) == [[1, 2, 3], [0, 4]]
    draw = random.Random(5)
    lengths = [draw.randint(5, 60) for _ in range(16)]
    for batch in batches_by_length(lengths, 1000):
        inside = [lengths[place] for place in batch]
        assert sum(max(inside) - length for length in inside) <= START


def test_the_thread_count_is_put_back_also_after_an_error():
    before = torch.get_num_threads()
    with pytest.raises(KeyError), threads_of(before + 1) as count:
        assert count == torch.get_num_threads() == before + 1
        raise KeyError
    assert torch.get_num_threads() == before


def test_a_folder_without_manifest_is_refused_as_incomplete(folder, tmp_path):
    copy = shutil.copytree(folder, tmp_path / "copy")
    (copy / MANIFEST).unlink()
    with pytest.raises(NotFound, match=r"copy has no manifest\.json: it is incomplete"):
        TargetModel(copy, LABELS)


def test_a_manifest_of_another_kind_is_refused(folder, tmp_path):
    copy = shutil.copytree(folder, tmp_path / "copy")
    write_json(copy / MANIFEST, read_manifest(folder) | {"kind": "release"})
    with pytest.raises(BadInput, match=r"copy is no model folder \(its manifest says 'release'\)"):
        TargetModel(copy, LABELS)


@pytest.mark.parametrize("key", ["name", "hash", "files", "settings"])
def test_a_manifest_without_what_a_model_is_known_by_is_refused(folder, tmp_path, key):
    copy = shutil.copytree(folder, tmp_path / "copy")
    manifest = read_manifest(copy)
    del manifest[key]
    write_json(copy / MANIFEST, manifest)
    with pytest.raises(BadInput, match=f"manifest.json does not say {key} as that of a model does; train it again"):
        TargetModel(copy, LABELS)


def test_a_model_folder_with_only_a_pickle_is_refused(folder, tmp_path):
    copy = shutil.copytree(folder, tmp_path / "copy")
    (copy / "model.safetensors").rename(copy / "pytorch_model.bin")
    with pytest.raises(NotFound, match=r"copy has no model\.safetensors; only safetensors are loaded"):
        TargetModel(copy, LABELS)


@pytest.mark.parametrize("content", ["{", "[]", '"kind"'])
def test_a_damaged_manifest_is_refused(folder, tmp_path, content):
    copy = shutil.copytree(folder, tmp_path / "copy")
    (copy / MANIFEST).write_text(content)
    with pytest.raises(BadInput, match=r"manifest\.json is damaged"):
        TargetModel(copy, LABELS)


def test_a_model_that_is_replaced_while_it_is_loaded_never_answers_under_the_old_hash(
    folder, tiny_encoder, tmp_path, monkeypatch
):
    copy, other = shutil.copytree(folder, tmp_path / "copy"), make_model(tmp_path / "other", tiny_encoder, epochs=1)

    def replaced_once_checked(place, files):
        require_unchanged(place, files)
        shutil.copytree(other, place, dirs_exist_ok=True)

    monkeypatch.setattr("dynaround.target_model.require_unchanged", replaced_once_checked)
    with pytest.raises(BadInput, match="copy was replaced by another model while it was loaded"):
        TargetModel(copy, LABELS)


def test_a_file_changed_after_training_is_named(folder, tmp_path):
    copy = shutil.copytree(folder, tmp_path / "copy")
    path = copy / "config.json"
    swapped = json.loads(path.read_text()) | {"id2label": {"0": "negative", "1": "positive", "2": "neutral"}}
    path.write_text(json.dumps(swapped))
    with pytest.raises(BadInput, match=r"config\.json has changed since its manifest\.json was written"):
        TargetModel(copy, LABELS)
