"""Hugging Face datasets as labelled corpora, streamed through the optional package `datasets`."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from typing import Any

from dynaround.corpus.fields import shown, text_of
from dynaround.corpus.labelled import LabelledSentence
from dynaround.corpus.rejects import Rejected
from dynaround.errors import BadInput, NotInstalled

USUAL_SPLIT = "train"


def read_dataset(
    name: str,
    *,
    config: str | None,
    revision: str | None,
    fields: Mapping[str, str],
    label_of: Callable[[str], str],
    on_reject: Callable[[Rejected], None],
) -> Iterator[LabelledSentence]:
    """Stream the rows of "NAME#SPLIT" (the split train where none is named): a dataset of the hub, or a folder.

    The columns are text and label unless `fields` says otherwise. A class label is read by its name, any other as the
    word that it is written as, both through `label_of`; a row that it refuses is rejected, by its number. Raises
    NotInstalled without the package, BadInput for a dataset that cannot be loaded or lacks a column.
    """
    foreign = next((field for field in fields if field not in ("text", "label")), None)
    if foreign is not None:
        raise BadInput(f"fields of hf:{name} names {foreign!r}, which is none of text, label")
    place, _, split = name.partition("#")
    rows = _loaded(place, config, split or USUAL_SPLIT, revision)
    columns = {wanted: fields.get(wanted, wanted) for wanted in ("text", "label")}
    words = getattr((rows.features or {}).get(columns["label"]), "names", None)
    for number, row in enumerate(_read(rows, name), 1):
        for wanted, column in columns.items():
            if column not in row:
                raise BadInput(
                    f"hf:{name} has no column {column!r}, only {', '.join(row)}; "
                    f'name the one with the {wanted}: fields = {{ {wanted} = "..." }}'
                )
        try:
            text = text_of(row[columns["text"]])
            label = label_of(_word(row[columns["label"]], words))
        except BadInput as problem:
            on_reject(Rejected(number, str(problem)))
        else:
            yield LabelledSentence(text, label, (), None, f"{place}#{split or USUAL_SPLIT}:{number}")


def _word(value: object, words: list[str] | None) -> str:
    # -1 stands for a missing label in the hub's datasets.
    if value is None or value == "" or (words is not None and value == -1):
        raise BadInput("the label is missing")
    if words is not None and isinstance(value, int):
        return words[value]
    if isinstance(value, str | int):
        return str(value)
    raise BadInput(f"the label is {shown(value)}, not a word")


def _loaded(place: str, config: str | None, split: str, revision: str | None) -> Any:
    try:
        import datasets
    except ImportError as error:
        raise NotInstalled(f"hf:{place} needs the package datasets: pip install 'dynaround[hub]'") from error
    try:
        return datasets.load_dataset(place, config, split=split, revision=revision, streaming=True)
    except (OSError, ValueError) as problem:
        raise BadInput(f"hf:{place}#{split} cannot be loaded: {_first_line(problem)}") from problem


def _read(rows: Any, name: str) -> Iterator[Mapping[str, Any]]:
    try:
        # Closed at once where reading stops early: a file of a folder would stay open.
        with closing(iter(rows)) as stream:
            yield from stream
    except (OSError, ValueError) as problem:
        raise BadInput(f"hf:{name} cannot be read to its end: {_first_line(problem)}") from problem


def _first_line(problem: Exception) -> str:
    return next(iter(str(problem).strip().splitlines()), type(problem).__name__)
