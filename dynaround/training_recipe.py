"""What one training is made from, and how the manifest of its model tells it."""

import json
import platform
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

import torch

from dynaround.checkpoints import differences
from dynaround.early_stopping import DevSet
from dynaround.encoders import Encoder, quiet_transformers
from dynaround.errors import BadInput
from dynaround.folders import data_hash, read_manifest
from dynaround.mixture import TrainingRow
from dynaround.processor import has_bfloat16, processor_features
from dynaround.target_model import Precision
from dynaround.training_settings import AskedPrecision, TrainingSettings

REVIEW_IDS = "review_ids.txt"


class Parent(NamedTuple):
    """A complete model whose weights a training goes on from: only to reproduce the published comparison."""

    name: str
    hash: str
    folder: Path


@dataclass(frozen=True)
class Recipe:
    """What a model is made from beside its rows; `origin` is plain data about corpora and label mode.

    `selected_on` names every labelled file that a choice was made on (early stopping, tuning, calibration), each as
    {"use": ..., "spec": ..., "sha256": ...}: a model is not judged on those. `kept_files` are texts by file name that
    are kept in the model's folder and hashed with it (the recipe file that a person wrote). `groups` name the review of
    each row, or None, so that held-out rows share none with the others. `dev_sets` take the place of held-out rows in
    early stopping; whoever gives them names their files in `selected_on`.
    """

    name: str
    task: str
    labels: Sequence[str]
    encoder: Encoder
    settings: TrainingSettings
    origin: Mapping[str, Any]
    review_ids: Sequence[str] = ()
    selected_on: Sequence[Mapping[str, str]] = ()
    kept_files: Mapping[str, str] = field(default_factory=dict)
    groups: Sequence[str | None] = ()
    dev_sets: Sequence[DevSet] = ()
    parent: Parent | None = None


class Where(NamedTuple):
    """Where a training runs: what shapes the weights beside the recipe."""

    threads: int
    processes: int
    device: str
    precision: Precision


def check_recipe(rows: Sequence[TrainingRow], recipe: Recipe) -> None:
    """Raise BadInput for settings and review ids that cannot be used."""
    settings = recipe.settings
    for name in ("epochs", "batch_rows", "max_tokens", "learning_rate", "clip_norm", "checks_an_epoch"):
        if not getattr(settings, name) > 0:
            raise BadInput(f"{name} is {getattr(settings, name)}; it must be more than 0")
    if not 0 <= settings.seed < 2**63:
        raise BadInput(f"seed is {settings.seed}; take a number from 0 to 2^63 - 1")
    if not 0 <= settings.held_out_share < 0.5:
        raise BadInput(f"held_out_share is {settings.held_out_share}; take a share of the rows below .5, such as .05")
    if settings.drawn_rows and settings.weighting != "sampling":
        raise BadInput(f"drawn_rows is {settings.drawn_rows}, but rows are only drawn with weighting 'sampling'")
    if recipe.groups and len(recipe.groups) != len(rows):
        raise BadInput(f"there are {len(recipe.groups)} groups for {len(rows)} rows; give one a row")
    broken = sorted(r for r in recipe.review_ids if "\n" in r)
    if broken:
        raise BadInput(f"review_id {broken[0]!r} holds a line break, and {REVIEW_IDS} has one id a line; rename it")


def resolved_precision(asked: AskedPrecision, device: torch.device) -> Precision:
    """Return what "auto" stands for: bfloat16 where the processor or card multiplies in it, else float32."""
    if asked != "auto":
        return asked
    if device.type == "cuda":
        return "bfloat16" if torch.cuda.is_bf16_supported(including_emulation=False) else "float32"
    return "bfloat16" if has_bfloat16() else "float32"


def made_from(rows: Sequence[TrainingRow], recipe: Recipe, where: Where) -> dict[str, Any]:
    """Return all that the weights follow from, as plain data as it will be read back from a manifest."""
    parent = recipe.parent
    inputs = {
        "task": recipe.task,
        "labels": list(recipe.labels),
        "encoder": {"name": recipe.encoder.name, "weights_sha256": recipe.encoder.weights_hash},
        "parent": parent and {"name": parent.name, "hash": parent.hash},
        "origin": dict(recipe.origin),
        "selected_on": [dict(chosen) for chosen in recipe.selected_on],
        "kept_files": {name: sha256(text.encode()).hexdigest() for name, text in recipe.kept_files.items()},
        "rows": len(rows),
        "rows_sha256": data_hash([list(row) for row in rows]),
        "groups_sha256": data_hash(list(recipe.groups)),
        "reviews": {"file": REVIEW_IDS, "count": len(set(recipe.review_ids))},
        "dev_sets": [{"name": d.name, "rows_sha256": data_hash([list(r) for r in d.rows])} for d in recipe.dev_sets],
        "settings": asdict(recipe.settings),
        **where._asdict(),
        "versions": {
            "python": platform.python_version(),
            "torch": str(torch.__version__),
            "transformers": quiet_transformers().__version__,
        },
        "processor": processor_features(),
    }
    # As it will be read back: a tuple in `origin` would make the same run look like another.
    read_back: dict[str, Any] = json.loads(json.dumps(inputs))
    return read_back


def class_balance(rows: Sequence[TrainingRow], labels: Sequence[str]) -> dict[str, dict[str, float]]:
    """Return of each label its rows (a share counts as a part of one) and its part of all weight."""
    counts, weights = dict.fromkeys(labels, 0.0), dict.fromkeys(labels, 0.0)
    for row in rows:
        for label, share in row.shares:
            counts[label] += share
            weights[label] += share * row.weight
    total = sum(weights.values()) or 1.0
    return {name: {"rows": round(counts[name], 6), "weight": round(weights[name] / total, 6)} for name in labels}


def same_run(folder: Path, inputs: Mapping[str, Any]) -> dict[str, Any]:
    """Return the manifest of a complete folder; raise BadInput where it was made from other inputs."""
    manifest = read_manifest(folder)
    different = differences(inputs, {key: manifest.get(key) for key in inputs})
    if different:
        raise BadInput(
            f"{folder} already holds another model (it differs in {', '.join(different)}); "
            "choose another --name, since every model starts from the pretrained encoder"
        )
    return manifest


def write_review_ids(path: Path, review_ids: Sequence[str]) -> None:
    """Write each id once, one a line, in order."""
    # newline="": an id may hold a carriage return, which must come back as it is.
    with path.open("w", encoding="utf-8", newline="") as handle:
        handle.writelines(f"{review_id}\n" for review_id in sorted(set(review_ids)))


def read_review_ids(folder: Path) -> set[str]:
    """Return the ids of the reviews that a complete model folder was trained on."""
    manifest = read_manifest(folder)
    # Not splitlines: an id may hold a character that counts as a line break there.
    with (folder / manifest["reviews"]["file"]).open(encoding="utf-8", newline="\n") as handle:
        return {line.removesuffix("\n") for line in handle}
