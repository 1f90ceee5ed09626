"""A model while it learns: its weights, its optimiser and every random source, as one thing with one state."""

from collections.abc import Sequence
from math import isfinite
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file

from dynaround.encoders import WEIGHTS, start_model
from dynaround.errors import BadInput
from dynaround.folders import read_manifest, require_unchanged
from dynaround.optimisers import Optimisers
from dynaround.processes import Processes
from dynaround.target_model import TOKEN_BUDGET, Precision, batches_by_length, padded
from dynaround.training_layers import lighten
from dynaround.training_recipe import Recipe


class Learner:
    """The pretrained encoder with a new head, on this process's device, and all that moves it."""

    def __init__(self, recipe: Recipe, processes: Processes, precision: Precision):
        self.recipe = recipe
        self._device, self._low = processes.device, precision == "bfloat16"
        self._processes = processes
        self.model, self.tokenizer = start_model(recipe.encoder, list(recipe.labels), recipe.settings.max_tokens)
        if recipe.parent is not None:
            self.model.load_state_dict(_parent_weights(recipe.parent.folder, recipe))
        self._masks = lighten(self.model, [recipe.settings.seed, processes.rank])
        self._optimisers = Optimisers(self.model, recipe.settings, lazy_table=self._device.type == "cpu")
        # After the optimiser, which decides what is frozen and which gradient is sparse.
        self._shared = processes.placed(self.model)

    def logits(self, tokens: Sequence[Sequence[int]], model: Any = None) -> torch.Tensor:
        """Return the logits of rows of token ids: float32, rows by labels, with their gradient."""
        inputs = {name: t.to(self._device) for name, t in padded(tokens, self.tokenizer.pad_token_id).items()}
        with torch.autocast(self._device.type, dtype=torch.bfloat16, enabled=self._low):
            logits: torch.Tensor = (model or self._shared)(**inputs).logits
        return logits.float()

    def learn(self, loss: torch.Tensor, factor: float) -> float:
        """Take a step on this process's part of a loss; return the norm of the whole gradient before clipping.

        A norm that is no finite number moves nothing.
        """
        # Processes end up with the mean of their gradients, and their parts are to add up.
        torch.autograd.backward(loss * self._processes.count)
        norm = self._optimisers.clip()
        if isfinite(norm):
            self._optimisers.step(factor)
        return norm

    def predicted(self, tokens: Sequence[Sequence[int]]) -> torch.Tensor:
        """Return the logits of rows without dropout, on the processor, in the order of the rows."""
        self.model.eval()
        found: dict[int, torch.Tensor] = {}
        with torch.inference_mode():
            for batch in batches_by_length([len(row) for row in tokens], TOKEN_BUDGET):
                # Not the model of all processes: each has the same weights and judges for itself.
                found.update(zip(batch, self.logits([tokens[i] for i in batch], self.model).cpu(), strict=True))
        self.model.train()
        return torch.stack([found[place] for place in range(len(tokens))])

    def state(self) -> dict[str, Any]:
        """Return all that `restore` needs to go on to the same weights."""
        generators = self._processes.gathered({"masks": self._masks.place, "torch": torch.get_rng_state().tolist()})
        return {
            "weights": self.model.state_dict(),
            "optimisers": self._optimisers.state(),
            "generators": generators,
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from a state."""
        self.model.load_state_dict(state["weights"])
        self._optimisers.restore(state["optimisers"])
        mine = state["generators"][self._processes.rank]
        self._masks.place = mine["masks"]
        torch.set_rng_state(torch.tensor(mine["torch"], dtype=torch.uint8))


def _parent_weights(folder: Path, recipe: Recipe) -> dict[str, torch.Tensor]:
    manifest = read_manifest(folder)
    found = manifest.get("labels"), manifest.get("encoder", {}).get("weights_sha256")
    if found != (list(recipe.labels), recipe.encoder.weights_hash):
        raise BadInput(f"{folder} has other labels or another encoder than this training; name a model made from it")
    require_unchanged(folder, manifest["files"])
    weights: dict[str, torch.Tensor] = load_file(folder / WEIGHTS)
    return weights
