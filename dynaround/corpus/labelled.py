"""Labelled corpora that a model is trained or measured on: SST trees, tables, JSON lines, DynaSent files, releases."""

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Literal, NamedTuple

from dynaround.corpus.fields import review_id_of, shown, text_of
from dynaround.corpus.rejects import ReadSummary, Rejected
from dynaround.corpus.rows import Row, column_of, converted, json_rows, open_table, value_of, wrong_columns
from dynaround.corpus.sources import Source, check_file, parse_spec
from dynaround.corpus.trees import tree_rows
from dynaround.errors import BadInput, NotFound

Unit = Literal["sentences", "phrases"]
"""What one row of a file of trees is."""

LABELLED_KINDS = ("sst", "csv", "tsv", "jsonl", "dynasent", "release")

TEXT_NAMES = ("text", "sentence")
LABEL_NAMES = ("label", "gold_label")


class LabelledSentence(NamedTuple):
    """One sentence with its gold label or none, and the responses behind it, as labels, where the corpus has them.

    `identity` is the text id of a DynaSent file, or name and line of the file ("train.txt:12"; of a phrase
    also the node, "train.txt:12.3"). `review_id` is the
    review that the sentence comes from; of an authored one, that of its prompt.
    """

    text: str
    gold: str | None
    responses: tuple[str, ...]
    review_id: str | None
    identity: str


def read_labelled(
    spec: str,
    *,
    label_of: Callable[[str], str],
    on_reject: Callable[[Rejected], None],
    summary: ReadSummary | None = None,
    unit: Unit = "sentences",
) -> Iterator[LabelledSentence]:
    """Stream the labelled sentences of "KIND:PATH" in the order of the file, plain or packed by gzip, always UTF-8.

    - sst: a file of labelled trees (Socher et al. 2013), or a folder for its train.txt; whole sentences with the root's
      label, 0 and 1 negative, 2 neutral, 3 and 4 positive; tokens are joined by blanks and kept (-LRB-, 's); with
      `unit` "phrases" every phrase of the trees, each text and label once
    - csv, tsv, jsonl: text or sentence, label or gold_label, and perhaps review_id
    - dynasent: a published file of either round or the revalidated SST file, or one file of our own release
    - release: FOLDER for its train.jsonl, FOLDER#dev or FOLDER/dev.jsonl for another split

    Words go through `label_of`; a row with a word that it refuses is rejected, as is a malformed row. Raises BadInput
    or NotFound for a spec, file or header that cannot be used and for a release folder without manifest.json.
    """
    source = labelled_source(spec)
    if unit == "phrases" and source.kind != "sst":
        raise BadInput(f"{spec} has no phrases, only trees have (sst:); leave out the unit")
    return _sentences(source, unit, label_of, on_reject, summary or ReadSummary())


def labelled_source(spec: str) -> Source:
    """Return the kind and the one file that a spec stands for; raises what `read_labelled` raises for them."""
    source = parse_spec(spec, LABELLED_KINDS)
    if source.kind == "sst" and source.path.is_dir():
        source = source._replace(path=source.path / "train.txt")
    elif source.kind == "release":
        source = _release_file(source.path)
    check_file(source.path)
    return source


def _sentences(
    source: Source,
    unit: Unit,
    label_of: Callable[[str], str],
    on_reject: Callable[[Rejected], None],
    summary: ReadSummary,
) -> Iterator[LabelledSentence]:
    path = source.path
    make: Callable[[Row], LabelledSentence]
    if source.kind == "sst":
        rows = tree_rows(path, summary, phrases=unit == "phrases")
        make = partial(_tree, path=path, label_of=label_of)
    elif source.kind in ("csv", "tsv"):
        table = open_table(source, summary)
        rows = table.rows
        names = {}
        for wanted, usual in (("text", TEXT_NAMES), ("label", LABEL_NAMES)):
            name = column_of(table.columns, usual)
            if name is None:
                raise wrong_columns(path, f"the {wanted}", table.columns, f"call it {' or '.join(usual)}")
            names[wanted] = name
        make = partial(_plain, path=path, label_of=label_of, text_name=names["text"], label_name=names["label"])
    else:
        rows = json_rows(path, summary)
        make = partial(_dynasent if source.kind != "jsonl" else _json_line, path=path, label_of=label_of)
    return converted(rows, make, on_reject, summary)


