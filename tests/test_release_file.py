"""One line of a release in the published format, and files of such lines."""

import json
from dataclasses import replace

import pytest

from dynaround.errors import BadInput, NotFound
from dynaround.release_file import (
    from_line,
    from_validated_line,
    natural_order,
    read_examples,
    read_lines,
    text_id,
    to_line,
    write_lines,
)
from dynaround.task import Prediction, PromptData, ReleasedExample, ReleasedResponse, Span
from dynaround.tasks.sentiment import SENTIMENT

LABELS, MODEL_LABELS = SENTIMENT.labels, SENTIMENT.model_labels
ROUND_1 = "dynasent/dynasent-v1.1-round01-yelp-dev.jsonl"
ROUND_2 = "dynasent/dynasent-v1.1-round02-dynabench-dev.jsonl"

HARVESTED = ReleasedExample(
    text_id="r1-0000007",
    round=1,
    sentence="Caf\u00e9 was\nfine.",
    prediction=Prediction("neutral", {"positive": 0.25, "negative": 0.25, "neutral": 0.5}),
    responses=tuple(
        ReleasedResponse(worker, label, {})
        for worker, label in [
            ("w10", "positive"),
            ("w9", "positive"),
            ("w100", "positive"),
            ("w2", "mixed"),
            ("w1", "positive"),
        ]
    ),
    gold="positive",
    hit_ids=("y20", "y3"),
    review_id="abc",
    rating=5,
    span=Span(3, 17),
)
AUTHORED = replace(HARVESTED, text_id="r2-0000001", round=2, review_id=None, rating=None, span=None, author="w77")


def as_sets(line):
    voters = {label: set(workers) for label, workers in line["label_distribution"].items()}
    return line | {"label_distribution": voters}


@pytest.mark.parametrize("file", [ROUND_1, ROUND_2])
def test_reading_and_writing_a_published_line_gives_the_same_json(shared_data, file):
    lines = [fields for _, fields in read_lines(shared_data / file)]
    written = [to_line(from_line(line, LABELS, MODEL_LABELS), LABELS, MODEL_LABELS) for line in lines]
    assert [as_sets(line) for line in written] == [as_sets(line) for line in lines]
    assert len(lines) in (3600, 720)


@pytest.mark.parametrize("file", [ROUND_1, ROUND_2])
def test_keys_stand_in_the_published_order_at_every_level(shared_data, file):
    def order(value):
        return [(key, order(inner)) for key, inner in value.items()] if isinstance(value, dict) else None

    line = next(read_lines(shared_data / file)).fields
    assert order(to_line(from_line(line, LABELS, MODEL_LABELS), LABELS, MODEL_LABELS)) == order(line)


@pytest.mark.parametrize("file", [ROUND_1, ROUND_2])
def test_a_published_file_is_written_again_byte_for_byte(shared_data, tmp_path, file):
    source = shared_data / file
    assert write_lines(tmp_path / "again.jsonl", (fields for _, fields in read_lines(source))) in (3600, 720)
    assert (tmp_path / "again.jsonl").read_bytes() == source.read_bytes()


def test_an_authored_line_names_author_arm_and_the_target_model_of_its_round():
    prompt = PromptData("It was bad.", "r", 1, Span(0, 11))
    line = to_line(replace(AUTHORED, prompt=prompt), LABELS, MODEL_LABELS)
    assert list(line) == [
        "hit_ids", "sentence", "sentence_author", "has_prompt", "prompt_data",
        "model_1_label", "model_1_probs", "text_id", "label_distribution", "gold_label",
    ]  # fmt: skip
    assert line["sentence_author"] == "w77" and line["prompt_data"]["prompt_sentence"] == "It was bad."
    assert list(line["prompt_data"]) == ["indices_into_review_text", "review_rating", "prompt_sentence", "review_id"]


def test_without_a_prompt_the_line_says_so_and_reads_back_equal():
    line = to_line(AUTHORED, LABELS, MODEL_LABELS)
    assert line["has_prompt"] is False and line["prompt_data"] is None
    assert to_line(from_line(line, LABELS, MODEL_LABELS), LABELS, MODEL_LABELS) == line


def test_workers_stand_in_natural_order_whatever_the_order_of_arrival():
    line = to_line(HARVESTED, LABELS, MODEL_LABELS)
    backwards = replace(HARVESTED, responses=HARVESTED.responses[::-1], hit_ids=HARVESTED.hit_ids[::-1])
    assert line["label_distribution"]["positive"] == ["w1", "w9", "w10", "w100"]
    assert json.dumps(to_line(backwards, LABELS, MODEL_LABELS)) == json.dumps(line)


def test_natural_order_compares_ids_of_other_shapes_too():
    assert sorted(["w10", "x", "w9", "9", "w"], key=natural_order) == ["9", "w", "w9", "w10", "x"]


def test_text_ids_have_the_round_and_seven_digits():
    assert text_id(2, 18536) == "r2-0018536"


@pytest.mark.parametrize("part", ["review_id", "rating", "span"])
def test_a_harvested_example_without_its_source_is_refused(part):
    with pytest.raises(BadInput, match="r1-0000007 is harvested but lacks"):
        to_line(replace(HARVESTED, **{part: None}), LABELS, MODEL_LABELS)


