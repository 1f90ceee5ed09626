"""Making a report: from its source, section by section, to files that are written whole or not at all."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from dynaround.database import reading
from dynaround.errors import BadInput
from dynaround.resampling import RESAMPLES
from dynaround.settings import Workspace
from rounds.report_aggregation import aggregation_section
from rounds.report_agreement import agreement_section, fooling_section
from rounds.report_authoring import authoring_section
from rounds.report_calibration import calibration_section
from rounds.report_files import published_files, source_of_files, source_of_release
from rounds.report_html import PAGE_START, html
from rounds.report_labels import about_section, crossed_section, labels_section
from rounds.report_latex import TABLES_START, latex
from rounds.report_models import models_section
from rounds.report_parts import Report
from rounds.report_people import performance_section
from rounds.report_round import source_of_round
from rounds.report_screening import screening_section
from rounds.report_slices import control_section, earlier_labels_section
from rounds.report_solved import invariants_section, solved_section
from rounds.report_source import ReportSource
from rounds.report_texts import texts_section
from rounds.report_workers import workers_section


class Made(NamedTuple):
    """A report and the files that it was written to."""

    report: Report
    files: tuple[Path, ...]


class Found(NamedTuple):
    """What a report is made from, where its page goes unless a file is named, and what must not be written over."""

    source: ReportSource
    page: Path
    kept: Sequence[Path]


def make_report(
    about: Sequence[str],
    release: Path | None,
    workspace_folder: Path,
    *,
    page: Path | None,
    tables: Path | None,
    seed: int,
) -> Made:
    """Report on a round (its number), published files (their paths) or a release, and write it.

    The workspace is opened for a round alone. Raises BadInput where not exactly one of these is named, and what
    `source_of_round`, `source_of_files`, `source_of_release` and `write_report` raise.
    """
    found = _found(about, release, workspace_folder)
    page = page or found.page
    # Before the work, which may take a minute.
    _require_places(page, tables, found.kept)
    report = report_of(found.source, seed)
    return Made(report, write_report(report, page, tables, found.kept))


def _found(about: Sequence[str], release: Path | None, workspace_folder: Path) -> Found:
    usual = Path("report.html")
    if bool(about) == (release is not None):
        raise BadInput("name one thing to report on: a round by its number, published files, or --release FOLDER")
    if release is not None:
        return Found(source_of_release(release), usual, [release])
    if not any(name.isdecimal() for name in about):
        files = published_files([Path(name) for name in about])
        return Found(source_of_files(files), usual, files)
    if len(about) > 1:
        raise BadInput(f"{' '.join(about)}: a report is on one round, or on files (write ./1 for a file called 1)")
    workspace = Workspace(workspace_folder)
    with reading(workspace.engine()) as session:
        source = source_of_round(session, int(about[0]))
    workspace.close()
    return Found(source, workspace.work / f"report-round-{int(about[0])}.html", [])


def report_of(source: ReportSource, seed: int) -> Report:
    """Build the report of a source; nothing is predicted, and the same source and seed give the same report."""
    sections = (
        about_section(source),
        labels_section(source),
        crossed_section(source),
        fooling_section(source),
        agreement_section(source, seed),
        performance_section(source, seed),
        solved_section(source),
        models_section(source, seed),
        calibration_section(source),
        workers_section(source),
        screening_section(source),
        aggregation_section(source),
        authoring_section(source),
        texts_section(source, seed),
        control_section(source, seed),
        earlier_labels_section(source),
        invariants_section(source),
    )
    made = tuple(section for section in sections if section is not None)
    drawn = ("bootstraps", f"{RESAMPLES:,} resamples, seed {seed}")
    return Report(source.title, (*source.about, drawn), made, source.marks)


def write_report(report: Report, page: Path, tables: Path | None = None, kept: Sequence[Path] = ()) -> tuple[Path, ...]:
    """Write a report as one HTML file, and its tables as LaTeX where a file for them is named; return these files.

    Both are made before either is written, and a file appears whole or not at all. Raises BadInput where a file cannot
    be there, both are one, it is one of the files, or in one of the folders, that are to be `kept`, or where something
    else than an earlier report stands.
    """
    _require_places(page, tables, kept)
    made = {page: html(report)} if tables is None else {page: html(report), tables: latex(report)}
    for path, text in made.items():
        _write_whole(path, text)
    return tuple(made)


def _require_places(page: Path, tables: Path | None, kept: Sequence[Path]) -> None:
    starts = {page: PAGE_START} if tables is None else {page: PAGE_START, tables: TABLES_START}
    if tables is not None and page.resolve() == tables.resolve():
        raise BadInput(f"{page} cannot hold both the report and its LaTeX tables; name two files")
    sources = {path.resolve() for path in kept}
    for path, start in starts.items():
        if path.resolve() in sources or path.resolve().parent in sources:
            raise BadInput(f"{path} belongs to what is reported on; name another file")
        if path.is_dir() or not path.resolve().parent.is_dir():
            reason = "is a folder" if path.is_dir() else "is in no folder that exists"
            raise BadInput(f"{path} {reason}; name a file in a folder that is there")
        if path.exists() and not _begins(path, start):
            raise BadInput(f"{path} holds something else than an earlier report; name another file, or delete it first")


def _begins(path: Path, start: str) -> bool:
    """Whether a file is empty or begins as a report does: a slip of --out may not cost a database."""
    if not path.is_file():
        return False
    with path.open("rb") as handle:
        return handle.read(len(start)) in (b"", start.encode())


def _write_whole(path: Path, text: str) -> None:
    # Each process has a part of its own: two that write one report at the same time must not mix.
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        with part.open("w", encoding="utf-8", newline="\n") as handle:
            handle.write(text)
            handle.flush()
            os.fsync(handle.fileno())
        os.replace(part, path)
    finally:
        part.unlink(missing_ok=True)
