"""Which rows stand together in a step: rows of like length, so many of them or of tokens, drawn by weight or not."""

import random
from collections.abc import Iterator, Sequence
from itertools import accumulate

from dynaround.training_settings import TrainingSettings

WINDOW = 50
"""Batches that are sorted by length together; on SST it leaves 2 % of padding in batches of 8 rows, where batches of
chance have 71 %."""


def planned_batches(
    lengths: Sequence[int], weights: Sequence[float], settings: TrainingSettings
) -> tuple[list[list[int]], list[int]]:
    """Return the batches of all epochs in order, as places of rows, and after how many batches each epoch ends.

    `lengths` are the tokens of the rows. All of it follows from the settings' seed, so that a step's number is a place
    to go on from. Every row stands once in an epoch, unless its rows are drawn by weight.
    """
    batches: list[list[int]] = []
    ends = []
    for epoch in range(settings.epochs):
        generator = random.Random(f"{settings.seed}/{epoch}")
        order = list(range(len(lengths)))
        if settings.weighting == "sampling":
            count = settings.drawn_rows or len(order)
            order = generator.choices(order, cum_weights=list(accumulate(weights)), k=count)
        else:
            generator.shuffle(order)
        batches += _shuffled_batches(order, lengths, settings, generator)
        ends.append(len(batches))
    return batches, ends


def _shuffled_batches(
    order: Sequence[int], lengths: Sequence[int], settings: TrainingSettings, generator: random.Random
) -> list[list[int]]:
    size = settings.batch_rows
    if settings.batch_tokens:
        mean = sum(lengths[place] for place in order) / len(order)
        size = max(1, int(settings.batch_tokens / mean))
    batches: list[list[int]] = []
    for start in range(0, len(order), WINDOW * size):
        near = sorted(order[start : start + WINDOW * size], key=lambda place: lengths[place])
        if settings.batch_tokens:
            batches += _within(settings.batch_tokens, near, lengths)
        else:
            batches += [near[i : i + size] for i in range(0, len(near), size)]
    generator.shuffle(batches)
    return batches


def _within(budget: int, near: Sequence[int], lengths: Sequence[int]) -> Iterator[list[int]]:
    batch: list[int] = []
    for place in near:
        if batch and lengths[place] * (len(batch) + 1) > budget:
            yield batch
            batch = []
        batch.append(place)
    if batch:
        yield batch
