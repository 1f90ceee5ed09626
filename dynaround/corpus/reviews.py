"""Star-rated reviews, and the sentences of them that are harvested or become prompts."""

import hashlib
import shlex
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from dynaround.corpus.fields import rating_of, review_id_of, shown, text_of
from dynaround.corpus.rejects import ReadSummary, Rejected, RejectsFile
from dynaround.corpus.rows import (
    TABLE_KINDS,
    Row,
    column_of,
    converted,
    json_rows,
    open_table,
    value_of,
    wrong_columns,
)
from dynaround.corpus.seen import SeenIds
from dynaround.corpus.sentences import sentence_spans
from dynaround.corpus.sources import Source, check_file, parse_spec
from dynaround.errors import BadInput

__all__ = [
    "RATED_SENTENCE_KINDS",
    "REVIEW_KINDS",
    "RatedSentence",
    "ReadSummary",
    "Rejected",
    "RejectsFile",
    "Review",
    "read_rated_sentences",
    "read_reviews",
]

REVIEW_KINDS = ("yelp", "amazon", "jsonl", *TABLE_KINDS)
RATED_SENTENCE_KINDS = (*REVIEW_KINDS, "dynasent")

COLUMN_NAMES = {
    "review_id": ("review_id", "reviewid", "id"),
    "rating": ("rating", "stars", "star_rating", "overall", "score"),
    "text": ("text", "review_text", "reviewtext", "review_body", "verified_reviews", "body", "content", "review"),
}
"""Column names that are recognised in tables, the earliest first, whatever their case."""


class Review(NamedTuple):
    """One review as it was read; the text is never changed. `line` is where it starts in the file, from 1."""

    review_id: str
    rating: int | None
    text: str
    line: int


class RatedSentence(NamedTuple):
    """One sentence with the rating of its review: `text` is the review's text from `start` to `end`, in code points."""

    review_id: str
    rating: int | None
    start: int
    end: int
    text: str


class _Names(NamedTuple):
    """The columns or keys that hold a review; without `review_id` the number of the row serves as one."""

    review_id: str | None
    rating: str | None
    text: str


def read_reviews(
    spec: str,
    *,
    fields: Mapping[str, str] | None = None,
    needs_rating: bool = True,
    on_reject: Callable[[Rejected], None],
    summary: ReadSummary | None = None,
) -> Iterator[Review]:
    """Stream the reviews of "KIND:PATH" in the order of the file; each row that is no review goes to `on_reject`.

    Kinds, each plain or packed by gzip (but Parquet), always UTF-8:

    - yelp: the JSON lines of the Yelp academic data (review_id, stars, text)
    - amazon: the JSON lines of 2014 and 2018 (overall, reviewText) and of 2023 (rating, text). They have no review
      id; it is the first 22 hex digits of SHA-256 over reviewer, item and time with a tab between (reviewerID or
      user_id, asin or else parent_asin, unixReviewTime or timestamp), so no reviewer's id gets into a release
    - jsonl: JSON lines with review_id, rating, text
    - csv, tsv, parquet: tables whose columns have one of `COLUMN_NAMES`. Without a column for the id, the
      number of the row after the header and a hash of its text serve: "row-12-0a1b2c3d4e"

    `fields` names other columns or keys, as in {"text": "body"}. A rating is 1 to 5, as an integer or equal to one;
    with `needs_rating` false it may be missing, which gives None. Rejected are malformed rows, other ratings, empty
    texts, texts that PostgreSQL cannot store, and every review whose id an earlier one of the file has; for that,
    12 to 24 bytes of each id are kept (see `SeenIds`). Else memory stays constant. `summary` is filled while reading.

    Raises BadInput or NotFound for a spec, file, header or mapping that cannot be used and NotInstalled for Parquet
    without pyarrow, at once; and BadInput while reading for a file without rows, for JSON lines none of which has a
    needed key, and for a file that is damaged or cut short, after all reviews before the damage.
    """
    source = parse_spec(spec, REVIEW_KINDS)
    return _checked_reviews(source, fields or {}, needs_rating, on_reject, summary or ReadSummary())


def read_rated_sentences(
    spec: str,
    *,
    fields: Mapping[str, str] | None = None,
    needs_rating: bool = True,
    on_reject: Callable[[Rejected], None],
    summary: ReadSummary | None = None,
) -> Iterator[RatedSentence]:
    """Stream the sentences of the reviews that `read_reviews` reads, in order.

    The further kind "dynasent" is a release of harvested sentences, published or our own, whose lines have offsets
    into reviews that are not at hand; it has no `fields`. Errors as for `read_reviews`.
    """
    source = parse_spec(spec, RATED_SENTENCE_KINDS)
    summary = summary or ReadSummary()
    if source.kind != "dynasent":
        return _split(_checked_reviews(source, fields or {}, needs_rating, on_reject, summary))
    if fields:
        raise BadInput(f"{source} has fixed field names; leave out the field mapping")
    check_file(source.path)
    make = partial(_released_sentence, path=source.path, needs_rating=needs_rating)
    return converted(json_rows(source.path, summary), make, on_reject, summary)


def _split(reviews: Iterator[Review]) -> Iterator[RatedSentence]:
    for review in reviews:
        for start, end in sentence_spans(review.text):
            yield RatedSentence(review.review_id, review.rating, start, end, review.text[start:end])


