"""The published files as the records that measures take."""

import json
from pathlib import Path
from typing import Any

from dynaround.agreement import WorkerResponse
from dynaround.answered_items import AnsweredItem

ORDER = ("positive", "negative", "neutral", "mixed")
MODEL_LABELS = ORDER[:3]
ROUND_1, ROUND_2 = "dynasent-v1.1-round01-yelp-dev", "dynasent-v1.1-round02-dynabench-dev"
SST = "sst-dev-validated"


def published(shared_data: Path, name: str) -> list[dict[str, Any]]:
    lines = (shared_data / "dynasent" / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


def votes(row: dict[str, Any]) -> list[tuple[str, str]]:
    return [(worker, label) for label, workers in row["label_distribution"].items() for worker in workers]


def answered(shared_data: Path, name: str) -> list[AnsweredItem]:
    """Dev files are held out; the SST file stands in no split."""
    return [
        AnsweredItem(row["gold_label"], tuple(votes(row)), row.get("review_id"), name != SST)
        for row in published(shared_data, name)
    ]


def worker_responses(shared_data: Path, name: str) -> list[WorkerResponse]:
    rows = published(shared_data, name)
    return [WorkerResponse(row["text_id"], worker, label) for row in rows for worker, label in votes(row)]
