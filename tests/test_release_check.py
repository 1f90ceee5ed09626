"""The invariants of a release: what each check catches, and what the published files hold."""

import json
from dataclasses import replace
from itertools import product

import pytest

from dynaround.errors import BadInput, NotFound
from dynaround.folders import file_hashes, write_json
from dynaround.models import check_paths
from dynaround.release_check import CHECKS, check_release, published_split, read_release
from dynaround.release_file import write_lines
from dynaround.task import Prediction, PromptData, ReleasedExample, ReleasedResponse, Span
from dynaround.tasks.sentiment import SENTIMENT

LABELS, MODEL_LABELS = SENTIMENT.labels, SENTIMENT.model_labels
PROMPT = PromptData("It was bad.", "shared", 1, Span(0, 11))


def released(number, gold="positive", model="positive", rating=5, winning=4):
    sentence = f"Sentence number {number}."
    labels = [gold] * winning + ["neutral" if gold == "mixed" else "mixed"] * (5 - winning)
    probs = dict.fromkeys(MODEL_LABELS, 0.25) | {model: 0.5}
    return ReleasedExample(
        text_id=f"r1-{number:07d}",
        round=1,
        sentence=sentence,
        prediction=Prediction(model, probs),
        responses=tuple(ReleasedResponse(f"w{worker}", label, {}) for worker, label in enumerate(labels)),
        gold=gold,
        hit_ids=("y1",),
        review_id=f"review {number}",
        rating=rating,
        span=Span(0, len(sentence)),
    )


def split(start):
    cells = product(MODEL_LABELS, MODEL_LABELS, (1, 5))
    return [released(start + number, *cell) for number, cell in enumerate(cells)]


@pytest.fixture
def release():
    train = [released(500 + number, "mixed", winning=3) for number in range(4)]
    return {"train": train, "dev": split(0), "test": split(100), "withheld": [released(900)]}


def statuses(splits):
    return {result.name: result.status for result in check_release(splits, LABELS, MODEL_LABELS)}


def none_fails(results):
    return all(result.status != "fails" for result in results)


def authored(example, prompt):
    return replace(example, author="w99", prompt=prompt, review_id=None, rating=None, span=None)


def test_a_good_release_may_be_finished(release):
    results = check_release(release, LABELS, MODEL_LABELS)
    assert none_fails(results) and len(results) == len(CHECKS) == 25
    unchecked = {result.name for result in results if result.status == "could not be checked"}
    assert {result.status for result in results} == {"holds", "could not be checked"}
    assert unchecked == {
        "prompts in one split",
        "prompts of dev and test unique",
        "dev and test from the prompt arm",
        "authors not their own validators",
    }


def changed(split, **change):
    return lambda release: release[split].__setitem__(0, replace(release[split][0], **change))


def with_sentence(split, sentence):
    return changed(split, sentence=sentence, span=Span(0, len(sentence)))


def with_prompt_rating(release, rating):
    release["train"][0] = authored(release["train"][0], PROMPT._replace(rating=rating))


FIVE = tuple(ReleasedResponse(f"w{number}", "positive", {}) for number in range(5))
PROBS = {"positive": 0.5, "negative": 0.25, "neutral": 0.25}


