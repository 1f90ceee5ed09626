"""The processes of one training: this one alone on the processor, or those that `accelerate launch` started."""

import os
from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import nn

from dynaround.errors import NotInstalled

# What `accelerate launch` always sets, also for one process.
_LAUNCHED = "ACCELERATE_MIXED_PRECISION"


class Share(NamedTuple):
    """Places of rows in front of one process, and how much they count: 0 where another process has them too."""

    places: list[int]
    counted: float


class Processes:
    """Which of how many processes this is, where its tensors live, and what they do together.

    Every process plans the same batches and takes every `count`-th row of each; the gradient is that of the whole
    batch. Raises NotInstalled under `accelerate launch` without the package.
    """

    def __init__(self) -> None:
        self.count, self.rank, self.device = 1, 0, torch.device("cpu")
        self._accelerator: Any = None
        if _LAUNCHED in os.environ:
            try:
                from accelerate import Accelerator
            except ImportError as error:
                raise NotInstalled("accelerate is missing; run: pip install 'dynaround[accelerate]'") from error
            self._accelerator = Accelerator(cpu=not torch.cuda.is_available(), mixed_precision="no")
            self.count, self.rank = self._accelerator.num_processes, self._accelerator.process_index
            self.device = self._accelerator.device

    @property
    def main(self) -> bool:
        """Whether this process writes the model."""
        return self.rank == 0

    def placed(self, model: nn.Module) -> nn.Module:
        """Return the model on this process's device, its gradients summed up over all processes."""
        return model if self._accelerator is None else self._accelerator.prepare_model(model)

    def share(self, batch: Sequence[int]) -> Share:
        """Return this process's rows of a batch."""
        mine = list(batch[self.rank :: self.count])
        # All processes have to come along in every step, also in one with fewer rows than there are processes.
        return Share(mine, 1.0) if mine else Share(list(batch[:1]), 0.0)

    def gathered(self, value: Any) -> list[Any]:
        """Return the plain data of all processes, in order of rank."""
        if self.count == 1:
            return [value]
        found: list[Any] = [None] * self.count
        torch.distributed.all_gather_object(found, value)
        return found

    def wait(self) -> None:
        """Return when every process is here."""
        if self._accelerator is not None:
            self._accelerator.wait_for_everyone()


def is_main() -> bool:
    """Whether this process prints and writes; true where none was launched."""
    return int(os.environ.get("RANK", "0")) == 0
