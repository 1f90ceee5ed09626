"""One line of a release in the DynaSent v1.1 format, and files of such lines.

The keys, their order, and the two shapes (harvested, authored) are those of the files of Potts et al. 2021, so that
what reads those files reads ours.
"""

import errno
import hashlib
import json
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from dynaround.errors import BadInput, NoSpace, NotFound
from dynaround.task import Prediction, PromptData, ReleasedExample, ReleasedResponse, Span
from dynaround.text import natural_order

NO_PREDICTION = Prediction("", {})
"""Stands for the prediction of an example that no model has seen (the validated SST file)."""

_PUBLISHED_PROBS = ("negative", "positive", "neutral")
_MODEL_KEY = re.compile(r"model_([0-9]+)_label")
_PROMPT_KEYS = ("indices_into_review_text", "review_rating", "prompt_sentence", "review_id")
_VALIDATED_KEYS = ("hit_ids", "sentence", "tree", "text_id", "sst_label", "label_distribution", "gold_label")

Kind = TypeVar("Kind")


class NumberedLine(NamedTuple):
    """One line of a file, counted from 1, with its fields."""

    number: int
    fields: dict[str, Any]


def text_id(round_number: int, number: int) -> str:
    """Return the public id of the example `number` of a round: r1-0000042."""
    return f"r{round_number}-{number:07d}"


def to_line(example: ReleasedExample, labels: Sequence[str], model_labels: Sequence[str]) -> dict[str, Any]:
    """Return one line: the shape of Round 1 for a harvested example, that of Round 2 for an authored one.

    HIT ids are sorted as strings (as published), workers of a label by number. Raises BadInput for a harvested
    example without review, rating or span, and for anything that the format has no field for.
    """
    _refuse_what_has_no_field(example, labels)
    model = f"model_{example.round - 1}"
    probs_order = _PUBLISHED_PROBS if set(_PUBLISHED_PROBS) == set(model_labels) else tuple(model_labels)
    prediction = {
        f"{model}_label": example.prediction.label,
        f"{model}_probs": {label: example.prediction.probs[label] for label in probs_order},
        "text_id": example.text_id,
    }
    voters: dict[str, list[str]] = {label: [] for label in labels}
    for response in sorted(example.responses, key=lambda response: natural_order(response.worker)):
        voters[response.label].append(response.worker)
    judged = {"label_distribution": voters, "gold_label": example.gold}
    head: dict[str, Any] = {"hit_ids": sorted(example.hit_ids), "sentence": example.sentence}
    if example.authored:
        prompt = None if example.prompt is None else _prompt_line(example.prompt, example.text_id)
        arm = {"sentence_author": example.author, "has_prompt": prompt is not None, "prompt_data": prompt}
        return head | arm | prediction | judged
    if example.span is None or example.rating is None or example.review_id is None:
        raise BadInput(
            f"example {example.text_id} is harvested but lacks its review, rating or span; add what is missing"
        )
    source = {"indices_into_review_text": list(example.span)}
    return head | source | prediction | {"review_rating": example.rating} | judged | {"review_id": example.review_id}


def from_line(line: Mapping[str, Any], labels: Sequence[str], model_labels: Sequence[str]) -> ReleasedExample:
    """Read a line of either shape; its content is judged by `release_check`, not here.

    Raises BadInput naming the key that is missing, foreign or malformed.
    """
    if "sst_label" in line:
        raise BadInput("key 'sst_label': the validated SST file has no model predictions; only `check` reads its lines")
    model_key = next((key for key in line if _MODEL_KEY.fullmatch(key)), None)
    if model_key is None:
        raise BadInput("key 'model_K_label' is missing, K being the number of the target model")
    round_number = int(model_key.split("_")[1]) + 1
    probs_key = model_key.replace("label", "probs")
    arm = ("sentence_author", "has_prompt", "prompt_data")
    source = ("indices_into_review_text", "review_rating", "review_id")
    authored = "sentence_author" in line
    common = ("hit_ids", "sentence", model_key, probs_key, "text_id", "label_distribution", "gold_label")
    _same_keys(line, common + (arm if authored else source), "")
    return ReleasedExample(
        text_id=_text(line, "text_id"),
        round=round_number,
        sentence=_text(line, "sentence"),
        prediction=Prediction(_one_of(line, model_key, model_labels), _probs(line, probs_key, model_labels)),
        responses=_responses(line, labels),
        gold=None if line["gold_label"] is None else _one_of(line, "gold_label", labels),
        hit_ids=_ids(line, "hit_ids"),
        review_id=None if authored else _text(line, "review_id"),
        rating=None if authored else _whole(line, "review_rating"),
        span=None if authored else _span(line, "indices_into_review_text"),
        author=_text(line, "sentence_author") if authored else None,
        prompt=_prompt(line) if authored else None,
    )