@pytest.mark.parametrize(
    ("breaking", "name"),
    [
        (lambda release: release["test"].pop(), "sizes"),
        (lambda release: release["test"].clear(), "sizes"),
        (changed("dev", text_id="r1-7"), "text ids"),
        (changed("dev", text_id="r2-0000000"), "text ids"),
        (changed("withheld", text_id="r1-0000500"), "text ids unique"),
        (with_sentence("train", " \n"), "sentences filled"),
        (with_sentence("train", "Sentence number 501."), "sentences unique"),
        (with_sentence("train", "Sentence number 1."), "sentences unique"),
        (with_sentence("train", "Sentence  number 1. "), "folded texts unique"),
        (with_sentence("train", "SENTENCE number 1!"), "group texts in one split"),
        (changed("train", review_id="review 1"), "reviews in one split"),
        (changed("train", review_id="review 900"), "withheld apart from train"),
        (with_sentence("train", "sentence number 900"), "withheld apart from train"),
        (changed("train", responses=FIVE[:4]), "five responses"),
        (changed("dev", responses=(*FIVE[:4], FIVE[0])), "five responses"),
        (changed("dev", responses=(*FIVE[:4], ReleasedResponse("A1XYZ", "positive", {}))), "worker ids"),
        (changed("train", gold=None), "gold rule"),
        (changed("train", gold="positive"), "gold rule"),
        (changed("dev", gold="mixed"), "dev and test gold"),
        (changed("dev", responses=released(0, winning=3).responses), "dev and test majority"),
        (changed("dev", prediction=Prediction("negative", PROBS)), "gold x prediction cells"),
        (changed("dev", prediction=Prediction("negative", PROBS)), "target model at chance"),
        (changed("train", hit_ids=("y1", "3XYZ")), "hit ids"),
        (changed("train", rating=6), "ratings"),
        (lambda release: with_prompt_rating(release, 0), "ratings"),
        (changed("dev", span=Span(5, 9)), "spans"),
        (changed("dev", prediction=Prediction("negative", PROBS)), "probabilities"),
        (changed("dev", prediction=Prediction("positive", PROBS | {"neutral": 0.2})), "probabilities"),
        (changed("dev", prediction=Prediction("positive", {"positive": 1.0})), "probabilities"),
    ],
)
def test_a_broken_rule_is_found_and_stops_the_release(release, breaking, name):
    assert statuses(release)[name] == "holds"
    breaking(release)
    results = check_release(release, LABELS, MODEL_LABELS)
    assert {result.name: result.status for result in results}[name] == "fails"
    assert not none_fails(results)


def test_a_cell_absent_from_dev_and_test_alike_fails(release):
    for name in ("dev", "test"):
        cell = ("neutral", "positive")
        release[name] = [e for e in release[name] if (e.gold, e.prediction.label) != cell]
    result = next(r for r in check_release(release, LABELS, MODEL_LABELS) if r.name == "gold x prediction cells")
    assert result.status == "fails"
    assert "2 of 18 cells" in result.detail and "dev gold=neutral, model=positive has 0" in result.detail


def test_cells_equal_within_but_not_between_dev_and_test_fail(release):
    release["test"] += [replace(e, text_id=f"r1-1{e.text_id[-6:]}") for e in split(200)]
    assert statuses(release)["gold x prediction cells"] == "fails"


def test_uneven_ratings_are_a_note_and_stop_nothing(release):
    release["dev"] = [replace(example, rating=1) for example in release["dev"]]
    assert statuses(release)["gold x rating cells"] == "note"
    assert none_fails(check_release(release, LABELS, MODEL_LABELS))


def test_a_sentence_without_prompt_or_with_a_repeated_one_stays_out_of_dev(release):
    release["dev"][0] = authored(release["dev"][0], None)
    release["dev"][1] = authored(release["dev"][1], PROMPT)
    assert statuses(release)["dev and test from the prompt arm"] == "fails"
    assert statuses(release)["prompts of dev and test unique"] == "holds"
    release["train"][0] = authored(release["train"][0], PROMPT)
    assert statuses(release)["prompts of dev and test unique"] == "fails"
    assert statuses(release)["prompts in one split"] == statuses(release)["reviews in one split"] == "fails"


def test_authors_who_validate_themselves_are_found(release):
    release["train"][0] = authored(release["train"][0], None)
    assert statuses(release)["authors not their own validators"] == "holds"
    release["train"][0] = replace(release["train"][0], author="w3")
    assert statuses(release)["authors not their own validators"] == "fails"


def test_withheld_examples_may_share_a_review_with_dev(release):
    release["withheld"] = [replace(released(900), review_id="review 1")]
    assert none_fails(check_release(release, LABELS, MODEL_LABELS))


def test_the_detail_counts_offenders_and_names_the_first(release):
    release["dev"] = [replace(example, span=Span(0, 1)) for example in release["dev"]]
    detail = next(r.detail for r in check_release(release, LABELS, MODEL_LABELS) if r.name == "spans")
    assert "18 of 41" in detail and "r1-0000000, r1-0000001" in detail and "and 13 more" in detail


@pytest.fixture
def folder(release, tmp_path):
    """The good release as a folder of ours."""
    made = tmp_path / "round-1"
    made.mkdir()
    for name, examples in release.items():
        write_lines(made / f"{name}.jsonl", [SENTIMENT.release_line(example) for example in examples])
    return sealed(made)


def sealed(folder, **about):
    write_json(folder / "manifest.json", {"kind": "release", "files": dict(file_hashes(folder)), **about})
    return folder


