"""What a model is trained on: rows of each label mode, every dropped and rejected one counted, real corpora."""

import json
from collections import Counter

import pytest

from dynaround.corpus.labelled import LabelledSentence
from dynaround.errors import BadInput
from dynaround.folders import file_hash, write_json
from dynaround.mixture import mix, plain_row, training_rows
from dynaround.mixture_report import CorpusReport
from dynaround.tasks.sentiment import SENTIMENT

COLUMNS = ("positive", "negative", "neutral", "mixed")
VOTES = {"i1": [5, 0, 0, 0], "i2": [3, 0, 1, 1], "i3": [0, 4, 0, 1], "i4": [2, 2, 1, 0], "i5": [1, 1, 0, 3]}


def voted():
    for name, votes in VOTES.items():
        responses = tuple(label for label, count in zip(COLUMNS, votes, strict=True) for _ in range(count))
        yield LabelledSentence(name, SENTIMENT.gold(responses).label, responses, None, name)


def rows_of(mode, mixed):
    report = CorpusReport("spec", "file", "hash")
    return [row for item in voted() for row in training_rows(item, SENTIMENT, mode, mixed, report)], report


def refuse(spec, rejected):
    raise AssertionError(f"{spec}: {rejected}")


def table(tmp_path, *lines, name="corpus.csv"):
    path = tmp_path / name
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def test_trn_01_gold_labels_of_the_case():
    gold = {item.identity: item.gold for item in voted()}
    assert gold == {"i1": "positive", "i2": "positive", "i3": "negative", "i4": None, "i5": "mixed"}


def test_trn_01_majority_mode_gives_three_rows_and_counts_what_it_drops():
    rows, report = rows_of("majority", "both")
    assert rows == [plain_row("i1", "positive"), plain_row("i2", "positive"), plain_row("i3", "negative")]
    assert (report.dropped_no_majority, report.dropped_mixed) == (1, 1)


@pytest.mark.parametrize(("mixed", "counts", "dropped"), [("drop", [11, 7, 2], 5), ("both", [16, 12, 2], 0)])
def test_trn_01_vote_modes_keep_items_without_majority(mixed, counts, dropped):
    rows, report = rows_of("distribution", mixed)
    found = Counter(label for row in rows for label, _ in row.shares)
    assert [found[label] for label in SENTIMENT.model_labels] == counts and found.total() == sum(counts)
    assert "i4" in {row.text for row in rows}
    assert (report.dropped_no_majority, report.dropped_mixed) == (0, dropped)


def test_trn_01_a_class_without_rows_stops_with_its_name(tmp_path):
    path = table(tmp_path, "text,label", "good soup,positive", "cold soup,negative", "so so,mixed")
    with pytest.raises(BadInput, match=rf"csv:{path} has no row labelled neutral \(2 rows in all\)"):
        mix([f"csv:{path}"], SENTIMENT, on_reject=refuse)


def test_a_mixture_reports_each_corpus_and_lists_the_rejected(tmp_path):
    first = table(
        tmp_path, "text,label,review_id", "good,positive,v1", "bad,negative,v2", "so so,mixed,v3", "ok,fine,v4"
    )
    second = table(tmp_path, "text,label", "on monday,nosentiment", " ,neutral", name="second.csv")
    rejects = []
    specs = [f"csv:{first}", f"csv:{second}"]
    found = mix(specs, SENTIMENT, on_reject=lambda spec, r: rejects.append((spec, r.line)), recorded=str.upper)
    assert found.rows == [
        plain_row("good", "positive"),
        plain_row("bad", "negative"),
        plain_row("on monday", "neutral"),
    ]
    assert rejects == [(specs[0], 5), (specs[1], 3)]
    assert found.reports[0] == CorpusReport(
        spec=specs[0].upper(),
        file="corpus.csv",
        sha256=file_hash(first),
        sentences=3,
        rejected=1,
        dropped_mixed=1,
        usable=2,
        rows_read=2,
        labels_read={"positive": 1, "negative": 1, "neutral": 0},
        rows=2,
        labels={"positive": 1, "negative": 1, "neutral": 0},
        share=0.666667,
    )
    assert (found.reports[1].rows, found.reports[1].rejected) == (1, 1)


