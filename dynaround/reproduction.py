"""Trains a model again from its manifest alone and compares: what is different here, and what came out."""

import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from dynaround.checkpoints import differences
from dynaround.early_stopping import held_out
from dynaround.encoders import WEIGHTS
from dynaround.errors import BadInput
from dynaround.folders import read_manifest, require_unchanged
from dynaround.model_training import Heard, Order, Prepared, model_folder, prepared
from dynaround.recipe import RECIPE_NAME, MixtureRecipe
from dynaround.scoring import score
from dynaround.settings import Workspace
from dynaround.target_model import TargetModel
from dynaround.training import train

KINDS = ("inputs", "processor features", "torch", "thread count")
"""What decides over the weights to the last bit."""
_PROCESSOR = ("processor", "precision", "device", "processes")
_IGNORED = ("name", "hash", "files", "kind", "steps", "held_out", "early_stopping", "temperature", "class_balance")


class HeldOutScores(NamedTuple):
    """Macro F1 of the model and of the one trained again, on the same rows, named."""

    name: str
    rows: int
    original: float
    again: float


class Reproduction(NamedTuple):
    """What is different here, by kind (those of `KINDS`), and what came out.

    `scores` is None where the weights are the same, and where the model has neither held-out rows nor dev sets.
    """

    different: Mapping[str, Sequence[str]]
    original_weights: str
    weights: str
    scores: HeldOutScores | None

    @property
    def same(self) -> bool:
        """Whether the weights are the same bit for bit."""
        return self.original_weights == self.weights


def reproduce(workspace: Workspace, name: str, heard: Heard, *, threads: int | None = None) -> Reproduction:
    """Train a model of the workspace again, in its work folder, with its own thread count unless told another.

    A reproduction that was killed goes on. Raises NotFound and BadInput for a model that is not there, was changed, or
    does not say what it is made from, and for corpora that are gone.
    """
    folder = model_folder(workspace, name)
    manifest = read_manifest(folder)
    require_unchanged(folder, manifest.get("files", {}))
    scratch = workspace.work / "reproduce" / name
    with workspace.exclusively(f"reproduce-{name}"):
        order = _order_of(workspace, folder, manifest, threads or manifest["threads"])
        made = prepared(workspace, name, order, heard)
        # A finished one of an earlier time may have been made from other inputs.
        shutil.rmtree(scratch, ignore_errors=True)
        again = train(made.rows, made.recipe, scratch, heard.on_step)
        same = manifest["files"][WEIGHTS] == again["files"][WEIGHTS]
        scores = None if same else _scores(made, folder, scratch)
        shutil.rmtree(scratch)
    return Reproduction(_different(manifest, again), manifest["files"][WEIGHTS], again["files"][WEIGHTS], scores)


def _order_of(workspace: Workspace, folder: Path, manifest: Mapping[str, Any], threads: int) -> Order:
    if "recipe" not in manifest["origin"]:
        raise BadInput(f"the manifest of {folder} holds no recipe, so nothing says what to train on; train it anew")
    recipe = MixtureRecipe.model_validate(manifest["origin"]["recipe"]).placed(workspace.located)
    kept = folder / RECIPE_NAME
    parent = manifest["parent"]
    return Order(
        recipe=recipe,
        settings={**manifest["settings"], "threads": threads},
        task_name=manifest["task"],
        encoder=manifest["encoder"]["name"],
        allow_leaks=manifest["origin"]["leaks"]["allowed"],
        stop_on=[workspace.located(dev["name"]) for dev in manifest["dev_sets"]],
        continue_from=None if parent is None else parent["name"],
        written=kept.read_bytes().decode() if kept.is_file() else "",
    )


def _different(manifest: Mapping[str, Any], again: Mapping[str, Any]) -> dict[str, list[str]]:
    one, other = ({key: value for key, value in m.items() if key not in _IGNORED} for m in (manifest, again))
    found: dict[str, list[str]] = {kind: [] for kind in KINDS}
    for key in differences(one, other):
        # The settings tell what was asked for; `threads` what was taken.
        if key == "settings.threads":
            continue
        first, kind = key.partition(".")[0], KINDS[0]
        if first in _PROCESSOR:
            kind = KINDS[1]
        elif key == "versions.torch":
            kind = KINDS[2]
        elif key == "threads":
            kind = KINDS[3]
        found[kind].append(f"{key} ({_at(one, key)} before, {_at(other, key)} here)")
    return found


def _at(manifest: Mapping[str, Any], key: str) -> Any:
    value: Any = manifest
    for part in key.split("."):
        value = value.get(part) if isinstance(value, dict) else None
    return value


def _scores(made: Prepared, folder: Path, scratch: Path) -> HeldOutScores | None:
    settings, labels = made.recipe.settings, list(made.recipe.labels)
    places = held_out(made.rows, made.recipe.groups, settings.held_out_share, settings.seed).held_out
    rows, name = [made.rows[place] for place in places], "held-out training rows"
    if not rows:
        rows = [row for dev in made.recipe.dev_sets for row in dev.rows]
        name = ", ".join(dev.name for dev in made.recipe.dev_sets)
    if not rows:
        return None
    gold = [max(row.shares, key=lambda share: share[1])[0] for row in rows]
    found = []
    for place in (folder, scratch):
        said = TargetModel(place, labels, threads=settings.threads).predict([row.text for row in rows])
        found.append(score(gold, [prediction.label if prediction else "" for prediction in said], labels).macro_f1)
    return HeldOutScores(name, len(rows), *found)


def reproduction_lines(name: str, result: Reproduction) -> list[str]:
    """Return a reproduction as lines of text."""
    lines = [f"{kind}: {'; '.join(keys) if keys else 'the same'}" for kind, keys in result.different.items()]
    if result.same:
        return [*lines, f"{name} trained again has the same weights, bit for bit ({result.weights[:12]})"]
    lines.append(f"{name} trained again has other weights ({result.weights[:12]}, not {result.original_weights[:12]})")
    if result.scores is None:
        return [*lines, "no row was held out, so nothing says how far they are apart; judge both with evaluate"]
    scores = result.scores
    how_far = f"macro F1 {scores.original:.4f} before, {scores.again:.4f} here ({scores.again - scores.original:+.4f})"
    return [*lines, f"on {scores.rows} {scores.name}: {how_far}"]
