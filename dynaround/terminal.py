"""What the commands of every layer share: the workspace option, progress bars, the clock, JSON output."""

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from dynaround.corpus.rejects import Rejected
    from dynaround.leaks import Leak
    from dynaround.settings import Workspace

SHOWN_REJECTS = 20
"""Rejected rows of one file that are listed on standard error."""

workspace_option = click.option(
    "-w",
    "--workspace",
    "workspace_folder",
    type=click.Path(path_type=Path),
    default=Path("."),
    show_default=True,
    help="The workspace folder.",
)
json_option = click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")


def open_workspace(folder: Path) -> "Workspace":
    """Open the workspace that a command was given."""
    from dynaround.settings import Workspace

    return Workspace(folder)


def now() -> datetime:
    """Return this moment; library functions are handed this clock, tests another."""
    return datetime.now(UTC)


def who() -> str:
    """Say who runs a command, for the events."""
    return "launcher"


def print_json(value: Any) -> None:
    """Print plain data as JSON; NaN is a bug and crashes."""
    click.echo(json.dumps(value, indent=2, allow_nan=False))


@contextmanager
def listed_rejects(path: Path) -> Iterator[Callable[[str, "Rejected"], None]]:
    """Yield a function that notes a rejected row of a corpus.

    At the end, also after an error, the first of each corpus are listed on standard error and all stand in `path`, as
    JSON lines that name their corpus. When the work ends well without any, no file is left there.
    """
    from dynaround.corpus.rejects import RejectsFile

    rejected: dict[str, list[Rejected]] = {}
    done = False
    try:
        yield lambda spec, row: rejected.setdefault(spec, []).append(row)
        done = True
    finally:
        # Only now: a progress bar would be torn apart.
        for spec, rows in rejected.items():
            for row in rows[:SHOWN_REJECTS]:
                click.echo(f"rejected: {spec}, line {row.line}: {row.reason}", err=True)
            if len(rows) > SHOWN_REJECTS:
                click.echo(f"rejected: {spec}, and {len(rows) - SHOWN_REJECTS} more; all are in {path}", err=True)
        if done or rejected:
            path.parent.mkdir(exist_ok=True)
            with RejectsFile(path) as file:
                for spec, rows in rejected.items():
                    for row in rows:
                        file(row, spec)


@contextmanager
def listed_leaks(path: Path) -> Iterator[Callable[["Leak"], None]]:
    """Yield a function that notes a sentence that is judged on elsewhere; at the end all stand in `path`, if any.

    So also after an error: many such sentences are one.
    """
    from dynaround.release_file import write_lines

    leaks: list[Leak] = []
    done = False
    try:
        yield leaks.append
        done = True
    finally:
        if leaks:
            write_lines(path, (leak._asdict() for leak in leaks))
            click.echo(f"judged on elsewhere, so not trained on: {len(leaks)} sentences, listed in {path}", err=True)
        elif done:
            path.unlink(missing_ok=True)


@contextmanager
def progress(label: str, total: int | None = None, unit: str = "it") -> Iterator[Callable[[int], None]]:
    """Show a progress bar on standard error (none where that is no terminal); yields a function that adds to it."""
    from tqdm import tqdm

    with tqdm(total=total, desc=label, unit=unit, file=sys.stderr, disable=None, leave=False) as bar:

        def advance(count: int = 1) -> None:
            bar.update(count)

        yield advance


@contextmanager
def training_progress(label: str) -> Iterator[Callable[[int, int], None]]:
    """Show a progress bar for `training.train`, with the time left."""
    from tqdm import tqdm

    with tqdm(desc=label, unit="step", file=sys.stderr, disable=None, leave=False) as bar:

        def at(done: int, steps: int) -> None:
            if bar.total != steps:
                bar.reset(total=steps)
                # A training that goes on took no time here for the steps before, so they tell nothing of the time left.
                bar.initial = bar.n = done - 1
            bar.update(done - bar.n)

        yield at
