"""Tables in which a figure may be undefined: the reason stands in a last column, where any row has one."""

from collections.abc import Sequence

from rounds.report_parts import Cell, Table

WHY = "why undefined"


def table_with_reasons(
    key: str,
    title: str,
    columns: tuple[str, ...],
    rows: Sequence[tuple[Cell, ...]],
    note: str | None = None,
    digits: int = 3,
) -> Table:
    """Return a table whose rows end in a reason beyond `columns`, or in None; no row with one: no such column."""
    if any(row[-1] is not None for row in rows):
        return Table(key, title, (*columns, WHY), tuple(rows), note, digits)
    return Table(key, title, columns, tuple(row[:-1] for row in rows), note, digits)