def test_review_ids_are_those_that_a_row_comes_from(tmp_path):
    lines = ["good,positive,v1", "bad,negative,v2", "so so,mixed,v3", "open,neutral,v2", "closed,neutral,"]
    path = table(tmp_path, "text,label,review_id", *lines)
    assert mix([f"csv:{path}"], SENTIMENT, on_reject=refuse).review_ids == {"v1", "v2"}


def test_an_empty_corpus_is_refused(tmp_path):
    empty, headed = tmp_path / "empty.csv", table(tmp_path, "text,label")
    empty.touch()
    with pytest.raises(BadInput, match=r"empty\.csv is empty"):
        mix([f"csv:{empty}"], SENTIMENT, on_reject=refuse)
    with pytest.raises(BadInput):
        mix([f"csv:{headed}"], SENTIMENT, on_reject=refuse)


def test_a_corpus_without_responses_gives_its_gold_label_in_distribution_mode(tmp_path):
    path = table(tmp_path, "text,label", "good,positive", "bad,negative", "monday,neutral", "so so,mixed")
    found = mix([f"csv:{path}"], SENTIMENT, mode="distribution", on_reject=refuse)
    assert found.reports[0].labels == {"positive": 1, "negative": 1, "neutral": 1}
    assert found.reports[0].dropped_mixed == 1


def released(folder, kind="release"):
    """Write one same line a label into each file of a folder with a manifest."""
    folder.mkdir()
    for split in ("train", "dev", "test", "withheld"):
        lines = []
        for label in SENTIMENT.model_labels:
            given = dict.fromkeys(COLUMNS, []) | {label: ["w1", "w2", "w3", "w4", "w5"]}
            line = {"sentence": label, "text_id": split, "gold_label": label, "label_distribution": given}
            lines.append(json.dumps(line) + "\n")
        (folder / f"{split}.jsonl").write_text("".join(lines))
    write_json(folder / "manifest.json", {"kind": kind})
    return folder


@pytest.mark.parametrize("split", ["dev", "test", "withheld"])
@pytest.mark.parametrize("spec", ["release:{}#{}", "release:{}/{}.jsonl", "dynasent:{}/{}.jsonl", "jsonl:{}/{}.jsonl"])
def test_what_a_release_keeps_from_training_is_refused_however_it_is_named(tmp_path, spec, split):
    folder = released(tmp_path / "round-1")
    with pytest.raises(BadInput, match=f"is the {split} file of a release, .*train split: release:{folder}"):
        mix([f"release:{folder}", spec.format(folder, split)], SENTIMENT, on_reject=refuse)


def test_a_link_to_a_withheld_file_is_refused_too(tmp_path):
    link = tmp_path / "more.jsonl"
    link.symlink_to(released(tmp_path / "round-1") / "withheld.jsonl")
    with pytest.raises(BadInput, match="withheld file of a release"):
        mix([f"dynasent:{link}"], SENTIMENT, on_reject=refuse)


@pytest.mark.parametrize("name", ["train", "dev"])
def test_a_train_split_and_a_dev_file_that_is_of_no_release_of_ours_may_be_trained_on(tmp_path, name):
    folder = released(tmp_path / "data", kind="release" if name == "train" else "page")
    assert len(mix([f"dynasent:{folder}/{name}.jsonl"], SENTIMENT, on_reject=refuse).rows) == 3


def test_sst_roots_are_3610_3310_1624(shared_data):
    found = mix([f"sst:{shared_data / 'sst'}"], SENTIMENT, on_reject=refuse)
    assert found.reports[0].labels == {"positive": 3610, "negative": 3310, "neutral": 1624}
    assert found.reports[0].file == "train.txt" and found.review_ids == set()


@pytest.mark.parametrize(("name", "rows"), [("round01-yelp", 18_430), ("round02-dynabench", 3_702)])
def test_distribution_rows_of_the_published_files(shared_data, name, rows):
    path = shared_data / f"dynasent/dynasent-v1.1-{name}-dev.jsonl"
    found = mix([f"dynasent:{path}"], SENTIMENT, mode="distribution", mixed="both", on_reject=refuse)
    assert len(found.rows) == found.reports[0].rows == rows
    lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    reviews = {line.get("review_id") or line["prompt_data"]["review_id"] for line in lines}
    assert found.review_ids == reviews - {None}
    # Every label is a third of dev.
    majority = mix([f"dynasent:{path}"], SENTIMENT, on_reject=refuse).reports[0]
    assert set(majority.labels.values()) == {majority.rows // 3} and majority.rows == majority.sentences
