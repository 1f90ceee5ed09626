"""How fast each back end of this machine predicts sentences, beside the transformers pipeline in the same run.

Run: python -m benchmarks.predict [REVIEWS [LABELLED]]; without them Yelp and SST of the shared data folder are read.
MiniLM is fitted here on a part of LABELLED, so that near ties are about as frequent as in use. All runs on one core and
is measured in processor time, which other work on the machine changes little. Labels are compared with those of torch
in float32, before near ties are decided. "First load" exports where there is something to export, and tries the back
end on a sample; "load" is any later one, in a process of its own that has imported what it needs.
"""

import argparse
import json
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import torch

from dynaround.back_ends import EXACT, WAYS, Way, openvino_is_installed
from dynaround.corpus.reviews import read_rated_sentences
from dynaround.encoders import find_encoder, quiet_transformers
from dynaround.mixture import mix
from dynaround.processor import has_bfloat16
from dynaround.serving import SAMPLE_SIZE, compare, load_served_model
from dynaround.target_model import NEAR_TIE, TargetModel
from dynaround.tasks.sentiment import SENTIMENT
from dynaround.training import Recipe, train
from dynaround.training_settings import TrainingSettings

DATA = Path(__file__).resolve().parents[2] / "shared" / "data"
REVIEWS = f"csv:{DATA / 'reviews/yelp_1_and_5_star.csv'}"
LABELLED = f"sst:{DATA / 'sst'}"
SENTENCES = 1_000
FITTED = 1_600
FOR_PEAK = 500
ROUNDS = 2
"""Runs of each, in turn; the best counts."""
LABELS = SENTIMENT.model_labels
PIPELINE = "pipeline, batch 32"

Predict = Callable[[Sequence[str]], object]


class Loaded(NamedTuple):
    """Seconds of processor time to load a model, and the peak memory in MB after it has predicted some sentences."""

    seconds: float
    peak: float


def sentences_of(spec: str, count: int) -> list[str]:
    """Return the first `count` sentences."""
    found = read_rated_sentences(spec, on_reject=lambda rejected: None)
    return [sentence.text for sentence in islice(found, count)]


def fit(spec: str, folder: Path) -> None:
    """Train MiniLM for one epoch on some rows of a labelled corpus."""
    rows = random.Random(0).sample(mix([spec], SENTIMENT, on_reject=lambda spec, rejected: None).rows, FITTED)
    recipe = Recipe(
        "benchmark", SENTIMENT.name, LABELS, find_encoder("minilm"), TrainingSettings(epochs=1, threads=1), {}
    )
    train(rows, recipe, folder, lambda done, steps: None)


def ways_here() -> list[Way]:
    """Return what this machine has, torch in float32 first."""
    installed = [way for way in WAYS if way.back_end == "torch" or openvino_is_installed()]
    return [way for way in reversed(installed) if way.precision == "float32" or has_bfloat16()]


def pipeline(folder: Path) -> Predict:
    """Return the transformers pipeline; it truncates as our folder does, since a longer sentence is an error to it."""
    classify = quiet_transformers().pipeline("text-classification", str(folder), device="cpu", dtype=torch.float32)
    return lambda texts: classify(list(texts), batch_size=32, truncation=True, max_length=128)


def load(way: Way, folder: Path) -> TargetModel:
    """Load a model as it serves, on one core."""
    return load_served_model(folder, LABELS, back_end=way.back_end, precision=way.precision, threads=1)


def loaded_alone(name: str, folder: Path, spec: str) -> Loaded:
    """Return what loading costs in a process of its own that then predicts the first sentences."""
    command = [sys.executable, "-m", "benchmarks.predict", spec, "--alone", name, "--model", str(folder)]
    return Loaded(**json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout))


