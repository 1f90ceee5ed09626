"""Checkpoints: all that a killed training needs to go on to the same weights, in one file beside the model's folder."""

import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from dynaround.errors import BadInput

CHECKPOINT = "checkpoint.pt"


class Checkpoints:
    """The checkpoint of one training of a model folder; another training's is refused and left alone."""

    def __init__(self, model_folder: Path, made_from: Mapping[str, Any]):
        self.folder = model_folder.with_name(f".{model_folder.name}.checkpoint")
        self._made_from = made_from

    def read(self) -> dict[str, Any] | None:
        """Return the state that was written last, None where there is none.

        Raises BadInput for the checkpoint of a training with other inputs, and says what differs.
        """
        path = self.folder / CHECKPOINT
        if not path.is_file():
            return None
        # Only tensors and plain data are read; a pickle of another kind is refused by torch.
        read = torch.load(path, map_location="cpu", weights_only=True)
        different = differences(self._made_from, read["made_from"])
        if different:
            raise BadInput(
                f"{self.folder} is the checkpoint of another training (it differs in {', '.join(different)}); "
                "run that one again to go on with it, delete the folder, or choose another --name"
            )
        state: dict[str, Any] = read["state"]
        return state

    def write(self, state: Mapping[str, Any]) -> None:
        """Put a state (tensors, plain data) on the disk, so that a reader finds the one before or this one, whole."""
        self.folder.mkdir(parents=True, exist_ok=True)
        part = self.folder / f"{CHECKPOINT}.part"
        with part.open("wb") as handle:
            torch.save({"made_from": dict(self._made_from), "state": dict(state)}, handle)
            handle.flush()
            os.fsync(handle.fileno())
        os.replace(part, self.folder / CHECKPOINT)

    def remove(self) -> None:
        """Delete it: the model is complete."""
        shutil.rmtree(self.folder, ignore_errors=True)


def differences(one: Mapping[str, Any], other: Mapping[str, Any], prefix: str = "") -> list[str]:
    """Return the dotted names of what differs between two pieces of plain data, in order of name."""
    found: list[str] = []
    for key in sorted({*one, *other}):
        mine, yours = one.get(key), other.get(key)
        if isinstance(mine, dict) and isinstance(yours, dict):
            found += differences(mine, yours, f"{prefix}{key}.")
        elif mine != yours or (key in one) != (key in other):
            found.append(f"{prefix}{key}")
    return found
