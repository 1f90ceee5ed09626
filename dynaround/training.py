"""Training from the pretrained encoder: one loop that reads top to bottom, and a folder that says how it was made."""

import os
import re
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from math import isfinite
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from torch.nn.functional import cross_entropy

from dynaround.calibration import fit_temperature
from dynaround.checkpoints import Checkpoints
from dynaround.early_stopping import HELD_OUT_ROWS, BestWeights, judged
from dynaround.errors import BadInput
from dynaround.folders import MANIFEST, completed_folder, data_hash, file_hashes, read_manifest, write_json
from dynaround.learner import Learner
from dynaround.mixture import TrainingRow
from dynaround.model_card import CARD, model_card
from dynaround.processes import Processes
from dynaround.target_model import threads_of
from dynaround.trained_texts import TRAINED_TEXTS, write_trained_texts
from dynaround.training_plan import Plan, plan_training
from dynaround.training_recipe import (
    REVIEW_IDS,
    Where,
    check_recipe,
    class_balance,
    made_from,
    resolved_precision,
    same_run,
    write_review_ids,
)
from dynaround.training_recipe import Recipe as Recipe
from dynaround.training_recipe import read_review_ids as read_review_ids

CHECKPOINT_STEPS = 500
"""A minute or two with MiniLM on two cores; a checkpoint of 270 MB takes up to a second."""
_OS_ERROR = re.compile(r"\(os error (\d+)\)")

OnStep = Callable[[int, int], None]


def train(
    rows: Sequence[TrainingRow],
    recipe: Recipe,
    folder: Path,
    on_step: OnStep,
    *,
    checkpoint_steps: int = CHECKPOINT_STEPS,
) -> dict[str, Any]:
    """Train a model and put its complete folder in place; return its manifest.

    `on_step(done, steps)` is called after each step. The same rows, recipe, thread count and processor give the same
    weights, also where the training was killed and is run again: it goes on from its last checkpoint (one every
    `checkpoint_steps`). A folder that this very recipe already completed is left as it is; any other is refused, since
    going on from its weights would not be training from scratch. Raises BadInput for that, for the checkpoint of
    another training, for settings or an encoder that cannot be trained with and for weights that run away, NoSpace
    where the disk is full.
    """
    check_recipe(rows, recipe)
    processes = Processes()
    with threads_of(recipe.settings.threads) as threads:
        precision = resolved_precision(recipe.settings.precision, processes.device)
        where = Where(threads, processes.count, processes.device.type, precision)
        inputs = made_from(rows, recipe, where)
        checkpoints = Checkpoints(folder, inputs)
        if (folder / MANIFEST).is_file():
            manifest = same_run(folder, inputs)
            checkpoints.remove()
            return manifest
        with completed_folder(folder) if processes.main else nullcontext() as part:
            with torch.random.fork_rng(devices=[]):
                torch.manual_seed(recipe.settings.seed)
                learner = Learner(recipe, processes, precision)
                plan = plan_training(rows, recipe, learner.tokenizer)
                taken, best = _fit(learner, plan, processes, checkpoints, checkpoint_steps, on_step)
                outcome = _outcome(learner, plan, taken, best)
            if part is not None:
                _write(part, rows, learner, {**inputs, **outcome, "class_balance": class_balance(rows, recipe.labels)})
        if processes.main:
            checkpoints.remove()
        processes.wait()
    return read_manifest(folder)


def _fit(
    learner: Learner, plan: Plan, processes: Processes, checkpoints: Checkpoints, checkpoint_steps: int, on_step: OnStep
) -> tuple[int, BestWeights]:
    """Take the steps of the plan; return how many, and the checks, whose best weights the learner then has."""
    steps, best = len(plan.batches), BestWeights(learner.recipe.settings.patience)
    done, stopped = 0, False
    if (state := checkpoints.read()) is not None:
        done, stopped = state["done"], state["stopped"]
        learner.restore(state["learner"])
        best.restore(state["best"])

    learner.model.train()
    while done < steps and not stopped:
        mine = processes.share(plan.batches[done])
        logits = learner.logits([plan.rows.tokens[place] for place in mine.places])
        targets = plan.rows.targets[mine.places].to(logits.device)
        weights = (plan.weights[mine.places] * mine.counted).to(logits.device)
        loss = (cross_entropy(logits, targets, reduction="none") * weights).sum() / plan.divisors[done]
        norm = learner.learn(loss, plan.factor(done))
        if not isfinite(norm):
            raise BadInput(f"training diverged at step {done + 1} of {steps}; take a smaller --learning-rate")
        done += 1
        if done in plan.checks:
            readings = [(learner.predicted(rows.tokens), rows.targets) for rows in plan.watched]
            stopped = best.consider(judged(done, readings, learner.recipe.labels), learner.model)
        if done % checkpoint_steps == 0 and done < steps:
            state = {"done": done, "stopped": stopped, "learner": learner.state(), "best": best.state()}
            if processes.main:
                checkpoints.write(state)
        on_step(done, steps)
    best.put_back(learner.model)
    return done, best


def _outcome(learner: Learner, plan: Plan, taken: int, best: BestWeights) -> dict[str, Any]:
    """Return what came out of a training beside its weights, for the manifest."""
    stopping = temperature = None
    if best.best is not None:
        stopping = {
            "on": [dev.name for dev in learner.recipe.dev_sets] or [HELD_OUT_ROWS],
            "best_step": best.best.step,
            "macro_f1": best.best.macro_f1,
            "loss": best.best.loss,
            "checks": [check._asdict() for check in best.checks],
        }
    if plan.held_out.tokens:
        fitted = fit_temperature(learner.predicted(plan.held_out.tokens).tolist(), plan.held_out.targets.tolist())
        temperature = {"fitted_on": HELD_OUT_ROWS, "rows": len(plan.held_out.tokens), **fitted._asdict()}
    return {
        "steps": {"planned": len(plan.batches), "taken": taken},
        "held_out": {"rows": len(plan.held_out.tokens)},
        "early_stopping": stopping,
        "temperature": temperature,
    }


def _write(folder: Path, rows: Sequence[TrainingRow], learner: Learner, told: dict[str, Any]) -> None:
    recipe = learner.recipe
    _save_weights(learner.model, folder)
    learner.tokenizer.save_pretrained(folder)
    write_review_ids(folder / REVIEW_IDS, recipe.review_ids)
    write_trained_texts(folder / TRAINED_TEXTS, (row.text for row in rows))
    for name, text in recipe.kept_files.items():
        (folder / name).write_bytes(text.encode())
    files = dict(file_hashes(folder))
    manifest = {"kind": "model", "name": recipe.name, "hash": data_hash(files), **told, "files": files}
    # After the hashes: the card names paths and versions, which are no part of what the model is.
    (folder / CARD).write_text(model_card(manifest), encoding="utf-8")
    write_json(folder / MANIFEST, manifest)


def _save_weights(model: Any, folder: Path) -> None:
    try:
        model.save_pretrained(folder, safe_serialization=True)
    except SafetensorError as error:
        # safetensors hides the system's error in its words.
        found = _OS_ERROR.search(str(error))
        if found is None:
            raise
        raise OSError(int(found.group(1)), os.strerror(int(found.group(1)))) from error
