"""What a training does, fixed before its first step: rows as numbers, batches, checks, the course of the rate."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch

from dynaround.early_stopping import check_steps, held_out
from dynaround.errors import BadInput
from dynaround.mixture import TrainingRow
from dynaround.optimisers import warm_up_then_decay
from dynaround.training_batches import planned_batches
from dynaround.training_recipe import Recipe
from dynaround.training_settings import TrainingSettings


class EncodedRows(NamedTuple):
    """Rows as token ids, with their targets: float32, rows by labels, the sum of a row is 1."""

    tokens: list[list[int]]
    targets: torch.Tensor


class Plan(NamedTuple):
    """All that follows from rows and recipe.

    `weights` multiply the losses of the rows (float32, mean 1); `divisors` say for each batch what the sum of its
    weighted losses is divided by. `watched` are the sets that early stopping judges on, after the steps `checks`;
    `held_out` the rows that are not trained on.
    """

    rows: EncodedRows
    weights: torch.Tensor
    batches: list[list[int]]
    divisors: list[float]
    factor: Callable[[int], float]
    watched: list[EncodedRows]
    checks: set[int]
    held_out: EncodedRows


def plan_training(rows: Sequence[TrainingRow], recipe: Recipe, tokenizer: Any) -> Plan:
    """Encode every row once and fix the order of all steps; raise BadInput where no row is left to train on."""
    settings = recipe.settings
    parted = held_out(rows, recipe.groups, settings.held_out_share, settings.seed)
    trained, aside = ([rows[place] for place in places] for places in parted)
    if not trained:
        raise BadInput(f"no row is left to train on ({len(aside)} held out); take a smaller --held-out-share")

    def encoded(some: Sequence[TrainingRow]) -> EncodedRows:
        return _encoded(some, recipe.labels, tokenizer, settings.max_tokens)

    numbers, held = encoded(trained), encoded(aside)
    watched = [encoded(dev.rows) for dev in recipe.dev_sets] or ([held] if aside else [])
    batches, ends = planned_batches([len(ids) for ids in numbers.tokens], [row.weight for row in trained], settings)
    mean = sum(map(len, batches)) / len(batches)
    return Plan(
        rows=numbers,
        weights=_loss_weights(trained, settings),
        batches=batches,
        # In batches by tokens the number of rows varies, and every row is to count alike.
        divisors=[mean if settings.batch_tokens else float(len(batch)) for batch in batches],
        factor=warm_up_then_decay(len(batches), settings.warmup_share),
        watched=watched,
        checks=check_steps(ends, settings.checks_an_epoch) if watched else set(),
        held_out=held,
    )


def _encoded(rows: Sequence[TrainingRow], labels: Sequence[str], tokenizer: Any, max_tokens: int) -> EncodedRows:
    targets = torch.zeros(len(rows), len(labels))
    for place, row in enumerate(rows):
        for label, share in row.shares:
            targets[place, labels.index(label)] += share
    texts = [row.text for row in rows]
    tokens = tokenizer(texts, truncation=True, max_length=max_tokens)["input_ids"] if texts else []
    return EncodedRows(tokens, targets)


def _loss_weights(rows: Sequence[TrainingRow], settings: TrainingSettings) -> torch.Tensor:
    if settings.weighting == "sampling":
        return torch.ones(len(rows))
    weights = torch.tensor([row.weight for row in rows], dtype=torch.float64)
    # A mean of 1 over all rows, not over a batch: a batch of heavy rows is to move the model more.
    return (weights / weights.mean()).float()
