"""How fast a model is trained and how good it is, beside the transformers Trainer with its defaults.

Run: python -m benchmarks.training [--rows N] [--epochs N] [--seeds N]; SST is read from the shared data folder. Both
train MiniLM on the same rows with the same batch rows, epochs and learning rate, in turn, each in a process of its own
on two threads, from its start to the saved model. Macro F1 is that of SST dev. Processor time is printed beside the
clock's: it tells more where others use the machine.
"""

import argparse
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import torch
from scipy import stats

from dynaround.corpus.labelled import read_labelled
from dynaround.encoders import find_encoder, quiet_transformers, start_model
from dynaround.mixture import TrainingRow, plain_row
from dynaround.scoring import score
from dynaround.target_model import batches_by_length, padded
from dynaround.tasks.sentiment import SENTIMENT
from dynaround.training import Recipe, train
from dynaround.training_settings import TrainingSettings

SST = Path(__file__).resolve().parents[2] / "shared" / "data" / "sst"
LABELS = list(SENTIMENT.model_labels)
ARMS = ("Trainer", "ours")
BATCH_ROWS = 8
"""The Trainer's default."""
RATE = 5e-5
"""The Trainer's default, and ours."""
MAX_TOKENS = 128


class Run(NamedTuple):
    """One training: seconds by the clock and of the processor, and macro F1 on SST dev."""

    clock: float
    processor: float
    macro_f1: float


def sst_rows(name: str) -> list[TrainingRow]:
    """Return the sentences of one file of SST as rows."""
    read = read_labelled(f"sst:{SST / name}", label_of=SENTIMENT.label_of, on_reject=lambda rejected: None)
    return [plain_row(sentence.text, str(sentence.gold)) for sentence in read]


def train_ours(rows: Sequence[TrainingRow], folder: Path, given: argparse.Namespace) -> None:
    """Train with the settings that both share, ours otherwise."""
    settings = TrainingSettings(
        seed=given.seed,
        epochs=given.epochs,
        learning_rate=RATE,
        batch_rows=BATCH_ROWS,
        max_tokens=MAX_TOKENS,
        precision=given.precision,
        threads=given.threads,
    )
    recipe = Recipe("benchmark", SENTIMENT.name, LABELS, find_encoder("minilm"), settings, {})
    train(rows, recipe, folder, lambda done, steps: None)


def train_by_trainer(rows: Sequence[TrainingRow], folder: Path, given: argparse.Namespace) -> None:
    """Train with the transformers Trainer as its documentation shows it."""
    transformers = quiet_transformers()
    torch.manual_seed(given.seed)
    model, tokenizer = start_model(find_encoder("minilm"), LABELS, MAX_TOKENS)
    ids = tokenizer([row.text for row in rows], truncation=True, max_length=MAX_TOKENS)["input_ids"]
    labels = [LABELS.index(row.shares[0][0]) for row in rows]
    arguments = transformers.TrainingArguments(
        output_dir=str(folder / "trainer"),
        per_device_train_batch_size=BATCH_ROWS,
        num_train_epochs=given.epochs,
        learning_rate=RATE,
        seed=given.seed,
        use_cpu=True,
        report_to="none",
        disable_tqdm=True,
    )
    data = [{"input_ids": tokens, "labels": label} for tokens, label in zip(ids, labels, strict=True)]
    trainer = transformers.Trainer(model=model, args=arguments, train_dataset=data, processing_class=tokenizer)
    trainer.train()
    trainer.save_model(str(folder))


def macro_f1(folder: Path, rows: Sequence[TrainingRow]) -> float:
    """Judge a saved model in the same way, whoever made it."""
    transformers = quiet_transformers()
    model = transformers.AutoModelForSequenceClassification.from_pretrained(folder).eval()
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    ids = tokenizer([row.text for row in rows], truncation=True, max_length=MAX_TOKENS)["input_ids"]
    said = [""] * len(rows)
    with torch.inference_mode():
        for batch in batches_by_length([len(tokens) for tokens in ids], 2048):
            best = model(**padded([ids[i] for i in batch], tokenizer.pad_token_id)).logits.argmax(dim=-1)
            for place, index in zip(batch, best.tolist(), strict=True):
                said[place] = model.config.id2label[index]
    return score([row.shares[0][0] for row in rows], said, LABELS).macro_f1


