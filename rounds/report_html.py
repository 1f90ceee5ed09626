"""A report as one HTML file: no script, nothing from outside, and a policy that forbids both."""

import base64
import hashlib
import re
from importlib.resources import files
from typing import Any, NamedTuple

import jinja2
from markupsafe import Markup

from rounds.report_parts import Cell, Plot, Report, Table, cell_text, figure_columns, plain_text, table_note
from rounds.report_plots import svg

PAGE_START = "<!doctype html>"
"""How every page begins."""

_KINDS = {
    "bars": "Bars",
    "stacked": "Stacked bars of shares",
    "grid": "A grid of values",
    "points": "Points with their intervals",
    "reliability": "A reliability curve",
    "histogram": "A histogram",
}
_LONG = 40
"""A text in a table that is longer than this may be broken anywhere."""

_PAPER = 110
"""About the characters that a line of a printed page holds at the usual size of tables."""

_WIDTH = 704
"""The width of a paragraph, in CSS pixels."""


class Picture(NamedTuple):
    """One drawn plot: its number, the picture as a data address, its size in CSS pixels, and what it shows in words."""

    number: int
    address: str
    width: int
    height: int
    description: str


def html(report: Report) -> str:
    """Return a report as one HTML document; the same report gives the same bytes.

    Every text is escaped, and control and direction characters are shown by their codes. Plots are images, so that
    their style attributes need no exception from the policy, which allows the one style sheet by its hash.
    """
    style = (files("rounds") / "templates" / "report.css").read_text(encoding="utf-8")
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("rounds", "templates"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_finalize,
    )
    plots = [plot for section in report.sections for plot in section.plots]
    tables = [table for section in report.sections for table in section.tables]
    return environment.get_template("report.html").render(
        report=report,
        policy=_policy(style),
        style=Markup(style),
        table_numbers={table.key: number for number, table in enumerate(tables, 1)},
        pictures={plot.key: _picture(plot, report.marks, number) for number, plot in enumerate(plots, 1)},
        shown=_shown,
        is_long=_is_long,
        is_word=_is_word,
        is_wide=_is_wide,
        figure_columns=figure_columns,
        table_note=table_note,
    )


def _finalize(value: Any) -> Any:
    """Clean every text on its way into the page, so that no place in the template can forget to."""
    return plain_text(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def _policy(style: str) -> str:
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    return f"default-src 'none'; style-src 'sha256-{digest}'; img-src data:; base-uri 'none'; form-action 'none'"


def _picture(plot: Plot, marks: tuple[str, ...], number: int) -> Picture:
    drawn = svg(plot, marks)
    address = "data:image/svg+xml;base64," + base64.b64encode(drawn.encode()).decode()
    width, height = _size(drawn)
    return Picture(number, address, width, height, _description(plot, marks))


def _size(drawn: str) -> tuple[int, int]:
    """Return the size that keeps the room for a picture: as wide as a paragraph, in the picture's own proportion."""
    found = re.search(r'viewBox="0 0 ([\d.]+) ([\d.]+)"', drawn)
    assert found is not None
    return _WIDTH, round(_WIDTH * float(found[2]) / float(found[1]))


def _description(plot: Plot, marks: tuple[str, ...]) -> str:
    names = ", ".join(series.name for series in plot.series)
    axes = " by ".join(name for name in (plot.y_name, plot.x_name) if name)
    parts = (f"{_KINDS[plot.kind]}: {plot.title}", axes, names and f"series: {names}", *marks)
    return ". ".join(part for part in parts if part) + "."


def _shown(cell: Cell, table: Table) -> str | Markup:
    """Return what is written in a cell; a dash is read out as "no value"."""
    if cell is None:
        return Markup('<span aria-hidden="true">–</span><span class="unseen">no value</span>')
    return cell_text(cell, table.digits)


def _is_long(cell: Cell) -> bool:
    return isinstance(cell, str) and len(cell) > _LONG


def _is_word(cell: Cell) -> bool:
    """Say whether a text stays on one line on a screen: a name such as model-1 would be broken at its hyphen."""
    return isinstance(cell, str) and len(cell) <= _LONG and " " not in cell


def _is_wide(table: Table) -> bool:
    """Say whether a table is printed smaller, because its columns side by side are wider than paper."""
    texts = [[cell_text(cell, table.digits) for cell in row] for row in table.rows]
    columns = zip(table.columns, *texts, strict=True)
    return sum(min(max(map(len, column)), _LONG // 2) + 2 for column in columns) > _PAPER