def from_validated_line(line: Mapping[str, Any], labels: Sequence[str]) -> ReleasedExample:
    """Read a line of the validated SST file: round 0, `NO_PREDICTION`, tree and SST label in `extra`."""
    _same_keys(line, _VALIDATED_KEYS, "")
    return ReleasedExample(
        text_id=_text(line, "text_id"),
        round=0,
        sentence=_text(line, "sentence"),
        prediction=NO_PREDICTION,
        responses=_responses(line, labels),
        gold=None if line["gold_label"] is None else _one_of(line, "gold_label", labels),
        hit_ids=_ids(line, "hit_ids"),
        extra={"tree": _text(line, "tree"), "sst_label": _text(line, "sst_label")},
    )


def write_lines(path: Path, lines: Iterable[Mapping[str, Any]]) -> int:
    r"""Write one JSON object a line, ASCII with \u escapes, LF, a final newline; return how many.

    The file appears whole or not at all. Raises NoSpace when the disk is full.
    """
    partial = path.with_name(f"{path.name}.partial")
    written = 0
    try:
        with partial.open("w", encoding="ascii", newline="\n") as file:
            for line in lines:
                file.write(_written(line))
                written += 1
        os.replace(partial, path)
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        raise NoSpace(f"{path}: the disk is full after {written} lines; free some space and write it again") from error
    finally:
        partial.unlink(missing_ok=True)
    return written


def lines_hash(lines: Iterable[Mapping[str, Any]]) -> str:
    """Return the SHA-256 that a file of these lines has when `write_lines` writes it, in hex."""
    digest = hashlib.sha256()
    for line in lines:
        digest.update(_written(line).encode("ascii"))
    return digest.hexdigest()


def read_lines(path: Path) -> Iterator[NumberedLine]:
    """Yield the lines of a file as plain data, never skipping one.

    Raises NotFound for a missing file, and BadInput ('FILE, line 12: ...') for a line that is not one JSON object.
    """
    if not path.exists():
        raise NotFound(f"{path}: no such file; name a file of JSON lines")
    if not path.is_file():
        raise BadInput(f"{path}: is a folder; name a file of JSON lines")
    with path.open("rb") as file:
        for number, raw in enumerate(file, start=1):
            yield NumberedLine(number, _object(raw, f"{path}, line {number}"))


def read_examples(path: Path, read_line: Callable[[Mapping[str, Any]], ReleasedExample]) -> list[ReleasedExample]:
    """Read a whole file with a task's `read_line`; its BadInput is raised anew with the file and the line's number."""
    examples = []
    for number, fields in read_lines(path):
        try:
            examples.append(read_line(fields))
        except BadInput as error:
            raise BadInput(f"{path}, line {number}: {error}") from error
    return examples


def _written(line: Mapping[str, Any]) -> str:
    return json.dumps(line, allow_nan=False) + "\n"


def _refuse_what_has_no_field(example: ReleasedExample, labels: Sequence[str]) -> None:
    if example.extra or any(response.form for response in example.responses):
        raise BadInput(f"example {example.text_id} has further fields, for which the DynaSent format has no place")
    unknown = sorted({response.label for response in example.responses} - set(labels))
    if unknown:
        raise BadInput(f"example {example.text_id} has a response {unknown[0]!r}, which is none of {', '.join(labels)}")


def _prompt_line(prompt: PromptData, example: str) -> dict[str, Any]:
    if prompt.span is None or prompt.rating is None or prompt.review_id is None:
        raise BadInput(f"the prompt of example {example} lacks its review, rating or span; add what is missing")
    return dict(zip(_PROMPT_KEYS, (list(prompt.span), prompt.rating, prompt.sentence, prompt.review_id), strict=True))