def test_what_the_format_has_no_field_for_is_refused_not_dropped():
    with pytest.raises(BadInput, match="no place"):
        to_line(replace(HARVESTED, extra={"tree": "(2 x)"}), LABELS, MODEL_LABELS)
    with pytest.raises(BadInput, match="'angry'"):
        to_line(replace(HARVESTED, responses=(ReleasedResponse("w1", "angry", {}),)), LABELS, MODEL_LABELS)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"review_id": None}, "'review_id' is None"),
        ({"review_rating": True}, "'review_rating' is True"),
        ({"review_rating": "5"}, "'review_rating' is '5'"),
        ({"indices_into_review_text": [1]}, "'indices_into_review_text'"),
        ({"gold_label": "angry"}, "'gold_label' is 'angry', none of"),
        ({"model_0_label": "mixed"}, "'model_0_label' is 'mixed'"),
        ({"model_0_probs": {"positive": 1.0, "negative": 0.0}}, "'model_0_probs.neutral' is missing"),
        (
            {"label_distribution": {"positive": [], "negative": [], "neutral": []}},
            "'label_distribution.mixed' is missing",
        ),
        ({"label_distribution": {"positive": [1], "negative": [], "neutral": [], "mixed": []}}, "list of ids"),
        ({"target_label": "positive"}, "'target_label' does not belong here"),
        ({"sentence": "\ud83d"}, "surrogate"),
    ],
)
def test_a_malformed_or_foreign_key_is_named(change, words):
    line = to_line(HARVESTED, LABELS, MODEL_LABELS) | change
    with pytest.raises(BadInput, match=words):
        from_line(line, LABELS, MODEL_LABELS)


@pytest.mark.parametrize("key", list(to_line(HARVESTED, LABELS, MODEL_LABELS)))
def test_a_missing_key_is_named(key):
    line = to_line(HARVESTED, LABELS, MODEL_LABELS)
    del line[key]
    named = "model_K_label" if key == "model_0_label" else key
    with pytest.raises(BadInput, match=f"'{named}' is missing"):
        from_line(line, LABELS, MODEL_LABELS)


def test_prompt_data_must_fit_has_prompt():
    line = to_line(AUTHORED, LABELS, MODEL_LABELS) | {"has_prompt": True}
    with pytest.raises(BadInput, match="has_prompt"):
        from_line(line, LABELS, MODEL_LABELS)


def test_the_validated_sst_file_is_read_by_its_own_reader_only(shared_data):
    examples = read_examples(
        shared_data / "dynasent/sst-dev-validated.jsonl", lambda line: from_validated_line(line, LABELS)
    )
    assert len(examples) == 1101 and sum(example.gold is None for example in examples) == 64
    assert examples[0].extra["sst_label"] == "4" and examples[0].prediction.label == ""
    line = next(read_lines(shared_data / "dynasent/sst-dev-validated.jsonl")).fields
    with pytest.raises(BadInput, match="no model predictions"):
        from_line(line, LABELS, MODEL_LABELS)


def test_files_are_ascii_with_escapes_and_a_final_newline(tmp_path):
    write_lines(tmp_path / "train.jsonl", [to_line(HARVESTED, LABELS, MODEL_LABELS)] * 2)
    written = (tmp_path / "train.jsonl").read_bytes()
    assert b"Caf\\u00e9 was\\nfine." in written and written.isascii() and b"\r" not in written
    assert written.endswith(b"}\n") and written.count(b"\n") == 2
    assert [path.name for path in tmp_path.iterdir()] == ["train.jsonl"]


@pytest.mark.parametrize(
    ("bad", "words"),
    [
        (b"{", "is not JSON"),
        (b"", "is not JSON"),
        (b"[1]", "not one object"),
        (b'{"a": 1, "a": 2}', "occurs twice"),
        (b'{"a": NaN}', "NaN"),
        (b'{"a": "\xff"}', "not UTF-8"),
    ],
)
def test_a_line_that_is_no_object_is_refused_with_file_and_line(tmp_path, bad, words):
    (tmp_path / "dev.jsonl").write_bytes(b'{"a": 1}\n' + bad + b"\n")
    with pytest.raises(BadInput, match=rf"dev\.jsonl, line 2: .*{words}"):
        list(read_lines(tmp_path / "dev.jsonl"))


def test_a_line_that_a_task_refuses_is_named_with_file_and_line(tmp_path):
    good = to_line(HARVESTED, LABELS, MODEL_LABELS)
    write_lines(tmp_path / "dev.jsonl", [good, good, good | {"gold_label": 3}])
    with pytest.raises(BadInput, match=r"dev\.jsonl, line 3: key 'gold_label' is 3"):
        read_examples(tmp_path / "dev.jsonl", SENTIMENT.read_line)


def test_a_missing_file_is_not_found(tmp_path):
    with pytest.raises(NotFound, match=r"dev\.jsonl"):
        list(read_lines(tmp_path / "dev.jsonl"))
