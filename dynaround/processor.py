"""What of the processor decides which code runs on it, and so how numbers are rounded."""

import platform
from typing import Any

import torch


def processor_features() -> dict[str, Any]:
    """Return what of the processor decides which code torch runs."""
    cpu: Any = torch.cpu
    return {
        "machine": platform.machine(),
        "capability": torch.backends.cpu.get_cpu_capability(),
        "avx512_bf16": bool(cpu._is_avx512_bf16_supported()),
        "amx_bf16": bool(cpu._is_amx_tile_supported()),
    }


def has_bfloat16() -> bool:
    """Whether the processor multiplies in bfloat16 by itself, and so faster than in float32."""
    features = processor_features()
    return bool(features["avx512_bf16"] or features["amx_bf16"])
