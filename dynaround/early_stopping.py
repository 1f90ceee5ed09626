"""Early stopping: which rows are held out of training, how a model is judged on them, and which weights are kept."""

import random
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from torch import nn

from dynaround.mixture import TrainingRow
from dynaround.scoring import score
from dynaround.text import group_text

HELD_OUT_ROWS = "held-out training rows"


class DevSet(NamedTuple):
    """Rows that a training is watched on; never trained on."""

    name: str
    rows: Sequence[TrainingRow]


class Parted(NamedTuple):
    """Places of the rows that are trained on and of those that are held out, both in order."""

    trained: list[int]
    held_out: list[int]


class Check(NamedTuple):
    """How a model stood after `step` steps: means over its dev sets."""

    step: int
    macro_f1: float
    loss: float


def held_out(rows: Sequence[TrainingRow], groups: Sequence[str | None], share: float, seed: int) -> Parted:
    """Hold out a share of the rows, drawn group by group: rows of one review or one group text never part.

    `groups` names the review of each row, None where it has none; empty: of no row. The last group drawn may go beyond
    the share by its size. A text that stands in two reviews ties them together.
    """
    if not share:
        return Parted(list(range(len(rows))), [])
    reviews = groups or [None] * len(rows)
    names = [f"text {group_text(row.text)}" for row in rows]
    ties = [(place, name) for place, name in enumerate(names)]
    ties += [(place, f"review {review}") for place, review in enumerate(reviews) if review is not None]
    nodes = {name: len(rows) + number for number, name in enumerate(dict.fromkeys(name for _, name in ties))}
    ends = [place for place, _ in ties], [nodes[name] for _, name in ties]
    size = len(rows) + len(nodes)
    _, component = connected_components(coo_array((np.ones(len(ties)), ends), shape=(size, size)), directed=False)
    members: dict[int, list[int]] = {}
    for place in range(len(rows)):
        members.setdefault(int(component[place]), []).append(place)
    order = list(members)
    random.Random(f"held out {seed}").shuffle(order)
    wanted, out = round(share * len(rows)), set[int]()
    for number in order:
        if len(out) >= wanted:
            break
        out.update(members[number])
    return Parted([place for place in range(len(rows)) if place not in out], sorted(out))


def check_steps(ends: Sequence[int], checks: int) -> set[int]:
    """Return after how many steps a model is judged: `checks` times an epoch at even distances, last at its end."""
    starts = [0, *ends[:-1]]
    return {
        start + round((end - start) * number / checks)
        for start, end in zip(starts, ends, strict=True)
        for number in range(1, checks + 1)
    } - {0}


def judged(step: int, sets: Sequence[tuple[torch.Tensor, torch.Tensor]], labels: Sequence[str]) -> Check:
    """Score logits against targets (both rows by labels) of each set: macro F1 on the largest share, mean loss."""
    scores, losses = [], []
    for logits, targets in sets:
        gold, said = ([labels[i] for i in tensor.argmax(dim=-1).tolist()] for tensor in (targets, logits))
        scores.append(score(gold, said, labels).macro_f1)
        losses.append(float(nn.functional.cross_entropy(logits.double(), targets.double())))
    return Check(step, sum(scores) / len(scores), sum(losses) / len(losses))


class BestWeights:
    """The weights of the best check so far: highest macro F1, then lowest loss, then first."""

    def __init__(self, patience: int):
        self._patience = patience
        self.checks: list[Check] = []
        self._weights: dict[str, torch.Tensor] | None = None

    @property
    def best(self) -> Check | None:
        """The check whose weights are kept."""
        return max(self.checks, key=lambda check: (check.macro_f1, -check.loss), default=None)

    def consider(self, check: Check, model: nn.Module) -> bool:
        """Take in a check and, where it is the best, the weights; say whether to stop."""
        before = self.best
        self.checks.append(check)
        if self.best is not before:
            self._weights = {name: tensor.detach().cpu().clone() for name, tensor in model.state_dict().items()}
        since = len(self.checks) - 1 - self.checks.index(self.best or check)
        return bool(self._patience) and since >= self._patience

    def put_back(self, model: nn.Module) -> None:
        """Give the model its best weights; without a check it keeps its last ones."""
        if self._weights is not None:
            model.load_state_dict(self._weights)

    def state(self) -> dict[str, Any]:
        """Return all that `restore` needs."""
        return {"checks": [list(check) for check in self.checks], "weights": self._weights}

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from a state."""
        self.checks = [Check(*check) for check in state["checks"]]
        self._weights = state["weights"]
