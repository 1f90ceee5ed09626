"""The optimiser of a training: fused AdamW, and lazy Adam for the table of word embeddings where that saves time."""

from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from dynaround.training_settings import TrainingSettings


class Optimisers:
    """AdamW for all weights of a model that are trained; with `lazy_table`, Adam for the rows of the embedding table.

    A step touches a few hundred of the table's rows (30,522 of MiniLM, half of its weights). Lazy Adam
    (`torch.optim.SparseAdam`) reads and writes only those: a row moves in the steps in which it stands, without decay.
    """

    def __init__(self, model: nn.Module, settings: TrainingSettings, *, lazy_table: bool):
        embeddings: Any = model.get_input_embeddings()  # type: ignore[operator]
        self._table: nn.Parameter = embeddings.weight
        if settings.freeze_embeddings:
            self._table.requires_grad_(False)
        self._lazy = lazy_table and not settings.freeze_embeddings
        embeddings.sparse = self._lazy
        trained = [p for p in model.parameters() if p.requires_grad and not (self._lazy and p is self._table)]
        # Biases and layer norms are scales, not features: decaying them only costs accuracy.
        groups = [
            {"params": [p for p in trained if p.dim() >= 2], "weight_decay": settings.weight_decay},
            {"params": [p for p in trained if p.dim() < 2], "weight_decay": 0.0},
        ]
        self._trained = trained
        self._clip_norm, self._rate = settings.clip_norm, settings.learning_rate
        self.all: list[torch.optim.Optimizer] = [torch.optim.AdamW(groups, lr=self._rate, fused=True)]
        if self._lazy:
            self.all.append(torch.optim.SparseAdam([self._table], lr=self._rate))

    def clip(self) -> float:
        """Scale all gradients down to the settings' norm where theirs is larger; return theirs."""
        gradients = [p.grad for p in self._trained if p.grad is not None]
        if self._lazy and self._table.grad is not None:
            # Coalesced, a row that stands in several sentences has one gradient, as the norm needs.
            self._table.grad = self._table.grad.coalesce()
            gradients.append(self._table.grad._values())
        norm = float(nn.utils.get_total_norm(gradients))
        if norm > self._clip_norm:
            torch._foreach_mul_(gradients, self._clip_norm / norm)
        return norm

    def step(self, factor: float) -> None:
        """Move the weights by the gradients at `factor` of the settings' rate, and forget the gradients."""
        for optimiser in self.all:
            for group in optimiser.param_groups:
                group["lr"] = self._rate * factor
            optimiser.step()
            optimiser.zero_grad(set_to_none=True)

    def state(self) -> list[dict[str, Any]]:
        """Return all that `restore` needs."""
        return [optimiser.state_dict() for optimiser in self.all]

    def restore(self, states: list[dict[str, Any]]) -> None:
        """Go on from a state."""
        for optimiser, state in zip(self.all, states, strict=True):
            optimiser.load_state_dict(state)


def warm_up_then_decay(steps: int, warmup_share: float) -> Callable[[int], float]:
    """Return the factor of the learning rate by step: up in a straight line over a share of the steps, then down."""
    warmup = max(1, round(steps * warmup_share))

    def factor(step: int) -> float:
        return (step + 1) / warmup if step < warmup else max(0.0, (steps - step) / max(1, steps - warmup))

    return factor
