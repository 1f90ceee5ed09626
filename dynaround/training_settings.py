"""The settings of one training, apart from the loop, so that a command shows their defaults without loading torch."""

from dataclasses import dataclass
from typing import Literal

AskedPrecision = Literal["auto", "float32", "bfloat16"]
Weighting = Literal["loss", "sampling"]


@dataclass(frozen=True)
class TrainingSettings:
    """All that shapes the weights besides rows and encoder; saved in the manifest.

    `batch_tokens` above 0 fills batches up to that many padded tokens in place of `batch_rows` rows. `precision` "auto"
    is bfloat16 where the processor or card computes in it. `weighting` says where the rows' weights go: into the loss,
    or into drawing `drawn_rows` rows an epoch with replacement (0: as many as there are). `held_out_share` of the rows
    is not trained on: `checks_an_epoch` times an epoch the model is judged on it, after `patience` checks in a row
    that are no better (0: never) training ends, the best weights are kept, and the temperature is fitted.
    """

    seed: int = 0
    epochs: int = 3
    # Published is 2e-5 for RoBERTa-base in batches of 8; MiniLM is a sixth of its size. Chosen on the demo corpus among
    # the rates of docs/log.md.
    learning_rate: float = 5e-5
    batch_rows: int = 16
    batch_tokens: int = 0
    max_tokens: int = 128
    warmup_share: float = 0.1
    weight_decay: float = 0.01
    clip_norm: float = 1.0
    precision: AskedPrecision = "auto"
    freeze_embeddings: bool = False
    weighting: Weighting = "loss"
    drawn_rows: int = 0
    held_out_share: float = 0.0
    checks_an_epoch: int = 2
    patience: int = 4
    threads: int = 0
