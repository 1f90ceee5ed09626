"""Reading labelled corpora: trees, tables, JSON lines, DynaSent files and releases."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from dynaround.corpus.labelled import LabelledSentence, labelled_source, read_labelled
from dynaround.corpus.rejects import ReadSummary, Rejected
from dynaround.corpus.trees import TreeNode, tree_nodes
from dynaround.errors import BadInput, NotFound
from dynaround.tasks.sentiment import SENTIMENT


def read(spec: str) -> tuple[list[LabelledSentence], list[Rejected]]:
    rejects: list[Rejected] = []
    sentences = list(read_labelled(spec, label_of=SENTIMENT.label_of, on_reject=rejects.append))
    return sentences, rejects


def written(path: Path, content: str) -> Path:
    path.write_bytes(content.encode())
    return path


RELEASED = {
    "sentence": "Good food. ",
    "text_id": "r1-0000001",
    "gold_label": None,
    "label_distribution": {"positive": ["w1", "w2"], "negative": ["w3"], "neutral": [], "mixed": ["w4", "w5"]},
    "review_id": "abc",
}


@pytest.mark.parametrize(
    ("name", "positive", "negative", "neutral"),
    [("train", 3610, 3310, 1624), ("dev", 444, 428, 229), ("test", 909, 912, 389)],
)
def test_sst_roots_count_as_published(shared_data: Path, name: str, positive: int, negative: int, neutral: int) -> None:
    sentences, rejects = read(f"sst:{shared_data / 'sst' / f'{name}.txt'}")
    counts = Counter(sentence.gold for sentence in sentences)
    assert counts == {"positive": positive, "negative": negative, "neutral": neutral}
    assert rejects == []


def test_an_sst_folder_means_its_training_file(shared_data: Path) -> None:
    sentences, _ = read(f"sst:{shared_data / 'sst'}")
    assert sentences[0].identity == "train.txt:1"
    assert sentences[0].text.startswith("The Rock is destined to be the 21st Century 's new `` Conan ''")
    assert len(sentences) == 8544


def test_sst_tokens_are_kept_as_they_stand(tmp_path: Path) -> None:
    tree = "(4 (2 (2 -LRB-) (2 A\\/B)) (3 8\u00a01\\/2))"
    sentences, _ = read(f"sst:{written(tmp_path / 'x.txt', tree + chr(10))}")
    assert sentences == [LabelledSentence("-LRB- A\\/B 8\u00a01\\/2", "positive", (), None, "x.txt:1")]


@pytest.mark.parametrize(
    "tree",
    [
        "(5 (2 a) (2 b))",
        "(3 (2 a) (2 b)",
        "(3 (2 a) (2 b)))",
        "(3 (2 a) (2 b)) (3 c)",
        "(3 (2 a))",
        "(3 (2 a) (2 b) (2 c))",
        "(3 a b)",
        "(3 a (2 b))",
        "(3 )",
        "3 a",
        "(",
        ")",
        "plain text",
        "(3 " * 5000,
    ],
)
def test_a_malformed_tree_is_rejected_with_its_line(tmp_path: Path, tree: str) -> None:
    path = written(tmp_path / "train.txt", f"(3 good)\n\n{tree}\n(1 bad)\r\n")
    sentences, rejects = read(f"sst:{path}")
    assert [(s.text, s.gold, s.identity) for s in sentences] == [
        ("good", "positive", "train.txt:1"),
        ("bad", "negative", "train.txt:4"),
    ]
    assert [line for line, _ in rejects] == [3]
    assert rejects[0].reason.startswith("malformed tree")


def test_a_tree_thousands_deep_is_no_trouble() -> None:
    words, nodes = tree_nodes("(3 (2 a) " * 5000 + "(1 b)" + ")" * 5000)
    assert (nodes[0].label, len(words), len(nodes)) == (3, 5001, 10001)


def test_phrases_are_the_nodes_of_the_trees_each_text_and_label_once(tmp_path: Path) -> None:
    tree = "(3 (2 Not) (1 (2 so) (0 (2 not) (3 good))))"
    assert tree_nodes(tree)[1][2] == TreeNode(1, 1, 4)
    path = written(tmp_path / "train.txt", f"{tree}\n(1 (2 so)\n(1 (2 so) (1 good))\n")
    rejects: list[Rejected] = []
    found = read_labelled(f"sst:{path}", label_of=SENTIMENT.label_of, on_reject=rejects.append, unit="phrases")
    assert [(s.text, s.gold, s.identity.partition(":")[2]) for s in found] == [
        ("Not so not good", "positive", "1.1"),
        ("Not", "neutral", "1.2"),
        ("so not good", "negative", "1.3"),
        ("so", "neutral", "1.4"),
        ("not good", "negative", "1.5"),
        ("not", "neutral", "1.6"),
        ("good", "positive", "1.7"),
        ("so good", "negative", "3.1"),
        ("good", "negative", "3.3"),
    ]
    assert [line for line, _ in rejects] == [2]


def test_unique_phrases_of_sst_count_as_published(shared_data: Path) -> None:
    spec = f"sst:{shared_data / 'sst'}"
    found = list(read_labelled(spec, label_of=SENTIMENT.label_of, on_reject=pytest.fail, unit="phrases"))
    assert Counter(s.gold for s in found) == {"positive": 42_672, "negative": 34_944, "neutral": 81_658}
    assert len({s.text for s in found}) == len(found) == len({s.identity for s in found})


def test_only_trees_have_phrases(tmp_path: Path) -> None:
    path = written(tmp_path / "a.csv", "text,label\ngood,positive\n")
    with pytest.raises(BadInput, match="has no phrases"):
        read_labelled(f"csv:{path}", label_of=SENTIMENT.label_of, on_reject=pytest.fail, unit="phrases")


@pytest.mark.parametrize(
    ("kind", "content"),
    [
        (
            "csv",
            'Sentence,gold_label,review_id\n"Good, food",positive,r1\nFine,nosentiment,\nOdd,unsure,r3\n ,mixed,r4\n',
        ),
        ("tsv", "label\ttext\treview_id\npositive\tGood, food\tr1\nneutral\tFine\t\nunsure\tOdd\tr3\n\tNone\tr4\n"),
    ],
)
def test_tables_by_the_names_of_their_columns(tmp_path: Path, kind: str, content: str) -> None:
    sentences, rejects = read(f"{kind}:{written(tmp_path / 'a', content)}")
    assert sentences == [
        LabelledSentence("Good, food", "positive", (), "r1", "a:2"),
        LabelledSentence("Fine", "neutral", (), None, "a:3"),
    ]
    assert [line for line, _ in rejects] == [4, 5]
    assert "'unsure' is none of positive" in rejects[0].reason


def test_json_lines_with_either_key(tmp_path: Path) -> None:
    lines = [
        {"text": "A", "label": "mixed"},
        {"sentence": "B", "gold_label": "negative"},
        {"text": "C", "label": 1},
        {},
    ]
    path = written(tmp_path / "a.jsonl", "".join(json.dumps(line) + "\n" for line in lines))
    sentences, rejects = read(f"jsonl:{path}")
    assert [(s.text, s.gold, s.identity) for s in sentences] == [
        ("A", "mixed", "a.jsonl:1"),
        ("B", "negative", "a.jsonl:2"),
    ]
    assert rejects == [(3, "the label is 1, not a word"), (4, "has no key 'text'")]


@pytest.mark.parametrize(
    ("kind", "content", "found"),
    [
        ("csv", "text,class\nGood,positive\n", "for the label, only 'text', 'class'; call it label or gold_label"),
        ("jsonl", '{"sentence": "Good", "class": "positive"}\n', "'label', the first has 'sentence', 'class'"),
        ("dynasent", '{"text": "Good", "label": "positive"}\n', "name a file of a release"),
        ("yelp", "x", "'yelp', which is none of sst"),
        ("sst", "\n\n", "blank lines only"),
    ],
)
def test_a_corpus_without_labels_is_one_clear_sentence(tmp_path: Path, kind: str, content: str, found: str) -> None:
    with pytest.raises(BadInput, match=found):
        read(f"{kind}:{written(tmp_path / 'a', content)}")


def test_a_dynasent_line_keeps_every_response_and_its_text(tmp_path: Path) -> None:
    sentences, _ = read(f"dynasent:{written(tmp_path / 'a.jsonl', json.dumps(RELEASED))}")
    responses = ("positive", "positive", "negative", "mixed", "mixed")
    assert sentences == [LabelledSentence("Good food. ", None, responses, "abc", "r1-0000001")]


@pytest.mark.parametrize(
    "change",
    [
        {"gold_label": "good"},
        {"label_distribution": {"good": ["w1"]}},
        {"label_distribution": {"positive": 3}},
        {"label_distribution": None},
        {"text_id": 7},
        {"sentence": ""},
        {"sentence": "NUL \0"},
    ],
)
def test_a_dynasent_line_with_a_foreign_value_is_rejected(tmp_path: Path, change: dict[str, Any]) -> None:
    path = written(tmp_path / "a.jsonl", json.dumps(RELEASED | change) + "\n" + json.dumps(RELEASED) + "\n")
    sentences, rejects = read(f"dynasent:{path}")
    assert len(sentences) == 1
    assert [line for line, _ in rejects] == [1]


@pytest.mark.parametrize(
    ("name", "gold", "responses", "reviews"),
    [
        ("dynasent-v1.1-round01-yelp-dev", {"positive": 1200, "negative": 1200, "neutral": 1200}, 18000, 3469),
        ("dynasent-v1.1-round02-dynabench-dev", {"positive": 240, "negative": 240, "neutral": 240}, 3600, 693),
        ("sst-dev-validated", {"positive": 433, "negative": 421, "neutral": 75, "mixed": 108, None: 64}, 5505, 1),
    ],
)
def test_the_published_files(
    shared_data: Path, name: str, gold: dict[str | None, int], responses: int, reviews: int
) -> None:
    sentences, rejects = read(f"dynasent:{shared_data / 'dynasent' / f'{name}.jsonl'}")
    assert Counter(sentence.gold for sentence in sentences) == gold
    assert sum(len(sentence.responses) for sentence in sentences) == responses
    assert len({sentence.review_id for sentence in sentences}) == reviews
    assert rejects == []


@pytest.mark.parametrize(
    ("suffix", "identity"), [("", "train"), ("#dev", "dev"), ("/dev.jsonl", "dev"), ("/", "train")]
)
def test_a_release_folder_and_its_splits(tmp_path: Path, suffix: str, identity: str) -> None:
    for split in ("train", "dev"):
        written(tmp_path / f"{split}.jsonl", json.dumps(RELEASED | {"text_id": split}))
    written(tmp_path / "manifest.json", "{}")
    sentences, _ = read(f"release:{tmp_path}{suffix}")
    assert [sentence.identity for sentence in sentences] == [identity]
    assert labelled_source(f"release:{tmp_path}{suffix}").path == tmp_path / f"{identity}.jsonl"


def test_an_incomplete_release_is_refused(tmp_path: Path) -> None:
    written(tmp_path / "train.jsonl", json.dumps(RELEASED))
    with pytest.raises(BadInput, match=r"no complete release: it has no manifest\.json"):
        read(f"release:{tmp_path}")
    with pytest.raises(NotFound, match="no release folder"):
        read(f"release:{tmp_path / 'elsewhere'}")
    written(tmp_path / "manifest.json", "{}")
    with pytest.raises(NotFound, match=r"test\.jsonl"):
        read(f"release:{tmp_path}#test")


def test_a_summary_counts_what_was_read(tmp_path: Path) -> None:
    summary = ReadSummary()
    path = written(tmp_path / "a.txt", "(3 good)\n\n(9 bad)\n")
    list(read_labelled(f"sst:{path}", label_of=SENTIMENT.label_of, on_reject=lambda rejected: None, summary=summary))
    assert summary == ReadSummary(rows_read=2, loaded=1, rejected=1, blank_lines=1)
