"""Commands that train: a model, a model once more, and one from scratch beside one that goes on."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dynaround.terminal import (
    json_option,
    listed_leaks,
    listed_rejects,
    now,
    open_workspace,
    print_json,
    training_progress,
    who,
    workspace_option,
)
from dynaround.training_settings import TrainingSettings

if TYPE_CHECKING:
    from dynaround.model_training import Heard, Order
    from dynaround.settings import Workspace

USUAL = TrainingSettings()

CORPUS_HELP = (
    "A labelled corpus: sst:FOLDER, csv:FILE, tsv:FILE, jsonl:FILE, dynasent:FILE, release:FOLDER (its train split), "
    "reviews by their stars (yelp:FILE, amazon:FILE, parquet:FILE), hf:NAME#SPLIT. Give it several times for several."
)


def _order_options(command: Any) -> Any:
    """Add what a model is made from: options of every command that trains on a mixture."""
    options = [
        workspace_option,
        click.option("--corpus", "corpora", multiple=True, metavar="KIND:PATH", help=CORPUS_HELP),
        click.option(
            "--recipe", "recipe_file", type=click.Path(path_type=Path),
            help="A TOML file with corpora, weights and settings in place of --corpus; docs/training.md shows one.",
        ),
        click.option("--name", required=True, help="Name of the new model; its folder is models/NAME."),
        click.option(
            "--encoder", help="minilm, a folder, or a name on a model hub.  [default: the workspace's setting]"
        ),
        click.option("--task", "task_name", help="Kind of task.  [default: sentiment]"),
        click.option(
            "--labels", type=click.Choice(["majority", "distribution", "soft"]),
            help="One row with the gold label, one row a response, or one row with the shares of the responses.  "
            "[default: majority]",
        ),
        click.option(
            "--mixed", type=click.Choice(["both", "drop"]),
            help="Of the responses, one that the model lacks counts for each side, or not at all.  [default: both]",
        ),
        click.option(
            "--evaluate-on", "evaluate_on", multiple=True, metavar="KIND:PATH",
            help="A set that the model will be judged on: what stands there is left out, like dev and test of every "
            "round.",
        ),
        click.option(
            "--stop-on", "stop_on", multiple=True, metavar="KIND:FILE",
            help="Keep the weights that are best on this labelled file, in place of held-out rows; the manifest says "
            "so, and the model is not judged on it.",
        ),
        click.option(
            "--allow-leaks", is_flag=True,
            help="Go on, without them, where more than 0.5 % of a corpus are judged on elsewhere; marks the model.",
        ),
        click.option("--epochs", type=click.IntRange(1), show_default=str(USUAL.epochs)),
        click.option(
            "--learning-rate", type=click.FloatRange(0, min_open=True), show_default=str(USUAL.learning_rate)
        ),
        click.option("--batch-rows", type=click.IntRange(1), show_default=str(USUAL.batch_rows)),
        click.option("--max-tokens", type=click.IntRange(8), show_default=str(USUAL.max_tokens)),
        click.option(
            "--held-out-share", type=click.FloatRange(0, 0.5, max_open=True), show_default=str(USUAL.held_out_share),
            help="Share of the rows, in whole reviews, that early stopping and the temperature use.",
        ),
        click.option(
            "--precision", type=click.Choice(["auto", "float32", "bfloat16"]), show_default=USUAL.precision,
            help="auto: bfloat16 where the processor or card computes in it.",
        ),
        click.option("--seed", type=int, show_default=str(USUAL.seed)),
    ]  # fmt: skip
    for option in reversed(options):
        command = option(command)
    return command


@click.command(
    epilog="Example: dynaround train --recipe model-1.toml --name model-1   or: "
    "dynaround train --corpus sst:trees --corpus release:releases/round-1 --name model-1   or, on several cards: "
    "accelerate launch -m dynaround train --recipe model-1.toml --name model-1",
)
@_order_options
@click.option(
    "--continue-from", metavar="MODEL",
    help="Go on from a model's weights: only to reproduce the published comparison; marks the model.",
)  # fmt: skip
@json_option
def train(workspace_folder: Path, name: str, continue_from: str | None, as_json: bool, **given: Any) -> None:
    """Train a model from the pretrained encoder on labelled corpora, named one by one or in a recipe.

    What is given here wins over the recipe. The same corpora, settings, seed and thread count give the same weights.
    A training that was killed goes on when the same command is run again.
    """
    from dynaround.model_training import train_model
    from dynaround.processes import is_main

    workspace = open_workspace(workspace_folder)
    order = _order(continue_from=continue_from, **given)
    with _heard(workspace, f"train-{name}", quiet=as_json) as heard:
        manifest = train_model(workspace, name, order, heard)
    if not is_main():
        return
    if as_json:
        print_json(manifest)
        return
    if any(corpus["rejected"] for corpus in manifest["origin"]["corpora"]):
        click.echo(f"rejected lines: {workspace.work / f'train-{name}.rejects.jsonl'}")
    for line in _outcome_lines(manifest):
        click.echo(line)
    click.echo(f"model {name} is ready: {manifest['rows']} rows, hash {manifest['hash'][:12]}")


def _order(*, recipe_file: Path | None, corpora: tuple[str, ...], **given: Any) -> "Order":
    from dynaround.model_training import Order
    from dynaround.recipe import recipe_of

    mixture = {key: given.pop(key) for key in ("labels", "mixed", "evaluate_on")}
    recipe, written = recipe_of(recipe_file, corpora, **mixture)
    order = {key: given.pop(key) for key in ("task_name", "encoder", "allow_leaks", "stop_on", "continue_from")}
    settings = {key: value for key, value in given.items() if value is not None}
    return Order(recipe=recipe, settings=settings, written=written, **order)


@contextmanager
def _heard(workspace: "Workspace", label: str, *, quiet: bool) -> Iterator["Heard"]:
    """Yield who is told of a training: lists in the work folder, the mixture on the screen, a bar."""
    from dynaround.mixture_report import mixture_lines
    from dynaround.model_training import Heard
    from dynaround.processes import is_main

    if not is_main():
        yield Heard(lambda spec, rejected: None, lambda done, steps: None)
        return

    def show(origin: Mapping[str, Any]) -> None:
        for line in () if quiet else mixture_lines(origin):
            click.echo(line)

    with (
        listed_rejects(workspace.work / f"{label}.rejects.jsonl") as on_reject,
        listed_leaks(workspace.work / f"{label}.leaks.jsonl") as on_leak,
        training_progress(label.replace("-", " ", 1)) as on_step,
    ):
        yield Heard(on_reject, on_step, on_leak, show)


def _outcome_lines(manifest: Mapping[str, Any]) -> Iterator[str]:
    steps, stopping, temperature = manifest["steps"], manifest["early_stopping"], manifest["temperature"]
    yield f"{steps['taken']} of {steps['planned']} steps in {manifest['precision']}, {manifest['threads']} threads"
    if stopping is not None:
        where = f"{', '.join(stopping['on'])}, after step {stopping['best_step']}"
        yield f"macro F1 {stopping['macro_f1']:.3f} on {where}: those weights are kept"
    if temperature is not None:
        yield f"temperature {temperature['value']:.3f}, from {temperature['rows']} {temperature['fitted_on']}"


@click.command(epilog="Example: dynaround reproduce model-1")
@click.argument("name", metavar="MODEL")
@workspace_option
@click.option("--threads", type=click.IntRange(1), help="Another number of threads than the model was trained with.")
@json_option
def reproduce(name: str, workspace_folder: Path, threads: int | None, as_json: bool) -> None:
    """Train MODEL again from its manifest alone, say what is different here, and compare.

    Exit code 1 where nothing that decides over the weights differs and they are other ones all the same.
    """
    from dynaround.reproduction import reproduce as train_again
    from dynaround.reproduction import reproduction_lines

    workspace = open_workspace(workspace_folder)
    with _heard(workspace, f"reproduce-{name}", quiet=True) as heard:
        result = train_again(workspace, name, heard, threads=threads)
    if as_json:
        scores = result.scores and result.scores._asdict()
        print_json({**result._asdict(), "scores": scores, "same_weights": result.same})
    else:
        for line in reproduction_lines(name, result):
            click.echo(line)
    if not result.same and not any(result.different.values()):
        raise SystemExit(1)


@click.command(
    epilog="Example: dynaround ablate --recipe model-1.toml --name model-1 --continue-from model-0 "
    "--on sst:trees/dev.txt --on release:releases/round-1",
)
@_order_options
@click.option("--continue-from", metavar="MODEL", required=True, help="The model that the continued one goes on from.")
@click.option(
    "--on", "specs", multiple=True, required=True, metavar="KIND:PATH",
    help="A labelled set to judge both on, also those of earlier rounds; release:FOLDER stands for its dev and test.",
)  # fmt: skip
@json_option
def ablate(
    workspace_folder: Path, name: str, continue_from: str, specs: tuple[str, ...], as_json: bool, **given: Any
) -> None:
    """Train NAME-scratch and NAME-continued on the same data and judge both on the same sets.

    Every model of a round starts from scratch; this is how much that costs or brings. Readings are stored.
    """
    from dynaround.ablation import ablation_lines, train_arms
    from dynaround.models import evaluate_models, reading_lines

    workspace = open_workspace(workspace_folder)
    order = _order(continue_from=None, **given)
    with _heard(workspace, f"train-{name}", quiet=as_json) as heard:
        arms = train_arms(workspace, name, continue_from, order, heard)
        summaries = evaluate_models(
            workspace,
            arms,
            specs,
            without=(),
            seed=0,
            who=who(),
            now=now,
            on_reject=heard.on_reject,
            on_reading=lambda: None,
            task_name=order.task_name,
        )
    if as_json:
        print_json(summaries)
        return
    for line in [*reading_lines(summaries), *ablation_lines(arms, summaries)]:
        click.echo(line)
