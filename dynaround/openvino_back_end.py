"""OpenVINO as a back end: a model is exported once into a folder of its own, and compiled from there at each load.

OpenVINO is an optional package (`pip install 'dynaround[openvino]'`).
"""

import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import nn

from dynaround.back_ends import BackEndName, Precision, Refused, openvino_is_installed
from dynaround.errors import NotInstalled

EXPORTED = "model.xml"
_HINTS = {"float32": "f32", "bfloat16": "bf16"}


def require_openvino() -> None:
    """Raise NotInstalled where the optional package is missing."""
    if not openvino_is_installed():
        raise NotInstalled(
            "the back end openvino needs a package of its own; run: pip install 'dynaround[openvino]', "
            'or set back_end = "torch" in dynaround.toml'
        )


def export(model: Any, folder: Path) -> None:
    """Write a loaded transformers model with plain linear layers as OpenVINO's graph and weights, in float32."""
    # Not openvino.convert_model, which reports each use to its makers over the network.
    from openvino import save_model
    from openvino.frontend import FrontEndManager, GeneralFailure, OpConversionFailure
    from openvino.frontend.pytorch.ts_decoder import TorchScriptPythonDecoder

    rows = torch.ones((2, 8), dtype=torch.long)
    # torch says that tracing is on its way out, and that a trace might be wrong: each is tried before it serves.
    try:
        with warnings.catch_warnings(), torch.no_grad():
            warnings.simplefilter("ignore")
            traced = TorchScriptPythonDecoder(_Logits(model), example_input={"input_ids": rows, "attention_mask": rows})
        reader = FrontEndManager().load_by_framework("pytorch")
        graph = reader.convert(reader.load(traced))
    except (RuntimeError, GeneralFailure, OpConversionFailure) as error:
        reason = str(error).strip().splitlines()[0]
        raise Refused(
            f'openvino cannot take over this encoder ({reason}); set back_end = "torch" in dynaround.toml'
        ) from error
    save_model(graph, folder / EXPORTED, compress_to_fp16=False)


class _Logits(nn.Module):
    """A classifier that returns plain logits."""

    def __init__(self, model: nn.Module):
        super().__init__()
        self.model = model

    def forward(self, input_ids: torch.Tensor, attention_mask: torch.Tensor) -> torch.Tensor:
        logits: torch.Tensor = self.model(input_ids=input_ids, attention_mask=attention_mask).logits
        return logits


class OpenVinoBackEnd:
    """An exported model, compiled for this processor with `threads` threads (0: as many as OpenVINO takes by itself).

    Raises Refused where the processor cannot do the precision.
    """

    name: BackEndName = "openvino"

    def __init__(self, folder: Path, precision: Precision, threads: int):
        from openvino import Core

        asked: dict[str, Any] = {"PERFORMANCE_HINT": "LATENCY", "INFERENCE_PRECISION_HINT": _HINTS[precision]}
        if threads:
            asked["INFERENCE_NUM_THREADS"] = threads
        self._compiled = Core().compile_model(folder / EXPORTED, "CPU", asked)
        # What it was asked is a hint to OpenVINO; what it does must be what is stored with the predictions.
        does = self._compiled.get_property("INFERENCE_PRECISION_HINT").get_type_name()
        if does != _HINTS[precision]:
            raise Refused(
                f"openvino does {does} in the place of {precision} on this processor; "
                'set precision = "float32" or "auto" in dynaround.toml'
            )
        self.precision: Precision = precision

    def logits(self, inputs: Mapping[str, torch.Tensor]) -> torch.Tensor:
        """Return the logits of a padded batch."""
        # One request a call: a shared one would mix the batches of two threads.
        request = self._compiled.create_infer_request()
        found = request.infer({name: tensor.numpy() for name, tensor in inputs.items()})
        return torch.from_numpy(found[0])
