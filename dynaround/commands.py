"""Commands of the core: read the options, call one library function, print."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from dynaround.terminal import (
    json_option,
    listed_rejects,
    now,
    open_workspace,
    print_json,
    progress,
    who,
    workspace_option,
)

if TYPE_CHECKING:
    from dynaround.human import MixedGold


@click.command(epilog="Example: dynaround init my-benchmark")
@click.argument("folder", type=click.Path(path_type=Path), default=Path("."))
def init(folder: Path) -> None:
    """Make a workspace in FOLDER: database, folders, and a config file with comments.

    In an existing workspace it brings the database up to date and changes nothing else.
    """
    from dynaround.settings import create_workspace

    workspace = create_workspace(folder)
    click.echo(f"workspace {workspace.root} is ready; next: dynaround train --help")


@click.command(
    epilog="Example: dynaround evaluate model-0 model-1 --on sst:trees/dev.txt --on release:releases/round-1",
)
@click.argument("models", nargs=-1, required=True)
@workspace_option
@click.option(
    "--on", "specs", multiple=True, required=True, metavar="KIND:PATH",
    help="A labelled set; release:FOLDER stands for its dev and its test.",
)  # fmt: skip
@click.option(
    "--without", "without", multiple=True, metavar="KIND:PATH",
    help="Leave out every sentence that also stands in this set (release:FOLDER: in any of its files).",
)  # fmt: skip
@click.option(
    "--mixed-gold", type=click.Choice(["drop", "keep"]), default="drop", show_default=True,
    help="Sentences whose gold label the model lacks: left out of the score of those who labelled, or kept.",
)  # fmt: skip
@click.option(
    "--shuffle-seed", type=click.IntRange(0),
    help="Score those who labelled also by the published procedure, one seeded shuffle (published seed: 1).",
)  # fmt: skip
@click.option("--task", "task_name", help="Kind of task.  [default: sentiment]")
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="Seed of the bootstrap.")
@json_option
def evaluate(
    models: tuple[str, ...],
    workspace_folder: Path,
    specs: tuple[str, ...],
    without: tuple[str, ...],
    mixed_gold: "MixedGold",
    shuffle_seed: int | None,
    task_name: str | None,
    seed: int,
    as_json: bool,
) -> None:
    """Judge models on labelled sets, beside the people or the crowd who labelled them.

    Intervals are 95 % percentile bootstraps over reviews. Every reading is stored with its predictions.
    """
    from dynaround.models import evaluate_models, reading_lines

    workspace = open_workspace(workspace_folder)
    rejects = workspace.work / "evaluate.rejects.jsonl"
    with listed_rejects(rejects) as on_reject, progress("evaluate", unit="reading") as advance:
        summaries = evaluate_models(
            workspace,
            models,
            specs,
            without=without,
            mixed_gold=mixed_gold,
            shuffle_seed=shuffle_seed,
            task_name=task_name,
            seed=seed,
            who=who(),
            now=now,
            on_reject=on_reject,
            on_reading=lambda: advance(1),
        )
    if as_json:
        print_json(summaries)
        return
    for line in reading_lines(summaries):
        click.echo(line)
    if any(summary["rejected"] for summary in summaries):
        click.echo(f"rejected lines: {rejects}")


@click.command(epilog="Example: dynaround check releases/round-1")
@click.argument("paths", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--task", "task_name", help="Kind of task.  [default: what the manifest says, else sentiment]")
@json_option
def check(paths: tuple[Path, ...], task_name: str | None, as_json: bool) -> None:
    """Say which promises a release keeps: a FOLDER of ours, or published FILEs or a FOLDER of them.

    Published files are told apart by train, dev or test in their names, and each round is checked by itself.
    Exit code 1 where a promise is broken.
    """
    from dynaround.models import check_paths

    results = check_paths(paths, task_name)
    if as_json:
        print_json([result._asdict() for result in results])
    else:
        for result in results:
            click.echo(f"{result.status:22} {result.name} ({result.required_by}): {result.detail}")
        counts = {
            status: sum(r.status == status for r in results) for status in dict.fromkeys(r.status for r in results)
        }
        click.echo("; ".join(f"{count} {status}" for status, count in counts.items()))
    if any(result.status == "fails" for result in results):
        raise SystemExit(1)
