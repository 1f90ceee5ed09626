"""A report's figures as plain data: what its tables hold, unrounded."""

from collections.abc import Sequence
from typing import Any

from rounds.report_parts import Report, Table


def figures(report: Report) -> dict[str, Any]:
    """Return title, marks, facts, and by section and table every row, column by name; an undefined figure is None."""
    return {
        "title": report.title,
        "marks": list(report.marks),
        "about": dict(report.about),
        "sections": {
            section.key: {
                "title": section.title,
                "paragraphs": list(section.paragraphs),
                "tables": {table.key: _plain(table, report.marks) for table in section.tables},
            }
            for section in report.sections
        },
    }


def _plain(table: Table, marks: Sequence[str]) -> dict[str, Any]:
    # With the marks, so that a table taken out of its report still says who answered.
    rows = [dict(zip(table.columns, row, strict=True)) for row in table.rows]
    return {"title": table.title, "marks": list(marks), "note": table.note, "rows": rows}