def measured(arm: str, seed: int, given: argparse.Namespace, dev: Sequence[TrainingRow]) -> Run:
    """Train one arm with one seed in a process of its own."""
    with tempfile.TemporaryDirectory() as parent:
        folder = Path(parent) / "model"
        command = [sys.executable, "-m", "benchmarks.training", "--arm", arm, "--seed", str(seed)]
        command += ["--folder", str(folder), "--rows", str(given.rows), "--epochs", str(given.epochs)]
        command += ["--threads", str(given.threads), "--precision", given.precision]
        before, start = os.times(), time.perf_counter()
        # Threads that wait by spinning would cost the other arm's turn nothing, but other users of the machine much.
        environment = {**os.environ, "OMP_NUM_THREADS": str(given.threads), "OMP_WAIT_POLICY": "passive"}
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment)
        clock, after = time.perf_counter() - start, os.times()
        used = after.children_user + after.children_system - before.children_user - before.children_system
        return Run(clock, used, macro_f1(folder, dev))


def told(runs: dict[str, list[Run]], rows: int) -> None:
    """Print rows a second, their ratio and the paired difference of macro F1 over the seeds so far."""
    by_seed = list(zip(runs[ARMS[0]], runs[ARMS[1]], strict=True))
    for arm in ARMS:
        clock, used = sum(run.clock for run in runs[arm]), sum(run.processor for run in runs[arm])
        scores = " ".join(f"{run.macro_f1:.4f}" for run in runs[arm])
        rate = rows * len(runs[arm]) / clock
        each = f"{1000 * used / rows / len(runs[arm]):.1f} ms of processor a row"
        print(f"{arm:8} {rate:7.1f} rows/s by the clock, {each}; macro F1 {scores}")
    ratios = [(theirs.clock / ours.clock, theirs.processor / ours.processor) for theirs, ours in by_seed]
    print("ratio, seed by seed (clock, processor):", "  ".join(f"{a:.2f} {b:.2f}" for a, b in ratios))
    differences = [ours.macro_f1 - theirs.macro_f1 for theirs, ours in by_seed]
    mean = sum(differences) / len(differences)
    print(f"macro F1, ours - Trainer: mean {mean:+.4f}", end="")
    if len(differences) > 1:
        low, high = stats.t.interval(0.95, len(differences) - 1, mean, stats.sem(differences))
        print(f", 95 % interval [{low:+.4f}, {high:+.4f}] (t, {len(differences)} paired seeds)", end="")
    print(flush=True)


def main() -> None:
    """Compare both, or be one of them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=8_544)
    parser.add_argument("--epochs", type=int, default=1)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--precision", default="auto")
    parser.add_argument("--arm", choices=ARMS, help=argparse.SUPPRESS)
    parser.add_argument("--seed", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    torch.set_num_threads(given.threads)
    every = sst_rows("train.txt")
    rows = random.Random(0).sample(every, min(given.rows, len(every)))
    if given.arm:
        (train_ours if given.arm == "ours" else train_by_trainer)(rows, given.folder, given)
        return
    dev = sst_rows("dev.txt")
    where = f"torch {torch.__version__}, {torch.backends.cpu.get_cpu_capability()}, {given.threads} threads"
    print(
        f"{len(rows):,} rows of SST, {given.epochs} epochs, batches of {BATCH_ROWS} rows, MiniLM, {where}", flush=True
    )
    runs: dict[str, list[Run]] = {arm: [] for arm in ARMS}
    for seed in range(given.seeds):
        # In turn the first, so that neither always has the warmer machine.
        for arm in ARMS if seed % 2 else ARMS[::-1]:
            runs[arm].append(measured(arm, seed, given, dev))
        told(runs, len(rows) * given.epochs)


if __name__ == "__main__":
    main()