def _checked_reviews(
    source: Source,
    fields: Mapping[str, str],
    needs_rating: bool,
    on_reject: Callable[[Rejected], None],
    summary: ReadSummary,
) -> Iterator[Review]:
    foreign = next((name for name in fields if name not in COLUMN_NAMES), None)
    if foreign is not None:
        raise BadInput(f"the field mapping (--field) names {foreign!r}, which is none of {', '.join(COLUMN_NAMES)}")
    check_file(source.path)
    return _reviews(source, fields, needs_rating, on_reject, summary)


def _reviews(
    source: Source,
    fields: Mapping[str, str],
    needs_rating: bool,
    on_reject: Callable[[Rejected], None],
    summary: ReadSummary,
) -> Iterator[Review]:
    seen = SeenIds()
    if source.kind in TABLE_KINDS:
        table = open_table(source, summary)
        rows, names_of = table.rows, _always(_table_names(table.columns, fields, needs_rating, source.path))
    else:
        rows = json_rows(source.path, summary)
        names_of = partial(_amazon_names, fields) if source.kind == "amazon" else _always(_json_names(source, fields))

    def make(row: Row) -> Review:
        review = _review(row, names_of(row), source, needs_rating)
        if not seen.add(review.review_id):
            raise BadInput(f"the review_id {shown(review.review_id)} occurs earlier in the file")
        return review

    return converted(rows, make, on_reject, summary)


def _always(names: _Names) -> Callable[[Row], _Names]:
    return lambda row: names


def _json_names(source: Source, fields: Mapping[str, str]) -> _Names:
    usual = _Names("review_id", "stars" if source.kind == "yelp" else "rating", "text")
    return usual._replace(**fields)


def _amazon_names(fields: Mapping[str, str], row: Row) -> _Names:
    """Decide line by line: files of both generations have been joined."""
    older = "overall" in row.values or "reviewText" in row.values
    usual = _Names(None, "overall", "reviewText") if older else _Names(None, "rating", "text")
    return usual._replace(**fields)


def _table_names(columns: tuple[str, ...], fields: Mapping[str, str], needs_rating: bool, path: Path) -> _Names:
    """Find the columns; raise WrongColumns, listing those that are there, where a needed one is missing."""
    found: dict[str, str | None] = {}
    for field, usual in COLUMN_NAMES.items():
        if field in fields and fields[field] not in columns:
            raise wrong_columns(path, repr(fields[field]), columns, f"correct --field {field}=COLUMN")
        found[field] = fields.get(field) or column_of(columns, usual)
    for field in ("text", "rating") if needs_rating else ("text",):
        if found[field] is None:
            example = next((column for column in columns if column not in found.values()), "name of the column")
            raise wrong_columns(path, f"the {field}", columns, _mapping_hint("column", "it", field, example))
    return _Names(found["review_id"], found["rating"], str(found["text"]))


def _review(row: Row, names: _Names, source: Source, needs_rating: bool) -> Review:
    text = text_of(_value(row, names.text, "text", source))
    rating = None
    if needs_rating or (names.rating is not None and row.values.get(names.rating) not in (None, "")):
        rating = rating_of(_value(row, str(names.rating), "rating", source))
    if names.review_id is not None:
        review_id = review_id_of(_value(row, names.review_id, "review_id", source))
    elif source.kind == "amazon":
        review_id = _amazon_id(row.values)
    else:
        # With the text, since row 12 of another file is another review and must not count as used before.
        review_id = f"row-{row.number}-{hashlib.sha256(text.encode()).hexdigest()[:10]}"
    return Review(review_id, rating, text, row.line)


def _value(row: Row, key: str, field: str, source: Source) -> Any:
    return value_of(row, key, source.path, _mapping_hint("key", f"the {field}", field, "name of the key"))


def _mapping_hint(what: str, wanted: str, field: str, example: str) -> str:
    option = shlex.quote(f"{field}={example}")
    return f"if another {what} holds {wanted}, give --field {option} (in Python: fields={{{field!r}: {example!r}}})"


def _amazon_id(values: Mapping[str, Any]) -> str:
    parts = []
    for what, keys in (
        ("reviewer", ("reviewerID", "user_id")),
        ("item", ("asin", "parent_asin")),
        ("time", ("unixReviewTime", "timestamp")),
    ):
        part = next((values[key] for key in keys if values.get(key) not in (None, "")), None)
        if part is None:
            raise BadInput(f"there is no {what} ({' or '.join(keys)}) to make a review_id from")
        parts.append(str(part))
    return hashlib.sha256("\t".join(parts).encode("utf-8", errors="backslashreplace")).hexdigest()[:22]


def _released_sentence(row: Row, *, path: Path, needs_rating: bool) -> RatedSentence:
    hint = "name a release of harvested sentences, such as Round 1 of DynaSent"
    keys = ("sentence", "indices_into_review_text", "review_rating", "review_id")
    values = {key: value_of(row, key, path, hint) for key in keys}
    sentence = text_of(values["sentence"])
    span = values["indices_into_review_text"]
    if not (isinstance(span, list) and len(span) == 2 and all(type(place) is int for place in span)):
        raise BadInput("indices_into_review_text are not two integers")
    start, end = span
    if start < 0 or end - start != len(sentence):
        raise BadInput(f"indices_into_review_text {span} do not fit a sentence of {len(sentence)} characters")
    rating = rating_of(values["review_rating"]) if needs_rating or values["review_rating"] is not None else None
    return RatedSentence(review_id_of(values["review_id"]), rating, start, end, sentence)