def failing(*paths):
    return {result.name: result.detail for result in check_paths(paths, None) if result.status == "fails"}


def test_a_folder_of_ours_is_checked_with_its_hashes_and_the_order_of_its_keys(folder):
    found = {result.name: result for result in check_paths([folder], None)}
    assert found["files as released"].status == found["order of keys"].status == "holds"
    assert found["order of keys"].detail.startswith("all 41 lines of ")
    assert len(found) == len(CHECKS) + 2 and none_fails(found.values())


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda folder: (folder / "train.jsonl").write_bytes(b""), "train.jsonl has changed"),
        (lambda folder: (folder / "withheld.jsonl").unlink(), "withheld.jsonl is missing"),
        (lambda folder: write_json(folder / "manifest.json", {"kind": "release"}), "holds no hashes of files"),
        (lambda folder: sealed(folder, files={"train.jsonl": "0"}), "no hash of dev.jsonl, test.jsonl, withheld.jsonl"),
    ],
)
def test_a_release_that_is_not_what_was_released_fails_as_a_check(folder, change, told):
    change(folder)
    assert told in failing(folder)["files as released"]


def test_a_changed_file_that_cannot_be_read_any_more_fails_as_a_check(folder):
    (folder / "dev.jsonl").write_text('{"cut')
    assert "dev.jsonl, line 1: is not JSON" in failing(folder)["lines of the format"]
    sealed(folder)
    with pytest.raises(BadInput, match=r"dev\.jsonl, line 1"):
        check_paths([folder], None)


@pytest.mark.parametrize("inside", [None, "label_distribution", "model_0_probs"])
def test_keys_in_another_order_fail(folder, inside):
    lines = [json.loads(line) for line in (folder / "test.jsonl").read_text().splitlines()]
    turned = dict(reversed(lines[2].items())) if inside is None else dict(lines[2])
    if inside is not None:
        turned[inside] = dict(reversed(turned[inside].items()))
    write_lines(folder / "test.jsonl", [*lines[:2], turned, *lines[3:]])
    assert failing(sealed(folder)).keys() == {"order of keys"}
    assert "1 of 41 break this (r1-0000102)" in failing(folder)["order of keys"]


def test_a_folder_without_a_manifest_holds_published_files(folder):
    (folder / "manifest.json").unlink()
    (folder / "dev.jsonl").rename(folder / "dynasent-v1.1-round01-yelp-dev.jsonl")
    results = check_paths([folder], None)
    assert len(results) == len(CHECKS) and none_fails(results)
    assert "train 4, withheld 1" in next(r.detail for r in results if r.name == "sizes")


def test_a_folder_with_nothing_to_check_is_refused(tmp_path):
    with pytest.raises(NotFound, match="has no manifest.json and no .jsonl file"):
        check_paths([tmp_path], None)
    with pytest.raises(NotFound, match="is no release: there is no such file as train.jsonl"):
        check_paths([sealed(tmp_path)], None)


@pytest.mark.parametrize(
    ("name", "split"),
    [
        ("dynasent-v1.1-round01-yelp-dev", "dev"),
        ("round_2.Test", "test"),
        ("train", "train"),
        ("withheld", "withheld"),
        ("devices-latest", "devices-latest"),
        ("sst-development", "sst-development"),
    ],
)
def test_a_split_is_a_whole_word_of_a_name(tmp_path, name, split):
    assert published_split(tmp_path / "test-files" / f"{name}.jsonl", []) == split


def test_rounds_are_checked_apart_and_share_no_text_id(folder, tmp_path):
    second = tmp_path / "second-dev.jsonl"
    lines = [json.loads(line) for line in (folder / "dev.jsonl").read_text().splitlines()]
    text = "".join(json.dumps(line) + "\n" for line in lines[:9]).replace("model_0", "model_1")
    second.write_text(text)
    found = {result.name: result for result in check_paths([folder, second], None)}
    assert len(found) == 2 + 2 * len(CHECKS) + 1
    assert found["round 1: gold x prediction cells"].detail == "all 18 cells have 2"
    assert found["round 1: sizes"].status == "holds"
    assert found["round 2: sizes"].status == "could not be checked"
    assert found["round 2: text ids"].status == "fails"
    assert "9 of 41 break this" in found["all: text ids unique"].detail


