"""The packaged demonstration corpus: reviews whose sentences carry their true labels, and labelled seed sentences.

Written for this project by its authors; `demo_data/CARD.md` says what it is and what it must not be used for.
"""

import csv
import io
import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

DATA = Path(__file__).parent / "demo_data"
HELD_OUT_SEEDS = 150
SHARES_OF = {1: "reviews-round-1.jsonl", 2: "reviews-round-2.jsonl"}


class DemoSentence(NamedTuple):
    """One sentence with the label that it carries when it is read alone."""

    text: str
    label: str


class DemoReview(NamedTuple):
    """One review; `round` is the demo's round that reads it. The text is its sentences, joined by blanks."""

    review_id: str
    round: int
    kind: str
    stars: int
    sentences: tuple[DemoSentence, ...]

    @property
    def text(self) -> str:
        """The review as a reader meets it."""
        return " ".join(sentence.text for sentence in self.sentences)

    def places(self) -> Iterator[tuple[int, int, str]]:
        """Yield start, end and label of every sentence, in code points of `text`."""
        start = 0
        for text, label in self.sentences:
            yield start, start + len(text), label
            start += len(text) + 1


class DemoSeed(NamedTuple):
    """One labelled sentence for Model 0."""

    text: str
    label: str
    kind: str


class DemoFiles(NamedTuple):
    """Where the corpus was laid out as a launcher's own files would be."""

    seeds: Path
    held_out_seeds: Path
    reviews: dict[int, Path]
    truth: Path


def demo_reviews() -> list[DemoReview]:
    """Return all reviews in file order."""
    found = []
    for line in _lines(DATA / "reviews.jsonl"):
        sentences = tuple(DemoSentence(s["text"], s["label"]) for s in line["sentences"])
        found.append(DemoReview(line["review_id"], line["round"], line["kind"], line["stars"], sentences))
    return found


def demo_seeds() -> list[DemoSeed]:
    """Return all seed sentences in file order; the last `HELD_OUT_SEEDS` are for judging Model 0 alone."""
    return [DemoSeed(line["text"], line["label"], line["kind"]) for line in _lines(DATA / "seeds.jsonl")]


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    with path.open(encoding="utf-8") as lines:
        yield from map(json.loads, lines)


def lay_out(folder: Path) -> DemoFiles:
    """Write the corpus as plain files into `folder`: seeds and held-out seeds as CSV, the rest as JSON lines."""
    folder.mkdir(parents=True, exist_ok=True)
    files = DemoFiles(
        seeds=folder / "seeds.csv",
        held_out_seeds=folder / "seeds-held-out.csv",
        reviews={number: folder / name for number, name in SHARES_OF.items()},
        truth=folder / "truth.jsonl",
    )
    seeds, reviews = demo_seeds(), demo_reviews()
    _write(files.seeds, _seed_table(seeds[:-HELD_OUT_SEEDS]))
    _write(files.held_out_seeds, _seed_table(seeds[-HELD_OUT_SEEDS:]))
    for number, path in files.reviews.items():
        mine = [review for review in reviews if review.round == number]
        _write(path, _json_lines({"review_id": r.review_id, "rating": r.stars, "text": r.text} for r in mine))
    carried = (
        {"review_id": review.review_id, "start": start, "end": end, "label": label}
        for review in reviews
        for start, end, label in review.places()
    )
    _write(files.truth, _json_lines(carried))
    return files


def _seed_table(seeds: Sequence[DemoSeed]) -> str:
    table = io.StringIO()
    writer = csv.writer(table, lineterminator="\n")
    writer.writerow(["text", "label"])
    writer.writerows((seed.text, seed.label) for seed in seeds)
    return table.getvalue()


def _json_lines(rows: Iterable[Mapping[str, Any]]) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)


def _write(path: Path, content: str) -> None:
    # Left alone where it is the same: another process may be reading it.
    if path.is_file() and path.read_text(encoding="utf-8") == content:
        return
    part = path.with_name(f".{path.name}.part")
    part.write_text(content, encoding="utf-8")
    os.replace(part, path)