def _release_file(place: Path) -> Source:
    """Find the split's file of a release; a folder without its manifest, which is written last, is incomplete."""
    folder_name, mark, split = place.name.rpartition("#")
    if place.name.endswith((".jsonl", ".jsonl.gz")) and not place.is_dir():
        path = place
    elif mark and not place.is_dir():
        path = place.with_name(folder_name) / f"{split}.jsonl"
    else:
        path = place / "train.jsonl"
    if not path.parent.is_dir():
        raise NotFound(f"there is no release folder {path.parent}")
    if not (path.parent / "manifest.json").is_file():
        raise BadInput(f"{path.parent} is no complete release: it has no manifest.json; release the round again")
    return Source("release", path)


def _plain(
    row: Row, *, path: Path, label_of: Callable[[str], str], text_name: str, label_name: str
) -> LabelledSentence:
    text = text_of(row.values[text_name])
    gold = _label(row.values[label_name], label_of)
    return LabelledSentence(text, gold, (), _review_id(row.values), f"{path.name}:{row.line}")


def _tree(row: Row, *, path: Path, label_of: Callable[[str], str]) -> LabelledSentence:
    text, label, place = (row.values[name] for name in ("text", "label", "place"))
    return LabelledSentence(text_of(text), label_of(label), (), None, f"{path.name}:{place}")


def _json_line(row: Row, *, path: Path, label_of: Callable[[str], str]) -> LabelledSentence:
    """Keys may differ from line to line, so they are looked for in each."""
    names = {}
    for wanted, usual in (("text", TEXT_NAMES), ("label", LABEL_NAMES)):
        key = next((name for name in usual if name in row.values), usual[0])
        value_of(row, key, path, f"call the {wanted} {' or '.join(usual)}")
        names[wanted] = key
    return _plain(row, path=path, label_of=label_of, text_name=names["text"], label_name=names["label"])


def _dynasent(row: Row, *, path: Path, label_of: Callable[[str], str]) -> LabelledSentence:
    hint = "name a file of a release, published or our own"
    values = {
        key: value_of(row, key, path, hint) for key in ("sentence", "text_id", "gold_label", "label_distribution")
    }
    text = text_of(values["sentence"])
    identity = values["text_id"]
    if not isinstance(identity, str) or not identity:
        raise BadInput(f"the text_id is {shown(identity)}, not a string")
    gold = None if values["gold_label"] is None else _label(values["gold_label"], label_of)
    responses = _responses(values["label_distribution"], label_of)
    prompt = row.values.get("prompt_data")
    review = row.values if "review_id" in row.values or not isinstance(prompt, dict) else prompt
    return LabelledSentence(text, gold, responses, _review_id(review), identity)


def _responses(distribution: object, label_of: Callable[[str], str]) -> tuple[str, ...]:
    """Repeat each label for each worker under it."""
    if not isinstance(distribution, dict) or not all(isinstance(workers, list) for workers in distribution.values()):
        raise BadInput("label_distribution is not an object with a list of workers under each label")
    return tuple(label for word, workers in distribution.items() for label in [_label(word, label_of)] * len(workers))


def _label(word: object, label_of: Callable[[str], str]) -> str:
    if word in (None, ""):
        raise BadInput("the label is missing")
    if not isinstance(word, str):
        raise BadInput(f"the label is {shown(word)}, not a word")
    return label_of(word)


def _review_id(values: Mapping[str, Any]) -> str | None:
    value = values.get("review_id")
    return None if value in (None, "") else review_id_of(value)
