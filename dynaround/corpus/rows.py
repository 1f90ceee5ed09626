"""Rows of JSON lines, CSV, TSV and Parquet files, streamed: each is used or rejected with its line, none is lost."""

import csv
import json
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Self, TypeVar

from dynaround.corpus.rejects import ReadSummary, Rejected
from dynaround.corpus.sources import Line, Source, numbered_lines
from dynaround.errors import BadInput, NotInstalled

TABLE_KINDS = ("csv", "tsv", "parquet")

MAX_FIELD = 2**20
"""Characters of one CSV field; the limit of Python's csv module is 131,072. A quotation mark that is never closed would
otherwise take the rest of the file for one field."""

PATIENCE = 100
"""Rows without a needed key before a file of JSON lines is given up, if no row at all had it."""

Made = TypeVar("Made")


class Row(NamedTuple):
    """One row: the line it starts on (Parquet: its number), its number among the rows, and its values by key."""

    line: int
    number: int
    values: Mapping[str, Any]


class Table(NamedTuple):
    """The columns of a file with a header (the unnamed one as ""), and its rows, each with just these columns."""

    columns: tuple[str, ...]
    rows: Iterator[Row | Rejected]


class WrongColumns(BadInput):
    """A file that lacks a needed column altogether: no row of it can be read."""


class MissingKey(BadInput):
    """A row that lacks a needed key; `of_file` says what to do when all rows lack it."""

    def __init__(self, key: str, found: Sequence[str], path: Path, hint: str) -> None:
        super().__init__(f"has no key {key!r}")
        self.of_file = f"no line of {path} has the key {key!r}, the first has {_listed(found)}; {hint}"


def column_of(columns: Sequence[str], names: Sequence[str]) -> str | None:
    """Return the column that is called by the earliest of `names`, whatever its case and outer blanks, or None."""
    by_name = {column.strip().casefold(): column for column in reversed(columns)}
    return next((by_name[name] for name in names if name in by_name), None)


def wrong_columns(path: Path, wanted: str, columns: Sequence[str], hint: str) -> WrongColumns:
    """Return the error for a file in which no column holds `wanted`."""
    return WrongColumns(f"{path} has no column for {wanted}, only {_listed(columns)}; {hint}")


def value_of(row: Row, key: str, path: Path, hint: str) -> Any:
    """Return the value under `key`; raise MissingKey, with `hint` for the case that all rows lack it."""
    if key not in row.values:
        raise MissingKey(key, tuple(row.values), path, hint)
    return row.values[key]


def converted(
    rows: Iterator[Row | Rejected],
    make: Callable[[Row], Made],
    on_reject: Callable[[Rejected], None],
    summary: ReadSummary,
) -> Iterator[Made]:
    """Yield what `make` makes of each row; a row for which it raises BadInput is rejected with that sentence.

    Raises BadInput when there is no row, or when none of the rows (or of the first `PATIENCE`) has a needed key.
    """
    first_missing: MissingKey | None = None
    key_seen = False
    for row in rows:
        rejected = row if isinstance(row, Rejected) else None
        if isinstance(row, Row):
            try:
                made = make(row)
            except MissingKey as problem:
                first_missing = first_missing or problem
                rejected = Rejected(row.line, str(problem))
            except BadInput as problem:
                key_seen = True
                rejected = Rejected(row.line, str(problem))
            else:
                key_seen = True
                summary.loaded += 1
                yield made
        if rejected is not None:
            summary.rejected += 1
            on_reject(rejected)
        if first_missing and not key_seen and summary.rejected >= PATIENCE:
            break
    if first_missing and not key_seen:
        raise BadInput(first_missing.of_file)


def json_rows(path: Path, summary: ReadSummary) -> Iterator[Row | Rejected]:
    """Yield one row per line of JSON; blank lines are counted in `summary` and skipped."""
    number = 0
    for line in numbered_lines(path):
        if line.problem is None and not line.text.strip():
            summary.blank_lines += 1
            continue
        number += 1
        summary.rows_read += 1
        yield _json_row(line, number)
    if not number:
        raise BadInput(f"{path} holds blank lines only")


def _json_row(line: Line, number: int) -> Row | Rejected:
    if line.problem is not None:
        return Rejected(line.number, line.problem)
    try:
        value = json.loads(line.text)
    except (ValueError, RecursionError):
        # ValueError: also a number of thousands of digits; RecursionError: thousands of nested brackets.
        return Rejected(line.number, "malformed JSON")
    if not isinstance(value, dict):
        return Rejected(line.number, f"not a JSON object but {type(value).__name__}")
    return Row(line.number, number, value)


def open_table(source: Source, summary: ReadSummary) -> Table:
    """Read the header of a CSV, TSV or Parquet file and return its columns and rows.

    In TSV a quotation mark is a character like any other, and a row is one line; CSV is RFC 4180, strictly. Blank
    lines are counted in `summary` and skipped. Raises BadInput for a file without a usable header.
    """
    if source.kind == "parquet":
        return _open_parquet(source.path, summary)
    lines = numbered_lines(source.path)
    records = _tsv_records(lines) if source.kind == "tsv" else _csv_records(lines)
    for header in records:
        if header.problem:
            raise BadInput(f"the header of {source.path} (line {header.line}) cannot be read: {header.problem}")
        if not header.is_blank:
            columns = _column_names(header.cells, source.path)
            return Table(columns, _table_rows(records, columns, source.path, summary))
        summary.blank_lines += 1
    raise BadInput(f"{source.path} holds blank lines only")