def test_a_round_with_an_empty_dev_file_is_told(folder):
    write_lines(folder / "dev.jsonl", [])
    assert "not of one size, or empty" in failing(sealed(folder))["sizes"]


def test_nothing_given_is_nothing_checked():
    assert set(statuses({}).values()) == {"could not be checked"}


NEEDS_MORE_SPLITS = {
    "sizes",
    "group texts in one split",
    "reviews in one split",
    "prompts in one split",
    "withheld apart from train",
}
NEEDS_AUTHORS = {
    "prompts of dev and test unique",
    "dev and test from the prompt arm",
    "authors not their own validators",
}


@pytest.fixture(scope="session")
def round_1(shared_data):
    return read_release(shared_data / "dynasent/dynasent-v1.1-round01-yelp-dev.jsonl", SENTIMENT)


@pytest.fixture(scope="session")
def round_2(shared_data):
    return read_release(shared_data / "dynasent/dynasent-v1.1-round02-dynabench-dev.jsonl", SENTIMENT)


@pytest.mark.parametrize(
    ("rounds", "unchecked"),
    [
        (("round_1",), NEEDS_MORE_SPLITS | NEEDS_AUTHORS),
        (("round_2",), NEEDS_MORE_SPLITS | {"gold x rating cells"}),
        (("round_1", "round_2"), NEEDS_MORE_SPLITS),
    ],
)
def test_published_dev_files_hold_all_that_one_split_can_show(request, rounds, unchecked):
    dev = [example for name in rounds for example in request.getfixturevalue(name)]
    found = statuses({"dev": dev})
    assert {name for name, status in found.items() if status == "could not be checked"} == unchecked
    assert {status for name, status in found.items() if name not in unchecked} == {"holds"}


def test_the_published_files_in_one_call_are_each_what_they_are(shared_data):
    names = ("dynasent-v1.1-round01-yelp-dev", "dynasent-v1.1-round02-dynabench-dev", "sst-dev-validated")
    results = check_paths([shared_data / f"dynasent/{name}.jsonl" for name in names], None)
    found = {result.name: result for result in results}
    assert found["round 1: gold x prediction cells"].detail == "all 9 cells have 400"
    assert found["round 2: gold x prediction cells"].detail == "all 9 cells have 80"
    assert found["validated SST: dev and test gold"].status == "could not be checked"
    assert found["all: text ids unique"].detail == "all 5421 text ids are used once"
    failed = {name for name, result in found.items() if result.status == "fails"}
    assert failed == {"validated SST: sentences unique", "validated SST: folded texts unique"}
    folder = check_paths([shared_data / "dynasent"], None)
    assert sorted(folder) == sorted(results)


def test_published_cells_have_the_published_sizes(round_1, round_2):
    details = {
        name: {result.name: result.detail for result in check_release({"dev": dev}, LABELS, MODEL_LABELS)}
        for name, dev in {"1": round_1, "2": round_2}.items()
    }
    assert details["1"]["gold x prediction cells"] == "all 9 cells have 400"
    assert details["1"]["gold x rating cells"] == "all 6 cells have 600"
    assert details["2"]["gold x prediction cells"] == "all 9 cells have 80"
    assert "all 1280 worker ids" in details["1"]["worker ids"]


def test_halves_of_a_published_file_share_reviews_and_only_our_rules_mind(round_1):
    results = check_release({"dev": round_1[:1800], "train": round_1[1800:]}, LABELS, MODEL_LABELS)
    failed = {result.name: result for result in results if result.status == "fails"}
    assert failed["reviews in one split"].required_by == "dynaround rules"
    assert "reviews of sentences or prompts in train and dev" in failed["reviews in one split"].detail
    assert not none_fails(results)


def test_the_validated_sst_file_shows_its_one_duplicate_and_keeps_the_gold_rule(shared_data):
    sst = read_release(shared_data / "dynasent/sst-dev-validated.jsonl", SENTIMENT)
    results = {r.name: r for r in check_release({"validated": sst}, LABELS, MODEL_LABELS)}
    holding = {name for name, result in results.items() if result.status == "holds"}
    assert holding == {
        "text ids",
        "text ids unique",
        "sentences filled",
        "five responses",
        "worker ids",
        "hit ids",
        "gold rule",
    }
    assert "sst-dev-validate-0000625 = sst-dev-validate-0000664" in results["sentences unique"].detail
    assert results["probabilities"].status == "could not be checked"
