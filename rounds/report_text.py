"""A report in the terminal: marks, then the tables of each section in aligned columns."""

from collections.abc import Iterator, Sequence

from rounds.report_parts import Report, Table, cell_text, figure_columns, plain_text, table_note

WIDEST = 48
"""The most characters of one cell; a longer text ends in an ellipsis, since the HTML report has it whole."""


def text(report: Report) -> Iterator[str]:
    """Yield the lines of a report: its marks, facts, and the tables of each section; plots have their tables.

    Control characters, also those that a terminal would obey, are shown by their codes.
    """
    yield plain_text(report.title)
    for mark in report.marks:
        yield f"! {plain_text(mark)}"
    for name, value in report.about:
        yield f"{plain_text(name)}: {plain_text(value)}"
    for section in report.sections:
        if section.tables:
            yield ""
            yield plain_text(section.title).upper()
        for table in section.tables:
            yield ""
            yield from _table_lines(table, report.marks)


def _table_lines(table: Table, marks: Sequence[str]) -> Iterator[str]:
    rows = [[_shortened(plain_text(column)) for column in table.columns]]
    rows += [[_shortened(cell_text(cell, table.digits)) for cell in row] for row in table.rows]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    figures = figure_columns(table)
    yield plain_text(table.title + "".join(f" ({mark})" for mark in marks))
    for place, row in enumerate(rows):
        cells = zip(row, widths, figures, strict=True)
        yield "  ".join(cell.rjust(width) if figure else cell.ljust(width) for cell, width, figure in cells).rstrip()
        if place == 0:
            yield "  ".join("-" * width for width in widths)
    note = table_note(table)
    if note is not None:
        yield plain_text(note)


def _shortened(text: str) -> str:
    return text if len(text) <= WIDEST else text[: WIDEST - 1] + "…"
