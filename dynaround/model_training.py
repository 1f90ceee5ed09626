"""Trains a model of a workspace: a mixture is read, what is judged on is kept out, and the loop is run on the rest."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from dynaround.corpus.labelled import labelled_source
from dynaround.corpus.rejects import Rejected
from dynaround.database import reading
from dynaround.early_stopping import DevSet
from dynaround.encoders import find_encoder
from dynaround.errors import BadInput
from dynaround.evaluation import read_set
from dynaround.folders import file_hash, read_manifest, release_manifest
from dynaround.judged_texts import barred_in_rounds, barred_in_sets
from dynaround.leaks import BarredTexts, Leak
from dynaround.mixture import TrainingRow, mix, origin_of, plain_row
from dynaround.processes import is_main
from dynaround.recipe import RECIPE_NAME, MixtureRecipe
from dynaround.settings import Workspace
from dynaround.splits import HELD_OUT
from dynaround.task import Task
from dynaround.tasks import DEFAULT, get_task
from dynaround.training import Recipe, train
from dynaround.training_recipe import Parent
from dynaround.training_settings import TrainingSettings

EARLY_STOPPING = "early stopping"


@dataclass(frozen=True)
class Order:
    """What a person asks for with one training.

    `settings` are fields of `TrainingSettings` and win over those of the recipe; the thread count is the workspace's,
    unless it is among them. `stop_on` are labelled files that early stopping judges on in place of held-out rows;
    `continue_from` is a model of the workspace. `written` is the text of the recipe's file, kept with the model.
    """

    recipe: MixtureRecipe
    settings: Mapping[str, Any]
    task_name: str | None = None
    encoder: str | None = None
    allow_leaks: bool = False
    stop_on: Sequence[str] = ()
    continue_from: str | None = None
    written: str = ""


class Heard(NamedTuple):
    """Whom a training tells: of rejected rows by corpus, leaks, the `origin` before the first step, and each step."""

    on_reject: Callable[[str, Rejected], None]
    on_step: Callable[[int, int], None]
    on_leak: Callable[[Leak], None] = lambda leak: None
    on_mixture: Callable[[Mapping[str, Any]], None] = lambda origin: None


class Prepared(NamedTuple):
    """The rows of one training and all else it is made from."""

    rows: list[TrainingRow]
    recipe: Recipe


def train_model(workspace: Workspace, name: str, order: Order, heard: Heard) -> dict[str, Any]:
    """Train `models/NAME` of a workspace as ordered and return its manifest.

    Items of dev and test of the workspace's rounds, and of all sets named in the order, are never trained on.
    """
    folder = model_folder(workspace, name)
    # Under `accelerate launch` the other processes wait for the first, which holds the lock.
    with workspace.exclusively(f"train-{name}") if is_main() else nullcontext():
        rows, recipe = prepared(workspace, name, order, heard)
        return train(rows, recipe, folder, heard.on_step)


def prepared(workspace: Workspace, name: str, order: Order, heard: Heard) -> Prepared:
    """Read the mixture and the sets of an order; raises what their readers raise."""
    task, chosen = get_task(order.task_name or DEFAULT), order.recipe
    encoder = find_encoder(order.encoder or workspace.settings.encoder)
    dev_sets = [_dev_set(workspace, spec, task, heard) for spec in order.stop_on]
    with reading(workspace.engine()) as session:
        barred = [*barred_in_rounds(session)]
    barred += barred_in_sets([*chosen.evaluate_on, *order.stop_on], task, workspace.recorded)
    mixture = mix(
        chosen.corpus,
        task,
        mode=chosen.labels,
        mixed=chosen.mixed,
        draw_seed=chosen.draw_seed,
        on_reject=heard.on_reject,
        recorded=workspace.recorded,
        barred=BarredTexts(barred),
        on_leak=heard.on_leak,
        allow_leaks=order.allow_leaks,
    )
    origin = origin_of(mixture, chosen.placed(workspace.recorded))
    heard.on_mixture(origin)
    settings = {"threads": workspace.settings.threads, **chosen.training, **order.settings}
    recipe = Recipe(
        name=name,
        task=task.name,
        labels=task.model_labels,
        encoder=encoder,
        settings=TrainingSettings(**settings),
        origin=origin,
        review_ids=sorted(mixture.review_ids),
        selected_on=[chosen_on for _, chosen_on in dev_sets],
        kept_files={RECIPE_NAME: order.written} if order.written else {},
        groups=mixture.reviews,
        dev_sets=[dev_set for dev_set, _ in dev_sets],
        parent=None if order.continue_from is None else _parent(workspace, order.continue_from),
    )
    return Prepared(mixture.rows, recipe)


def _dev_set(workspace: Workspace, spec: str, task: Task, heard: Heard) -> tuple[DevSet, dict[str, str]]:
    """Return a set for early stopping and what `selected_on` says of it; the test of a round is refused."""
    path = labelled_source(spec).path
    if path.name.partition(".")[0] == HELD_OUT[-1] and release_manifest(path.parent) is not None:
        raise BadInput(
            f"{spec} is the {HELD_OUT[-1]} split of a release, on which no model is chosen; name its {HELD_OUT[0]}"
        )
    items = read_set(spec, task, partial(heard.on_reject, spec)).items
    recorded = workspace.recorded(spec)
    rows = [plain_row(item.text, str(item.gold)) for item in items]
    return DevSet(recorded, rows), {"use": EARLY_STOPPING, "spec": recorded, "sha256": file_hash(path)}


def _parent(workspace: Workspace, name: str) -> Parent:
    folder = model_folder(workspace, name)
    return Parent(name, read_manifest(folder)["hash"], folder)


def model_folder(workspace: Workspace, name: str) -> Path:
    """Return the folder of a model; raise BadInput for a name that is no plain folder name."""
    if not name or name != Path(name).name or name.startswith("."):
        raise BadInput(f"model name {name!r} is no plain folder name; take letters, digits, - and _")
    return workspace.models / name
