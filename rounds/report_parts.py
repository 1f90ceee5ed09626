"""What a report is made of, as plain values: sections of paragraphs, tables and plots. Renderers know nothing else.

Also what all renderers share: how a text and a figure are written, and which columns hold figures.
"""

import math
import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from decimal import ROUND_HALF_UP, Decimal
from typing import Literal

Cell = str | int | float | None
"""What stands in a table: text is escaped by every renderer; None is shown as a dash."""

PlotKind = Literal["bars", "stacked", "grid", "points", "reliability", "histogram"]


@dataclass(frozen=True)
class Table:
    """A table of figures. The first column names the row; `note` stands below, such as what a dash means.

    Floats are shown with `digits` places after the point. `key` is unique among the tables of a report: `table-KEY` is
    the id of the table in HTML, `tab:KEY` its label in LaTeX.
    """

    key: str
    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    note: str | None = None
    digits: int = 3

    def __post_init__(self) -> None:
        ragged = [row for row in self.rows if len(row) != len(self.columns)]
        if ragged:
            raise ValueError(f"table {self.key} has {len(self.columns)} columns and the row {ragged[0]!r}")


@dataclass(frozen=True)
class Series:
    """One row of marks in a plot, with one value per category (or per x); intervals as (low, high), None: without."""

    name: str
    values: tuple[float | None, ...]
    intervals: tuple[tuple[float, float] | None, ...] | None = None


@dataclass(frozen=True)
class Plot:
    """A picture of the table with the key `table`, which holds the same figures in numbers.

    - bars: categories by series, side by side; stacked: shares of 1, one bar a category
    - grid: a matrix, categories are its columns, each series one row, the value written into each cell
    - points: one point with its interval per category and series
    - reliability: x the mean probability of a bin, one series of accuracies, and the diagonal
    - histogram: bars without gaps, categories are the bins' names, each series a row of bars of its own

    `x_name` is what the categories (of a reliability curve: `x`) are, `y_name` what the values are; where the names of
    the categories need the room, they stand on the upright axis all the same. Whole values are written without a
    point, others with `digits` places after it.
    """

    key: str
    kind: PlotKind
    title: str
    table: str
    categories: tuple[str, ...]
    series: tuple[Series, ...]
    x_name: str = ""
    y_name: str = ""
    x: tuple[float, ...] | None = None
    y_range: tuple[float, float] | None = None
    digits: int = 3

    def __post_init__(self) -> None:
        places = self.x if self.kind == "reliability" else self.categories
        if places is None:
            raise ValueError(f"plot {self.key} is a reliability curve without x")
        for series in self.series:
            intervals = series.values if series.intervals is None else series.intervals
            if not len(series.values) == len(intervals) == len(places):
                raise ValueError(f"plot {self.key} has {len(places)} places, its series {series.name!r} another number")
            numbers = [value for value in series.values if value is not None]
            if not all(map(math.isfinite, numbers)):
                raise ValueError(f"plot {self.key} has a value that is no number in its series {series.name!r}")


@dataclass(frozen=True)
class Section:
    """One part of a report under its own heading."""

    key: str
    title: str
    paragraphs: tuple[str, ...] = ()
    tables: tuple[Table, ...] = ()
    plots: tuple[Plot, ...] = ()


@dataclass(frozen=True)
class Report:
    """A whole report. `marks` are warnings that stand on top and beside every figure's title, such as a crowd's.

    `about` are facts of the source, name by name (round, task, target model, hashes).
    """

    title: str
    about: tuple[tuple[str, str], ...]
    sections: tuple[Section, ...]
    marks: tuple[str, ...] = field(default=())

    def __post_init__(self) -> None:
        tables = [table.key for section in self.sections for table in section.tables]
        plots = [plot for section in self.sections for plot in section.plots]
        for keys in (tables, [plot.key for plot in plots], [section.key for section in self.sections]):
            wrong = [key for key, count in Counter(keys).items() if count > 1 or not _KEY.fullmatch(key)]
            if wrong:
                raise ValueError(f"key {wrong[0]!r} is used twice, or is no word of letters, digits and - _ . :")
        unknown = [plot.table for plot in plots if plot.table not in tables]
        if unknown:
            raise ValueError(f"a plot shows the table {unknown[0]!r}, which the report does not have")


_KEY = re.compile(r"[A-Za-z][A-Za-z0-9_.:-]*")
_BREAKS = re.compile(r"[\t-\r\x1c-\x1e\x85\u2028\u2029]+")
# What would hide or reorder other text, or may not stand in XML: control and direction characters, halves of pairs.
_UNSEEN = re.compile(
    "[\x00-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\ud800-\udfff\ufeff\ufffe\uffff]"
)
_FIGURE = re.compile(r"(?=\D*\d)[-+−±–.,;:/%()\[\]\d\s]+")


def plain_text(text: str) -> str:
    """Return a text on one line in which every character is seen: a control character as its code, such as [U+0000]."""
    return _UNSEEN.sub(lambda found: f"[U+{ord(found[0]):04X}]", _BREAKS.sub(" ", text))


def cell_text(cell: Cell, digits: int) -> str:
    """Return what is written for a cell: counts in groups of three, floats to `digits` places, a dash for None.

    Halves are rounded away from zero, as papers do: .8775, a recall of 1,053 in 1,200, is .878 though the float that
    stands for it lies below. What would round to zero without being zero is bounded: <0.001, or >−0.001.
    Raises ValueError for a float that is no number: a missing value is None.
    """
    if cell is None:
        return "–"
    if isinstance(cell, str):
        return plain_text(cell)
    if isinstance(cell, int):
        return f"{cell:,}".replace("-", "−")
    if not math.isfinite(cell):
        raise ValueError(f"{cell} stands in a report; a missing value is None")
    smallest = Decimal(1).scaleb(-digits)
    rounded = Decimal(repr(float(cell))).quantize(smallest, ROUND_HALF_UP)
    if cell != 0 and rounded == 0:
        # A probability of .0002 is not 0.
        return f"<{smallest}" if cell > 0 else f">−{smallest}"
    return f"{rounded:z,}".replace("-", "−")


def figure_columns(table: Table) -> tuple[bool, ...]:
    """Say of each column but the first whether most of its cells are figures: numbers, or intervals as text."""
    return tuple(place > 0 and _mostly_figures(row[place] for row in table.rows) for place in range(len(table.columns)))


def _mostly_figures(cells: Iterable[Cell]) -> bool:
    given = [not isinstance(cell, str) or bool(_FIGURE.fullmatch(cell)) for cell in cells if cell is not None]
    return 2 * sum(given) > len(given)


def table_note(table: Table) -> str | None:
    """Return what stands below a table; one without a note of its own still says what a dash in it means."""
    dash = any(cell is None for row in table.rows for cell in row)
    return table.note or ("–: no value." if dash else None)