def _prompt(line: Mapping[str, Any]) -> PromptData | None:
    data, has_prompt = line["prompt_data"], line["has_prompt"]
    if not isinstance(has_prompt, bool) or has_prompt != (data is not None):
        raise BadInput(f"key 'has_prompt' is {has_prompt!r}, which does not fit 'prompt_data'")
    if data is None:
        return None
    if not isinstance(data, dict):
        raise BadInput(f"key 'prompt_data' is {data!r}, not an object or null")
    _same_keys(data, _PROMPT_KEYS, "prompt_data.")
    span = _span(data, "indices_into_review_text")
    return PromptData(_text(data, "prompt_sentence"), _text(data, "review_id"), _whole(data, "review_rating"), span)


def _responses(line: Mapping[str, Any], labels: Sequence[str]) -> tuple[ReleasedResponse, ...]:
    voters = _typed(line, "label_distribution", dict, "an object")
    _same_keys(voters, labels, "label_distribution.")
    return tuple(ReleasedResponse(worker, label, {}) for label in labels for worker in _ids(voters, label))


def _probs(line: Mapping[str, Any], key: str, model_labels: Sequence[str]) -> dict[str, float]:
    probs = _typed(line, key, dict, "an object")
    _same_keys(probs, model_labels, f"{key}.")
    if any(isinstance(value, bool) or not isinstance(value, int | float) for value in probs.values()):
        raise BadInput(f"key {key!r} holds something that is not a number")
    return dict(probs)


def _same_keys(line: Mapping[str, Any], expected: Sequence[str], inside: str) -> None:
    missing = [key for key in expected if key not in line]
    foreign = [key for key in line if key not in expected]
    if missing:
        raise BadInput(f"key {inside + missing[0]!r} is missing")
    if foreign:
        raise BadInput(f"key {inside + foreign[0]!r} does not belong here; expected are {', '.join(expected)}")


def _typed(line: Mapping[str, Any], key: str, kind: type[Kind], words: str) -> Kind:
    value = line[key]
    if not isinstance(value, kind) or isinstance(value, bool):
        raise BadInput(f"key {key!r} is {value!r}, not {words}")
    return value


def _text(line: Mapping[str, Any], key: str) -> str:
    text = _typed(line, key, str, "a text")
    # Half of a surrogate pair is legal JSON but no text: it could be neither hashed nor written again as UTF-8.
    if any("\ud800" <= c <= "\udfff" for c in text):
        raise BadInput(f"key {key!r} holds half of a surrogate pair, which is no character")
    return text


def _whole(line: Mapping[str, Any], key: str) -> int:
    return _typed(line, key, int, "a whole number")


def _one_of(line: Mapping[str, Any], key: str, labels: Sequence[str]) -> str:
    label = _text(line, key)
    if label not in labels:
        raise BadInput(f"key {key!r} is {label!r}, none of {', '.join(labels)}")
    return label


def _ids(line: Mapping[str, Any], key: str) -> tuple[str, ...]:
    ids = _typed(line, key, list, "a list of ids")
    if not all(isinstance(one, str) for one in ids):
        raise BadInput(f"key {key!r} is {ids!r}, not a list of ids")
    return tuple(ids)


def _span(line: Mapping[str, Any], key: str) -> Span:
    ends = _typed(line, key, list, "a list of two whole numbers")
    if len(ends) != 2 or any(isinstance(end, bool) or not isinstance(end, int) for end in ends):
        raise BadInput(f"key {key!r} is {ends!r}, not a list of two whole numbers")
    return Span(*ends)


def _object(raw: bytes, place: str) -> dict[str, Any]:
    def without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        fields = dict(pairs)
        if len(fields) < len(pairs):
            raise BadInput(f"{place}: a key occurs twice in one object")
        return fields

    def no_constant(name: str) -> float:
        raise BadInput(f"{place}: {name} is no JSON number")

    try:
        fields = json.loads(raw.decode("utf-8-sig"), object_pairs_hook=without_repeats, parse_constant=no_constant)
    except UnicodeDecodeError as error:
        raise BadInput(f"{place}: byte {error.start + 1} is not UTF-8; save the file as UTF-8") from error
    except json.JSONDecodeError as error:
        raise BadInput(f"{place}: is not JSON ({error.msg} at column {error.colno})") from error
    if not isinstance(fields, dict):
        raise BadInput(f"{place}: holds {type(fields).__name__}, not one object")
    return fields
