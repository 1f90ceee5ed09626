"""How many attempts a running server takes from authors that never pause, beside the same server with plain pipelines.

Run: python -m benchmarks.authoring [--precision float32] [--model FOLDER] [--practice]. One process a core serves
MiniLM; the authors (`benchmarks.authors`) share the machine with it. Without a model one is fitted here on a part of
SST, whose sentences they send. The two servers take turns; ratios are those of one turn.
"""

import argparse
import json
import os
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from benchmarks.authors import AUTHORS, HOST, MEASURED, PASSWORD, WARM_UP, Browser, author_name
from benchmarks.predict import LABELLED, REVIEWS, fit
from dynaround.database import writing
from dynaround.settings import DATABASE_NAME, create_workspace
from dynaround.tables import WORKER
from dynaround.task import Prediction
from rounds.opening import open_new_round
from workers.accounts import hashed_password, make_account

if TYPE_CHECKING:
    from flask import Flask

    from server.live_model import LiveAnswer

CORES = 2
TURNS = 3
SECRET = "a secret of a benchmark, that guards nothing"
MODEL = "model-0"
OURS, PIPELINE = "waiting together", "one pipeline call each"
APPLICATIONS = {OURS: "server.wsgi:app()", PIPELINE: "benchmarks.authoring:pipeline_app()"}


class PipelineModels:
    """What stands in the place of the live models: one call of a transformers pipeline for each request."""

    def __init__(self, folder: Path, model_hash: str):
        import torch

        from dynaround.encoders import quiet_transformers

        torch.set_num_threads(1)
        self._classify = quiet_transformers().pipeline(
            "text-classification", str(folder), device="cpu", dtype=torch.float32, top_k=None
        )
        self._model_hash = model_hash
        # Two calls at once on one core would only slow each other down.
        self._turn = threading.Lock()

    def for_round(self, round_: Any, labels: Sequence[str]) -> "PipelineModels":
        """Return what answers for a round."""
        return self

    def warm(self) -> None:
        """Do nothing: the model is loaded."""

    def ask(self, text: str) -> "LiveAnswer":
        """Predict one text."""
        from server.live_model import LiveAnswer

        start = time.perf_counter()
        with self._turn:
            (found,) = self._classify([text], truncation=True, max_length=128)
        probs = {row["label"]: row["score"] for row in found}
        prediction = Prediction(max(probs, key=lambda label: probs[label]), probs)
        return LiveAnswer(prediction, self._model_hash, "float32", "pipeline", time.perf_counter() - start)


def pipeline_app() -> "Flask":
    """Make the application of one process of the server that is compared with."""
    from dynaround.folders import read_manifest
    from server import wsgi
    from server.live_model import MODELS

    app = wsgi.app()
    folder = Path(os.environ["DYNAROUND_WORKSPACE"]) / "models" / MODEL
    # The one that began to load is not asked.
    app.extensions[MODELS].close()
    app.extensions[MODELS] = PipelineModels(folder, read_manifest(folder)["hash"])
    return app


def prepare(root: Path, model: Path | None) -> None:
    """Make a workspace with MiniLM as the target model, an open round that people write in, and accounts."""
    workspace = create_workspace(root)
    if model is None:
        fit(LABELLED, workspace.models / MODEL)
    else:
        shutil.copytree(model, workspace.models / MODEL)

    def now() -> datetime:
        return datetime.now(UTC)

    writes_on = {"attempts_a_day": 1_000_000, "authors_per_prompt": 1_000}
    options = {"size": 0, "seed": 0, "prompts": 300, "authoring": writes_on}
    open_new_round(
        workspace, workspace.engine(), target=MODEL, reviews=REVIEWS, options=options, who="benchmark", now=now
    )
    password_hash = hashed_password(PASSWORD)
    with writing(workspace.engine()) as session:
        for place in range(AUTHORS):
            make_account(session, author_name(place), WORKER, password_hash, now(), f"platform-{place}")
    workspace.close()


