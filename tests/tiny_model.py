"""A tiny encoder made here: random weights and a small vocabulary in real files, loaded by the real code."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import torch
from transformers import BertConfig, BertModel, BertTokenizerFast

from dynaround.encoders import find_encoder
from dynaround.mixture import TrainingRow, plain_row
from dynaround.training import Recipe, train
from dynaround.training_settings import TrainingSettings

LABELS = ("positive", "negative", "neutral")

WORDS = """
the a it was is and but not very food soup room staff service good great lovely bad awful cold warm slow broken on in
at we they i you open closed monday parking place price never again ok
""".split()


def make_encoder(folder: Path, seed: int = 0) -> Path:
    """Write a tiny pretrained encoder into `folder` and return it."""
    folder.mkdir(parents=True, exist_ok=True)
    vocabulary = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS, *"abcdefghijklmnopqrstuvwxyz.,!?'"]
    vocabulary = list(dict.fromkeys(vocabulary + [f"##{c}" for c in "abcdefghijklmnopqrstuvwxyz"]))
    (folder / "vocab.txt").write_text("\n".join(vocabulary) + "\n", encoding="utf-8")
    BertTokenizerFast(vocab=str(folder / "vocab.txt"), model_max_length=128).save_pretrained(folder)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        config = BertConfig(
            vocab_size=len(vocabulary),
            hidden_size=32,
            num_hidden_layers=2,
            num_attention_heads=2,
            intermediate_size=64,
            max_position_embeddings=128,
        )
        BertModel(config).save_pretrained(folder, safe_serialization=True)
    return folder


ROWS = [
    plain_row("the food was great and lovely", "positive"),
    plain_row("lovely staff", "positive"),
    plain_row("good place good price", "positive"),
    plain_row("awful cold soup", "negative"),
    plain_row("the room was broken and slow", "negative"),
    plain_row("bad service never again", "negative"),
    plain_row("parking is closed on monday", "neutral"),
    plain_row("they open at a place", "neutral"),
    plain_row("it is on monday", "neutral"),
]


def make_model(
    folder: Path,
    encoder: Path,
    *,
    labels: Sequence[str] = LABELS,
    task: str = "sentiment",
    rows: Sequence[TrainingRow] = ROWS,
    epochs: int = 20,
    review_ids: Sequence[str] = (),
    settings: Mapping[str, object] | None = None,
) -> Path:
    """Train a tiny model into `folder` with the real training code and return the folder."""
    usual: dict[str, object] = {"epochs": epochs, "learning_rate": 3e-3, "batch_rows": 4, "threads": 1}
    chosen = TrainingSettings(**usual | dict(settings or {}))  # type: ignore[arg-type]
    recipe = Recipe(folder.name, task, labels, find_encoder(str(encoder)), chosen, {"corpora": []}, review_ids)
    train(rows, recipe, folder, lambda done, steps: None)
    return folder
