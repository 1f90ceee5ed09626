"""A trained model as it is served: loaded from its folder, labels by name, predictions as made and uncalibrated."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from threading import Lock
from typing import Any, NamedTuple

import torch

from dynaround.back_ends import BackEnd, BackEndName, TorchBackEnd
from dynaround.back_ends import Precision as Precision
from dynaround.encoders import WEIGHTS, quiet_transformers
from dynaround.errors import BadInput, NotFound
from dynaround.exports import exported, side_folder
from dynaround.folders import MANIFEST, read_manifest, require_unchanged
from dynaround.openvino_back_end import OpenVinoBackEnd, export, require_openvino
from dynaround.packed_linear import pack_linear_layers
from dynaround.task import Prediction

NEAR_TIE = 0.02
"""Two best labels this close are decided by float32 on the sentence alone: padding and bfloat16 move less than that."""
TOKEN_BUDGET = 2048
"""Padded tokens a batch; 4096 took a tenth more time with MiniLM on two cores, and 1024 saved none."""
START = 32
"""What a batch costs beyond its tokens, in tokens (MiniLM, one core: 23 in float32, 32 in bfloat16): more padding than
that is worth a batch of its own."""

_TOLD = {"name": str, "hash": str, "files": dict, "settings": dict}


class Encoded(NamedTuple):
    """The token ids of one sentence, and whether the end was cut off."""

    tokens: list[int]
    truncated: bool


@contextmanager
def threads_of(count: int) -> Iterator[int]:
    """Run with `count` torch threads (0: as many as torch takes by itself); yields the number in force."""
    before = torch.get_num_threads()
    if count:
        torch.set_num_threads(count)
    try:
        yield torch.get_num_threads()
    finally:
        torch.set_num_threads(before)


def named_labels(config: Any, expected: Sequence[str], where: str) -> list[str]:
    """Return the labels of a head in the order of its outputs, from the model's own config and never by position.

    Raises BadInput for nameless labels (LABEL_0) and for names other than the task's.
    """
    found = [config.id2label[index] for index in range(config.num_labels)]
    if sorted(found) != sorted(expected):
        raise BadInput(
            f"the head of {where} has the labels {', '.join(map(str, found))}, not {', '.join(expected)}; "
            "name them in id2label of its config.json"
        )
    return found


class TargetModel:
    """A complete model folder, loaded. Sentences go in, named labels and probabilities come out.

    Raises NotFound for a missing or incomplete folder, BadInput for one of another kind, with a changed file, or with
    other labels than `labels`; NotInstalled and Refused where the back end cannot run here. Several threads may predict
    at once. No back end is tried here; `serving.load_served_model` does that.
    """

    def __init__(
        self,
        folder: Path,
        labels: Sequence[str],
        *,
        precision: Precision = "float32",
        back_end: BackEndName = "torch",
        threads: int = 0,
    ):
        if back_end == "openvino":
            require_openvino()
        self.manifest = read_manifest(folder)
        if self.manifest.get("kind") != "model":
            raise BadInput(f"{folder} is no model folder (its manifest says {self.manifest.get('kind')!r})")
        untold = [key for key, kind in _TOLD.items() if not isinstance(self.manifest.get(key), kind)]
        if untold:
            raise BadInput(
                f"{folder / MANIFEST} does not say {', '.join(untold)} as that of a model does; train it again"
            )
        if not (folder / WEIGHTS).is_file():
            raise NotFound(f"{folder} has no {WEIGHTS}; only safetensors are loaded")
        require_unchanged(folder, self.manifest["files"])
        transformers = quiet_transformers()
        options = {"local_files_only": True, "trust_remote_code": False}
        self._model = transformers.AutoModelForSequenceClassification.from_pretrained(
            folder, use_safetensors=True, dtype=torch.float32, **options
        ).eval()
        self._tokenizer = transformers.AutoTokenizer.from_pretrained(folder, **options)
        if read_manifest(folder) != self.manifest:
            raise BadInput(f"{folder} was replaced by another model while it was loaded; load it again")
        self.labels = named_labels(self._model.config, labels, str(folder))
        self.hash: str = self.manifest["hash"]
        self.name: str = self.manifest["name"]
        self._exact = TorchBackEnd(self._model, "float32")
        self._back_end = self._made_back_end(folder, back_end, precision, threads)
        self.precision = self._back_end.precision
        self.back_end = self._back_end.name
        self._max_tokens: int = self.manifest["settings"]["max_tokens"]
        self._threads = threads
        self._tokenizing = Lock()

    def _made_back_end(self, folder: Path, name: BackEndName, precision: Precision, threads: int) -> BackEnd:
        made: BackEnd = self._exact
        if name == "openvino":
            # Before the layers are packed, which cannot be exported.
            place = exported(side_folder(folder, self.hash), name, partial(export, self._model))
            made = OpenVinoBackEnd(place, precision, threads)
        elif precision != self._exact.precision:
            made = TorchBackEnd(self._model, precision)
        low = [torch.bfloat16] if made.name == "torch" and precision == "bfloat16" else []
        pack_linear_layers(self._model, [torch.float32, *low])
        return made

    def predict(self, sentences: Sequence[str]) -> list[Prediction | None]:
        """Predict each sentence; None for one that is empty or blank. Probabilities sum to 1 within 1e-6.

        Batches are sorted by length and hold at most `TOKEN_BUDGET` padded tokens; a sentence longer than the model's
        limit is judged on its beginning and flagged.
        """
        wanted = [index for index, sentence in enumerate(sentences) if sentence.strip()]
        encoded = self._encode([sentences[index] for index in wanted])
        results: list[Prediction | None] = [None] * len(sentences)
        with threads_of(self._threads):
            for batch in batches_by_length([len(e.tokens) for e in encoded], TOKEN_BUDGET):
                decided = len(batch) == 1 and self._back_end is self._exact
                found = self._probabilities([encoded[i] for i in batch], self._back_end)
                for place, probs in zip(batch, found, strict=True):
                    if _near_tie(probs) and not decided:
                        probs = self._probabilities([encoded[place]], self._exact)[0]
                    results[wanted[place]] = self._prediction(probs, encoded[place].truncated)
        return results

    def raw_probabilities(self, sentences: Sequence[str], *, exact: bool = False) -> list[list[float]]:
        """Return the probabilities in the order of `labels`, near ties not decided; with `exact`, those of float32.

        Each row is of one sentence, and batches are those of `predict`.
        """
        encoded = self._encode(sentences)
        rows: list[list[float]] = [[]] * len(encoded)
        with threads_of(self._threads):
            for batch in batches_by_length([len(e.tokens) for e in encoded], TOKEN_BUDGET):
                found = self._probabilities([encoded[i] for i in batch], self._exact if exact else self._back_end)
                for place, probs in zip(batch, found, strict=True):
                    rows[place] = probs
        return rows

    def _encode(self, sentences: Sequence[str]) -> list[Encoded]:
        if not sentences:
            return []
        # A tokenizer keeps its truncation between calls: another thread would see it switched on or off halfway.
        with self._tokenizing:
            whole = self._tokenizer(list(sentences), truncation=False, verbose=False)["input_ids"]
            long = [place for place, tokens in enumerate(whole) if len(tokens) > self._max_tokens]
            encoded = [Encoded(tokens, False) for tokens in whole]
            for place in long:
                cut = self._tokenizer(sentences[place], truncation=True, max_length=self._max_tokens)["input_ids"]
                encoded[place] = Encoded(cut, True)
        return encoded

    def _probabilities(self, batch: Sequence[Encoded], back_end: BackEnd) -> list[list[float]]:
        logits = back_end.logits(padded([e.tokens for e in batch], self._tokenizer.pad_token_id))
        # Double precision: three float32 terms may miss a sum of 1 by more than 1e-7.
        rows: list[list[float]] = torch.softmax(logits.double(), dim=-1).tolist()
        return rows

    def _prediction(self, probs: Sequence[float], truncated: bool) -> Prediction:
        named = dict(zip(self.labels, probs, strict=True))
        # A tie to the last bit goes to the first label by name, whatever the order of the head.
        best = max(sorted(named), key=lambda label: named[label])
        return Prediction(best, named, truncated)


def _near_tie(probs: Sequence[float]) -> bool:
    first, second = sorted(probs, reverse=True)[:2]
    return first - second <= NEAR_TIE


def padded(rows: Sequence[Sequence[int]], pad: int) -> dict[str, torch.Tensor]:
    """Return input ids and attention mask, both (rows, longest), padded on the right."""
    longest = max(len(row) for row in rows)
    ids = torch.full((len(rows), longest), pad, dtype=torch.long)
    mask = torch.zeros((len(rows), longest), dtype=torch.long)
    for place, row in enumerate(rows):
        ids[place, : len(row)] = torch.tensor(row)
        mask[place, : len(row)] = 1
    return {"input_ids": ids, "attention_mask": mask}


def batches_by_length(lengths: Sequence[int], budget: int) -> Iterator[list[int]]:
    """Yield places in order of length, as many at once as is worth it.

    The longest of a batch times their number stays within `budget`, and what padding adds to them within `START`.
    """
    batch: list[int] = []
    tokens = 0
    for place in sorted(range(len(lengths)), key=lambda index: (lengths[index], index)):
        length = lengths[place]
        if batch and (length * (len(batch) + 1) > budget or length * len(batch) - tokens > START):
            yield batch
            batch, tokens = [], 0
        batch.append(place)
        tokens += length
    if batch:
        yield batch