@contextmanager
def serving(root: Path, way: str, precision: str) -> Iterator[tuple[int, int]]:
    """Run a server on a copy of the database; yield its port and the id of its first process."""
    shutil.copy(root / DATABASE_NAME, root / "before.sqlite")
    with socket.create_server((HOST, 0)) as free:
        port = free.getsockname()[1]
    environment = os.environ | {
        "DYNAROUND_WORKSPACE": str(root),
        "DYNAROUND_SECRET": SECRET,
        "DYNAROUND_HOSTS": json.dumps([HOST]),
        "DYNAROUND_PRECISION": precision,
        "DYNAROUND_THREADS": "1",
        "OMP_NUM_THREADS": "1",
        "HF_HUB_OFFLINE": "1",
    }
    command = [sys.executable, "-m", "gunicorn", "-w", str(CORES), "--threads", str(AUTHORS), "--keep-alive", "60"]
    command += ["-b", f"{HOST}:{port}", "--log-level", "warning", APPLICATIONS[way]]
    server = subprocess.Popen(command, env=environment)
    try:
        wait_for(port)
        yield port, server.pid
    finally:
        server.send_signal(signal.SIGTERM)
        server.wait(30)
        for end in ("-wal", "-shm"):
            (root / (DATABASE_NAME + end)).unlink(missing_ok=True)
        (root / "before.sqlite").replace(root / DATABASE_NAME)


def wait_for(port: int) -> None:
    """Return when a server answers."""
    end = time.monotonic() + 60
    while True:
        try:
            Browser(port).get("/log-in")
            return
        except OSError:
            if time.monotonic() > end:
                raise
            time.sleep(0.2)


class Run(NamedTuple):
    """Attempts a second; seconds of the server's processors for each, of the calls, and of the calls with the page that
    follows; attempts that were not stored; the load of the machine.
    """

    rate: float
    processor: float
    calls: list[float]
    turns: list[float]
    refused: int
    failed: int
    load: float


def run(root: Path, way: str, precision: str, authors: int, practice: bool) -> Run:
    """Serve, and let a process of authors work at it."""
    with serving(root, way, precision) as (port, server):
        command = [sys.executable, "-m", "benchmarks.authors", str(port), str(authors), str(server)]
        command += ["--practice"] if practice else []
        told = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
        load = os.getloadavg()[0]
    count = len(told["calls"])
    spent = told["processor"] / count
    return Run(count / MEASURED, spent, told["calls"], told["turns"], told["refused"], told["failed"], load)


def quantiles(seconds: Sequence[float]) -> tuple[float, float]:
    """Return p50 and p95 in milliseconds."""
    ordered = sorted(seconds)
    return 1000 * statistics.median(ordered), 1000 * ordered[int(0.95 * (len(ordered) - 1))]


def line(name: str, run: Run) -> str:
    """Return the figures of a run."""
    (p50, p95), (page50, page95) = quantiles(run.calls), quantiles(run.turns)
    figures = f"{run.rate:9.1f}{1000 * run.processor:11.1f}{p50:9.1f}{p95:9.1f}{page50:12.1f}{page95:9.1f}"
    return f"{name:34}{figures}{run.refused:9}{run.failed:8}{run.load:7.1f}"


def compare(root: Path, precision: str, turns: int, practice: bool) -> None:
    """Print the figures of each run, and the median of the ratios."""
    what = "practice texts" if practice else "attempts"
    print(f"{what}, {CORES} processes, MiniLM in {precision}, {MEASURED:g} s a run after {WARM_UP:g} s; milliseconds")
    figures = f"{'a second':>9}{'processor':>11}{'p50':>9}{'p95':>9}{'p50 + page':>12}{'p95':>9}"
    print(f"{'':34}{figures}{'refused':>9}{'failed':>8}{'load':>7}")
    ratios = []
    for _ in range(turns):
        both = {way: run(root, way, precision, AUTHORS, practice) for way in APPLICATIONS}
        for way, found in both.items():
            print(line(f"{AUTHORS} authors, {way}", found), flush=True)
        ratios.append(both[OURS].rate / both[PIPELINE].rate)
    for _ in range(turns):
        print(line(f"1 author, {OURS}", run(root, OURS, precision, 1, practice)), flush=True)
    shown = ", ".join(f"{ratio:.2f}" for ratio in ratios)
    print(f"{what} a second beside the pipeline: {statistics.median(ratios):.2f} times (median of {shown})")


def main() -> None:
    """Compare the two servers."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--precision", choices=("float32", "bfloat16"), default="bfloat16")
    parser.add_argument("--model", type=Path, help="a model folder to serve; without it one is fitted")
    parser.add_argument("--turns", type=int, default=TURNS)
    parser.add_argument("--practice", action="store_true", help="texts that are predicted and never stored")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as parent:
        root = Path(parent) / "benchmark"
        prepare(root, given.model)
        compare(root, given.precision, given.turns, given.practice)


if __name__ == "__main__":
    main()