def alone(name: str, folder: Path, spec: str) -> Loaded:
    """Load and predict in this process."""
    texts = sentences_of(spec, FOR_PEAK)
    quiet_transformers().AutoTokenizer.from_pretrained(folder)
    start = time.process_time()
    way = next((way for way in WAYS if str(way) == name), None)
    predict = pipeline(folder) if way is None else load(way, folder).predict
    seconds = time.process_time() - start
    predict(texts)
    return Loaded(seconds, own_peak())


def own_peak() -> float:
    """Return the most memory of this process in MB; getrusage would count the parent's from before the start too."""
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return int(next(line for line in status.splitlines() if line.startswith("VmHWM:")).split()[1]) / 1024


def timed(predicts: dict[str, Predict], texts: Sequence[str]) -> dict[str, float]:
    """Return the fewest seconds of processor time of each; they take turns."""
    seconds = {name: float("inf") for name in predicts}
    for _ in range(ROUNDS):
        for name, predict in predicts.items():
            start = time.process_time()
            predict(texts)
            seconds[name] = min(seconds[name], time.process_time() - start)
    return seconds


def compare_ways(spec: str, folder: Path) -> None:
    """Print of each way sentences a second and its ratio to the pipeline, agreement with float32, loading, memory."""
    texts = sentences_of(spec, SENTENCES)
    models: dict[Way, TargetModel] = {}
    first: dict[str, float] = {}
    for way in ways_here():
        start = time.process_time()
        models[way] = load(way, folder)
        first[str(way)] = time.process_time() - start
    seconds = timed({PIPELINE: pipeline(folder), **{str(way): m.predict for way, m in models.items()}}, texts)
    exact = models[EXACT].raw_probabilities(texts)
    trials = {str(way): compare(exact, model.raw_probabilities(texts)) for way, model in models.items()}
    where = f"torch {torch.__version__}, {torch.backends.cpu.get_cpu_capability()}, one core, best of {ROUNDS} runs"
    print(f"{len(texts):,} sentences of {spec}, MiniLM, {where}")
    print(f"first loads try a back end on {SAMPLE_SIZE:,} sentences; beyond: other labels that are no near ties")
    print(f"{'':22}{'sentences/s':>12}{'ratio':>7}{'same':>7}{'beyond':>8}{'apart':>9}{'first load':>12}", end="")
    print(f"{'load':>7}{'peak MB':>9}")
    for name, spent in seconds.items():
        cost = loaded_alone(name, folder, spec)
        same = f"{trials[name].same:7,}{trials[name].beyond:8}{trials[name].apart:9.1e}" if name in trials else " " * 24
        load_first = f"{first[name]:10.1f} s" if name in first else " " * 12
        print(f"{name:22}{len(texts) / spent:12,.0f}{seconds[PIPELINE] / spent:7.2f}{same}{load_first}", end="")
        print(f"{cost.seconds:5.1f} s{cost.peak:9,.0f}", flush=True)
    near = sum(1 for row in exact if sorted(row)[-1] - sorted(row)[-2] <= NEAR_TIE)
    print(f"near ties, decided again by float32 on the sentence alone: {near}")


def main() -> None:
    """Compare all ways, or tell what one costs alone."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("reviews", nargs="?", default=REVIEWS, metavar="REVIEWS")
    parser.add_argument("labelled", nargs="?", default=LABELLED, metavar="LABELLED")
    parser.add_argument("--alone", choices=(PIPELINE, *map(str, WAYS)), help=argparse.SUPPRESS)
    parser.add_argument("--model", type=Path, help="a model folder to predict with, in the place of one fitted here")
    given = parser.parse_args()
    torch.set_num_threads(1)
    if given.alone:
        print(json.dumps(alone(given.alone, given.model, given.reviews)._asdict()))
        return
    if given.model:
        compare_ways(given.reviews, given.model)
        return
    with tempfile.TemporaryDirectory() as parent:
        folder = Path(parent) / "benchmark"
        fit(given.labelled, folder)
        compare_ways(given.reviews, folder)


if __name__ == "__main__":
    main()
