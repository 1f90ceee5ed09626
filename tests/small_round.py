"""A small round for tests: made-up reviews of a few words, each sentence with the label that its words stand for."""

import json
import random
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from dynaround.mixture import plain_row
from dynaround.settings import Workspace
from tests.tiny_model import make_model

MOMENT = datetime(2026, 1, 2, 3, 4, tzinfo=UTC)

THINGS = ["food", "soup", "room", "staff", "service", "place", "price", "parking"]
SAID = {
    "positive": ["great", "lovely", "good", "warm"],
    "negative": ["awful", "bad", "broken", "slow", "cold"],
    "neutral": ["open on monday", "closed", "at the place", "on a monday", "in a room"],
    "mixed": ["good but slow", "great but cold", "lovely but broken"],
}


def now() -> datetime:
    """Return the one moment of all tests."""
    return MOMENT


class ReviewFiles(NamedTuple):
    """Reviews as JSON lines, and the label that each of their sentences carries."""

    reviews: Path
    truth: Path


def write_reviews(folder: Path, reviews: int = 90, seed: int = 0, *, first: int = 0) -> ReviewFiles:
    """Write reviews of 1 and 5 stars with two to four sentences each, half of them against their stars."""
    generator = random.Random(seed)
    folder.mkdir(parents=True, exist_ok=True)
    files = ReviewFiles(folder / f"reviews-{seed}.jsonl", folder / f"truth-{seed}.jsonl")
    with files.reviews.open("w") as lines, files.truth.open("w") as truths:
        for number in range(first, first + reviews):
            rating, start, sentences = generator.choice([1, 5]), 0, []
            for place in range(generator.randint(2, 4)):
                label = generator.choices(list(SAID), [3, 3, 3, 1])[0]
                said = f"The {generator.choice(THINGS)} was {generator.choice(SAID[label])}, {number} {place}."
                carried = {"review_id": f"v{number}", "start": start, "end": start + len(said), "label": label}
                truths.write(json.dumps(carried) + "\n")
                sentences.append(said)
                start += len(said) + 1
            lines.write(json.dumps({"review_id": f"v{number}", "rating": rating, "text": " ".join(sentences)}) + "\n")
    return files


def add_tiny_model(workspace: Workspace, encoder: Path, name: str = "model-0", review_ids: Sequence[str] = ()) -> None:
    """Train a tiny model into a workspace that goes by what a sentence is about, so that it errs in every direction."""
    heard = ["positive", "negative", "neutral"]
    rows = [
        plain_row(f"The {thing} was {said}", heard[place % 3])
        for place, thing in enumerate(THINGS)
        for label in heard
        for said in SAID[label][:3]
    ]
    make_model(workspace.models / name, encoder, rows=rows, epochs=6, review_ids=review_ids)
