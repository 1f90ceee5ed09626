"""CSV files that the launcher brings in, for results and check items alike: their columns, and one line at a time."""

from collections.abc import Sequence
from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel, ValidationError

from dynaround.corpus.rejects import ReadSummary
from dynaround.corpus.rows import Row, Table, open_table
from dynaround.corpus.sources import Source, check_file
from dynaround.errors import BadInput

Line = TypeVar("Line", bound=BaseModel)


def open_file(path: Path, columns: Sequence[str]) -> Table:
    """Open a CSV file that has these columns, and perhaps others; raise BadInput for one that has not, or no file."""
    check_file(path)
    table = open_table(Source("csv", path), ReadSummary())
    missing = [column for column in columns if column not in table.columns]
    if missing:
        raise BadInput(f"{path} has no column {missing[0]} (found: {', '.join(table.columns)}); add it")
    return table


def read_line(kind: type[Line], row: Row) -> Line:
    """Pass a row through the plain model of its kind of file; raise BadInput with the field that is wrong."""
    try:
        return kind.model_validate(row.values)
    except ValidationError as error:
        first = error.errors()[0]
        raise BadInput(f"{'.'.join(map(str, first['loc']))}: {first['msg']}") from error
