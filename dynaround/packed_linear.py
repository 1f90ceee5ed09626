"""Linear layers with weights laid out for oneDNN once, as PyTorch's own compiler lays out those of a frozen model."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import nn

# Not public: what `torch.compile` emits for a linear layer on this kind of processor, here without needing a compiler.
_ops = torch.ops.mkldnn


class PackedLinear(nn.Module):
    """A linear layer for inference, in float32 and, under autocast, in the lower precision if it was packed for it.

    In float32 it differs from `nn.Linear` by rounding alone, since that multiplies by another library. `plain` does
    what no weights are packed for.
    """

    def __init__(self, linear: nn.Linear, precisions: Sequence[torch.dtype], plain: nn.Linear | None = None):
        super().__init__()
        self.plain = plain
        weight, bias = linear.weight.detach(), linear.bias
        self._packed = {
            precision: (
                _ops._reorder_linear_weight(weight.to(precision)),
                None if bias is None else bias.detach().to(precision),
            )
            for precision in precisions
        }

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        """Return inputs (..., in) times the weights plus the bias, (..., out)."""
        precision = torch.get_autocast_dtype("cpu") if torch.is_autocast_enabled("cpu") else torch.float32
        if precision not in self._packed and self.plain is not None:
            found: torch.Tensor = self.plain(inputs)
            return found
        weight, bias = self._packed[precision]
        outputs: torch.Tensor = _ops._linear_pointwise(inputs.to(precision), weight, bias, "none", [], "")
        return outputs


def pack_linear_layers(model: nn.Module, precisions: Sequence[torch.dtype]) -> None:
    """Replace the linear layers of a model that only predicts, in place, where the processor has what it takes.

    Elsewhere the model stays as it is and says the same, more slowly.
    """
    backends: Any = torch.backends
    if not backends.mkldnn.is_available() or not backends.cpu.get_cpu_capability().startswith("AVX"):
        return
    packable = [p for p in precisions if p != torch.bfloat16 or _ops._is_mkldnn_bf16_supported()]
    for module in list(model.modules()):
        for name, child in list(module.named_children()):
            if type(child) is nn.Linear:
                plain = None if len(packable) == len(precisions) else child
                setattr(module, name, PackedLinear(child, packable, plain))
