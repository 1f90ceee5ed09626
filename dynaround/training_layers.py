"""The parts of an encoder that cost a processor time for nothing while it trains, in a form that says the same."""

from collections.abc import Sequence
from types import MethodType
from typing import Any

import numpy as np
import torch
from torch import nn

_LAYER_KINDS = ("BertLayer", "RobertaLayer", "XLMRobertaLayer")
"""Layers of one build: attention.self, attention.output, intermediate, output."""


class Masks:
    """The source of all dropout of one training on the processor: SFC64, whose place is plain data.

    torch draws a Bernoulli number an element; here 16 random bits decide one, in a third of the time.
    """

    def __init__(self, seed: Sequence[int]):
        self._bits = np.random.SFC64(np.random.SeedSequence(list(seed)))

    @property
    def place(self) -> dict[str, Any]:
        """Where the source stands, as plain data."""
        state: Any = self._bits.state
        return {**state, "state": {"state": [int(word) for word in state["state"]["state"]]}}

    @place.setter
    def place(self, place: dict[str, Any]) -> None:
        state: Any = {**place, "state": {"state": np.array(place["state"]["state"], dtype=np.uint64)}}
        self._bits.state = state

    def drop(self, inputs: torch.Tensor, share: float) -> torch.Tensor:
        """Set a share of the elements (to within 2^-17) to 0 and scale the others, so that the mean stays."""
        if not share:
            return inputs
        count = inputs.numel()
        raw = torch.from_numpy(self._bits.random_raw(-(-count // 4)).view(np.int16))[:count]
        dropped = round(share * 2**16)
        kept = (raw >= dropped - 2**15).to(inputs.dtype).mul_(2**16 / (2**16 - dropped))
        return inputs * kept.view(inputs.shape)


class Dropout(nn.Module):
    """`nn.Dropout` that draws from `Masks`."""

    def __init__(self, share: float, masks: Masks):
        super().__init__()
        self.share, self.masks = share, masks

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        """Drop in training, else return the inputs."""
        return self.masks.drop(inputs, self.share) if self.training else inputs


def lighten(model: nn.Module, seed: Sequence[int]) -> Masks:
    """Make a classifier cheaper to train on a processor, in place; return the source of its dropout.

    Dropout draws from `Masks`. The head reads the first token alone, so the last layer computes no other: the same
    logits and gradients but for rounding. Names of weights stay. Layers of a kind not known here stay as they are.
    """
    masks = Masks(seed)
    for module in list(model.modules()):
        for name, child in list(module.named_children()):
            if type(child) is nn.Dropout:
                setattr(module, name, Dropout(child.p, masks))
    layers = [module for module in model.modules() if type(module).__name__ in _LAYER_KINDS and _is_known(module)]
    layer: Any
    for place, layer in enumerate(layers):
        # On the instance: a module around the layer would rename its weights.
        layer.reads_first = place == len(layers) - 1
        layer.forward = MethodType(_forward, layer)
    return masks


def _is_known(layer: nn.Module) -> bool:
    import transformers

    # Before 5 a layer returned a tuple.
    return int(transformers.__version__.partition(".")[0]) >= 5 and not getattr(layer, "is_decoder", False)


def _forward(self: Any, hidden: torch.Tensor, attention_mask: torch.Tensor | None = None, *_: Any, **__: Any) -> Any:
    """Return the layer's output (rows, tokens, size); of the layer that `reads_first`, (rows, 1, size)."""
    attention = self.attention.self
    asked = hidden[:, :1] if self.reads_first else hidden
    query, key, value = (
        projected.unflatten(-1, (-1, attention.attention_head_size)).transpose(1, 2)
        for projected in (attention.query(asked), attention.key(hidden), attention.value(hidden))
    )
    scores = (query * attention.attention_head_size**-0.5) @ key.transpose(2, 3)
    if attention_mask is not None:
        mask = attention_mask[:, :, : asked.shape[1]]
        scores = scores.masked_fill(~mask, torch.finfo(scores.dtype).min) if mask.dtype == torch.bool else scores + mask
    context = attention.dropout(torch.softmax(scores, dim=-1)) @ value
    attended = self.attention.output(context.transpose(1, 2).flatten(2), asked)
    return self.output(self.intermediate(attended), attended)
