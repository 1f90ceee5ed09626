"""Sets a model from scratch beside one that goes on from an earlier model, on the same data and the same sets."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from dynaround.model_training import Heard, Order, train_model
from dynaround.settings import Workspace


class Arms(NamedTuple):
    """The names of the two models."""

    scratch: str
    continued: str


def train_arms(workspace: Workspace, name: str, parent: str, order: Order, heard: Heard) -> Arms:
    """Train NAME-scratch from the encoder and NAME-continued from the parent's weights, all else the same."""
    arms = Arms(f"{name}-scratch", f"{name}-continued")
    train_model(workspace, arms.scratch, replace(order, continue_from=None), heard)
    train_model(workspace, arms.continued, replace(order, continue_from=parent), heard)
    return arms


def ablation_lines(arms: Arms, summaries: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Yield for each set how far the model from scratch lies above the continued one: macro F1, then F1 by label."""
    by_set: dict[str, dict[str, Mapping[str, Any]]] = {}
    for summary in summaries:
        by_set.setdefault(summary["on"], {})[summary["model"]] = summary
    for name, readings in by_set.items():
        scratch, continued = readings[arms.scratch], readings[arms.continued]
        labels = "  ".join(
            f"{label} {row['f1'] - continued['per_label'][label]['f1']:+.3f}"
            for label, row in scratch["per_label"].items()
        )
        yield f"{name}: scratch - continued, macro F1 {scratch['macro_f1'] - continued['macro_f1']:+.3f}  {labels}"
