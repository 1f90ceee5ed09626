"""What multiplies behind a target model: back ends of one interface, and the order in which "auto" tries them."""

from collections.abc import Mapping
from importlib.util import find_spec
from typing import Any, Literal, NamedTuple, Protocol

import torch

from dynaround.errors import BadInput
from dynaround.processor import has_bfloat16

Precision = Literal["float32", "bfloat16"]
BackEndName = Literal["torch", "openvino"]
AskedPrecision = Literal["auto", "float32", "bfloat16"]
AskedBackEnd = Literal["auto", "torch", "openvino"]


class Refused(BadInput):
    """A back end that does not serve a model on this machine."""


class BackEnd(Protocol):
    """Turns padded batches into logits; several threads may ask at once."""

    @property
    def name(self) -> BackEndName:
        """What runs the model."""

    @property
    def precision(self) -> Precision:
        """What it multiplies in."""

    def logits(self, inputs: Mapping[str, torch.Tensor]) -> torch.Tensor:
        """Return the logits, (rows, labels), of `input_ids` and `attention_mask`, both (rows, longest)."""


class Way(NamedTuple):
    """One way to predict: a back end and the arithmetic it is run in."""

    back_end: BackEndName
    precision: Precision

    def __str__(self) -> str:
        return f"{self.back_end} in {self.precision}"


EXACT = Way("torch", "float32")
"""What all others are measured by, and what decides near ties."""
WAYS = (Way("openvino", "bfloat16"), Way("torch", "bfloat16"), Way("openvino", "float32"), EXACT)
"""All of them, the fastest first (`benchmarks/predict.py`; where the processor has bfloat16)."""


def openvino_is_installed() -> bool:
    """Whether the optional package is there."""
    return find_spec("openvino") is not None


def ways(back_end: AskedBackEnd, precision: AskedPrecision) -> list[Way]:
    """Return what the settings allow, the fastest first; "auto" leaves out what this machine lacks, a name does not."""
    allowed = [way for way in WAYS if back_end in ("auto", way.back_end) and precision in ("auto", way.precision)]
    if back_end == "auto" and not openvino_is_installed():
        allowed = [way for way in allowed if way.back_end != "openvino"]
    if precision == "auto" and not has_bfloat16():
        allowed = [way for way in allowed if way.precision != "bfloat16"]
    return allowed


class TorchBackEnd:
    """PyTorch, in float32 or with bfloat16 by autocast, whose sums and layer norms stay in float32."""

    name: BackEndName = "torch"

    def __init__(self, model: Any, precision: Precision):
        self._model = model
        self.precision: Precision = precision

    def logits(self, inputs: Mapping[str, torch.Tensor]) -> torch.Tensor:
        """Return the logits of a padded batch."""
        low = self.precision == "bfloat16"
        with torch.inference_mode(), torch.autocast("cpu", dtype=torch.bfloat16, enabled=low):
            logits: torch.Tensor = self._model(**inputs).logits
        return logits