class _Record(NamedTuple):
    line: int
    cells: list[str]
    problem: str | None = None

    @property
    def is_blank(self) -> bool:
        return self.problem is None and not any(cell.strip() for cell in self.cells) and len(self.cells) < 2


def _column_names(cells: Sequence[str], path: Path) -> tuple[str, ...]:
    """Only the first column may go without a name, as tables with a row number are written; others get their place."""
    names = tuple(name if name.strip() or not place else f"column {place + 1}" for place, name in enumerate(cells))
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise BadInput(f"{path} has two columns {twice!r}; rename one")
    return names


def _table_rows(
    records: Iterator[_Record], columns: tuple[str, ...], path: Path, summary: ReadSummary
) -> Iterator[Row | Rejected]:
    number = 0
    for record in records:
        if record.is_blank:
            summary.blank_lines += 1
            continue
        number += 1
        summary.rows_read += 1
        if record.problem is not None:
            yield Rejected(record.line, record.problem)
        elif len(record.cells) != len(columns):
            yield Rejected(record.line, f"{len(record.cells)} fields where the header has {len(columns)}")
        else:
            yield Row(record.line, number, dict(zip(columns, record.cells, strict=True)))
    if not number:
        raise BadInput(f"{path} has a header and no rows")


def _tsv_records(lines: Iterator[Line]) -> Iterator[_Record]:
    for line in lines:
        yield _Record(line.number, line.text.removesuffix("\n").removesuffix("\r").split("\t"), line.problem)


class _Feed:
    """Hands lines to the csv reader, remembers those of the current row, and takes them back after a malformed one."""

    def __init__(self, lines: Iterator[Line]) -> None:
        self._lines = lines
        self._again: deque[Line] = deque()
        self.taken: list[Line] = []

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> str:
        line = self._again.popleft() if self._again else next(self._lines)
        self.taken.append(line)
        return line.text

    def take_back_all_but_first(self) -> None:
        self._again.extendleft(reversed(self.taken[1:]))


def _csv_records(lines: Iterator[Line]) -> Iterator[_Record]:
    """Yield the records of a CSV file; after a malformed one reading goes on at the line after its first line."""
    # The limit is one per process. It is only ever raised: to put it back would fail a reader in another thread.
    csv.field_size_limit(max(csv.field_size_limit(), MAX_FIELD))
    feed = _Feed(lines)
    reader = csv.reader(feed, strict=True)
    while True:
        feed.taken.clear()
        try:
            cells = next(reader)
        except StopIteration:
            return
        except csv.Error as fault:
            open_mark = "; a quotation mark opened in this row is not closed" if len(feed.taken) > 1 else ""
            yield _Record(feed.taken[0].number, [], f"malformed CSV ({str(fault).partition(' - ')[0]}){open_mark}")
            feed.take_back_all_but_first()
        else:
            problem = next((line.problem for line in feed.taken if line.problem), None)
            yield _Record(feed.taken[0].number, cells, problem)


def _open_parquet(path: Path, summary: ReadSummary) -> Table:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError as problem:
        raise NotInstalled(f"{path} needs pyarrow: pip install 'dynaround[parquet]'") from problem
    try:
        file = pyarrow.parquet.ParquetFile(path)
    except (pyarrow.ArrowException, OSError) as problem:
        raise BadInput(f"{path} cannot be read as Parquet: {str(problem).splitlines()[0]}") from problem
    kinds = pyarrow.types
    # Lists, structs and bytes hold no field of a review; embeddings and pictures among them would fill the memory.
    plain = [
        field.name
        for field in file.schema_arrow
        if not kinds.is_nested(field.type) and not kinds.is_binary(field.type) and not kinds.is_large_binary(field.type)
    ]
    if not file.metadata.num_rows:
        raise BadInput(f"{path} has no rows")
    return Table(_column_names(plain, path), _parquet_rows(file, plain, path, summary))


def _parquet_rows(file: Any, columns: list[str], path: Path, summary: ReadSummary) -> Iterator[Row | Rejected]:
    import pyarrow

    number = 0
    batches = file.iter_batches(batch_size=1024, columns=columns)
    while True:
        try:
            batch = next(batches, None)
        except (pyarrow.ArrowException, OSError) as problem:
            raise BadInput(f"{path} is damaged after row {number}: {str(problem).splitlines()[0]}") from problem
        if batch is None:
            return
        try:
            batch_rows = batch.to_pylist()
        except UnicodeDecodeError:
            batch_rows = [_parquet_row(batch.slice(place, 1)) for place in range(batch.num_rows)]
        for values in batch_rows:
            number += 1
            summary.rows_read += 1
            yield Rejected(number, values) if isinstance(values, str) else Row(number, number, values)


def _parquet_row(batch: Any) -> Mapping[str, Any] | str:
    """Return the values of a single row, or why it cannot be read."""
    try:
        values: Mapping[str, Any] = batch.to_pylist()[0]
    except UnicodeDecodeError as fault:
        return f"byte {fault.start + 1} of a text is not UTF-8"
    return values


def _listed(names: Sequence[str]) -> str:
    return ", ".join(repr(name) for name in names) or "nothing"
