"""Figures of a report, and looking them up: the one row of a table whose columns have these values."""

from collections.abc import Callable, Mapping
from typing import Any

from dynaround.database import reading
from dynaround.settings import Workspace
from rounds.report_figures import figures
from rounds.report_parts import Report, Section
from rounds.report_round import source_of_round
from rounds.report_source import ReportSource
from rounds.reporting import report_of

CROWD = "a scripted crowd (not people)"


def reported(workspace: Workspace, number: int = 1) -> dict[str, Any]:
    """Return the figures of the report on a round."""
    with reading(workspace.engine()) as session:
        source = source_of_round(session, number)
    return figures(report_of(source, seed=0))


def reported_section(
    workspace: Workspace, section: Callable[[ReportSource], Section | None], number: int = 1
) -> dict[str, Any]:
    """Return the figures of one section of the report on a round, without the time that the others take."""
    with reading(workspace.engine()) as session:
        source = source_of_round(session, number)
    made = section(source)
    return figures(Report(source.title, source.about, () if made is None else (made,), source.marks))


def rows(figures: Mapping[str, Any], table: str) -> list[dict[str, Any]]:
    """Return all rows of a table, wherever it stands."""
    found = [s["tables"][table]["rows"] for s in figures["sections"].values() if table in s["tables"]]
    assert len(found) == 1, f"{len(found)} tables are called {table}"
    return found[0]


def row(figures: Mapping[str, Any], table: str, *first: Any) -> dict[str, Any]:
    """Return the row of a table whose first columns are `first`."""
    found = [one for one in rows(figures, table) if tuple(one.values())[: len(first)] == first]
    assert len(found) == 1, f"{len(found)} rows of {table} begin with {first}"
    return found[0]


def counts(figures: Mapping[str, Any], table: str, *first: Any) -> list[Any]:
    """Return what follows `first` in its row."""
    return list(row(figures, table, *first).values())[len(first) :]
