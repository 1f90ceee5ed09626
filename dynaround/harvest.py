"""Harvest: predict a stream of rated sentences into a spool on disk, then select where model and world disagree.

The spool is a SQLite file: chunks are committed whole, so a killed run goes on where it stopped, and the selection
reads it in random order without holding it in memory.
"""

import hashlib
import itertools
import json
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import NamedTuple, Protocol

from dynaround.corpus.reviews import RatedSentence
from dynaround.errors import BadInput
from dynaround.task import Prediction, Task
from dynaround.text import text_key

CHUNK = 2048
"""Sentences predicted between two commits: some seconds of work on two cores."""

RANDOM_CELL = "random"

_POOL, _CELL = "pool", "cell"
# What the keys of counts begin with that stand for a rating and prediction, and for a disagreement.


class Predictor(Protocol):
    """What a harvest needs of a model."""

    def predict(self, sentences: Sequence[str]) -> list[Prediction | None]:
        """Predict each sentence; None where there is nothing to read."""


class Pooled(NamedTuple):
    """One predicted sentence of the pool; `cell` names the disagreement, or is None."""

    sentence: RatedSentence
    prediction: Prediction
    cell: str | None


class Drawn(NamedTuple):
    """One selected sentence and the share that drew it: a disagreement cell, or `RANDOM_CELL`."""

    pooled: Pooled
    drawn_by: str


class Selection(NamedTuple):
    """What was drawn, in random order, and how far the disagreeing part of the pool went."""

    drawn: list[Drawn]
    disagreeing_wanted: int
    disagreeing_drawn: int


class PoolSummary(NamedTuple):
    """Counts over the whole pool, kept with the round. A rating that a review lacks is called "None"."""

    reviews: int
    sentences: int
    reviews_left_out: int
    not_admitted: int
    empty: int
    truncated: int
    by_rating_and_prediction: dict[str, dict[str, int]]
    by_cell: dict[str, int]


class Spool:
    """The predicted sentences of one harvest in one SQLite file, tied to what it was made from.

    `predicted_by` says in words what predicts. Raises BadInput for a file made from something else, or predicted
    by something else: the sentences of one harvest are predicted alike.
    """

    def __init__(self, path: Path, made_from: str, predicted_by: str):
        path.parent.mkdir(parents=True, exist_ok=True)
        self._db = sqlite3.connect(path, isolation_level=None)
        self._db.execute("PRAGMA journal_mode=WAL")
        self._db.execute(
            "CREATE TABLE IF NOT EXISTS sentence (cell_priority INTEGER, random_priority INTEGER, review_id TEXT,"
            " rating INTEGER, start INTEGER, stop INTEGER, text TEXT, text_key TEXT, label TEXT, probs TEXT,"
            " truncated INTEGER, cell TEXT)"
        )
        self._db.execute("CREATE TABLE IF NOT EXISTS state (made_from TEXT, position INTEGER, counts TEXT)")
        row = self._db.execute("SELECT made_from FROM state").fetchone()
        if row is None:
            self._db.execute("INSERT INTO state VALUES (?, 0, '{}')", (f"{made_from}\n{predicted_by}",))
            return
        before, _, by = row[0].partition("\n")
        if before != made_from:
            raise BadInput(
                f"{path} belongs to another harvest (other reviews, model or settings); delete it, then run again"
            )
        if by != predicted_by:
            raise BadInput(
                f"{path} was begun with {by} and would go on with {predicted_by}; set back_end and precision in "
                "dynaround.toml as they were, or delete that file to begin anew"
            )

    def close(self) -> None:
        """Release the file."""
        self._db.close()

    @property
    def position(self) -> int:
        """How many sentences of the stream are dealt with."""
        return int(self._db.execute("SELECT position FROM state").fetchone()[0])

    @property
    def counts(self) -> Counter[str]:
        """Whatever was counted up to `position`."""
        return Counter(json.loads(self._db.execute("SELECT counts FROM state").fetchone()[0]))

    def add(self, seed: int, rows: Iterable[Pooled], position: int, counts: Mapping[str, int]) -> None:
        """Commit one chunk: its rows, the new position and the counts, or nothing."""
        self._db.execute("BEGIN IMMEDIATE")
        try:
            self._db.executemany(
                "INSERT INTO sentence VALUES (?,?,?,?,?,?,?,?,?,?,?,?)", (_spool_row(seed, row) for row in rows)
            )
            self._db.execute("UPDATE state SET position = ?, counts = ?", (position, json.dumps(counts)))
            self._db.execute("COMMIT")
        except BaseException:
            # Without room on the disk SQLite has rolled back by itself.
            if self._db.in_transaction:
                self._db.execute("ROLLBACK")
            raise

    def in_random_order(self, disagreeing: bool) -> Iterator[tuple[str, Pooled]]:
        """Yield text key and sentence in the order of their priorities; only the disagreeing ones if asked."""
        order, where = ("cell_priority", "WHERE cell IS NOT NULL") if disagreeing else ("random_priority", "")
        self._db.execute(f"CREATE INDEX IF NOT EXISTS by_{order} ON sentence ({order}, review_id, start)")
        with closing(self._db.execute(f"SELECT * FROM sentence {where} ORDER BY {order}, review_id, start")) as rows:
            for _, _, review_id, rating, start, stop, text, key, label, probs, truncated, cell in rows:
                prediction = Prediction(label, json.loads(probs), bool(truncated))
                yield key, Pooled(RatedSentence(review_id, rating, start, stop, text), prediction, cell)


def _spool_row(seed: int, pooled: Pooled) -> tuple[object, ...]:
    sentence, prediction, cell = pooled
    place = (sentence.review_id, sentence.rating, sentence.start, sentence.end)
    said = (prediction.label, json.dumps(prediction.probs), int(prediction.truncated))
    # Two independent ranks: with one, the random share would hold none of the disagreeing sentences of low rank.
    ranks = (priority(seed, "disagreeing", sentence), priority(seed, "random", sentence))
    return *ranks, *place, sentence.text, text_key(sentence.text), *said, cell


def priority(seed: int, draw: str, sentence: RatedSentence) -> int:
    """Return a random rank that depends on seed, draw and place alone, never on the order in which reviews are read."""
    place = json.dumps([seed, draw, sentence.review_id, sentence.start, sentence.end])
    return int.from_bytes(hashlib.blake2b(place.encode(), digest_size=8).digest(), "big") >> 1


def fill_spool(
    spool: Spool,
    sentences: Iterable[RatedSentence],
    model: Predictor,
    task: Task,
    *,
    seed: int,
    left_out_reviews: set[str],
    on_progress: Callable[[int], None],
) -> PoolSummary:
    """Predict every admitted sentence of the stream that the spool does not hold yet.

    Sentences of `left_out_reviews` and of ratings that the task does not admit are counted, not predicted.
    `on_progress(n)` is called with the number of sentences dealt with.
    """
    stream = iter(sentences)
    position, counts = spool.position, spool.counts
    last_review = None
    for skipped in itertools.islice(stream, position):
        last_review = skipped.review_id
    on_progress(position)
    while chunk := list(itertools.islice(stream, CHUNK)):
        wanted = []
        for sentence in chunk:
            new_review = sentence.review_id != last_review
            last_review = sentence.review_id
            counts["reviews"] += new_review
            if sentence.review_id in left_out_reviews:
                counts["reviews_left_out"] += new_review
            elif not task.admits(sentence.rating):
                counts["not_admitted"] += 1
            else:
                wanted.append(sentence)
        position += len(chunk)
        counts["sentences"] += len(chunk)
        spool.add(seed, _pooled(wanted, model, task, counts), position, counts)
        on_progress(len(chunk))
    return _summary(spool.counts)


def _pooled(wanted: Sequence[RatedSentence], model: Predictor, task: Task, counts: Counter[str]) -> list[Pooled]:
    rows = []
    for sentence, prediction in zip(wanted, model.predict([s.text for s in wanted]), strict=True):
        if prediction is None:
            counts["empty"] += 1
            continue
        cell = task.disagreement(sentence.rating, prediction)
        counts["truncated"] += prediction.truncated
        counts[f"{_POOL} {sentence.rating} {prediction.label}"] += 1
        if cell:
            counts[f"{_CELL} {cell}"] += 1
        rows.append(Pooled(sentence, prediction, cell))
    return rows


def _summary(counts: Counter[str]) -> PoolSummary:
    by_rating: dict[str, dict[str, int]] = {}
    for key, count in sorted(counts.items()):
        if key.startswith(f"{_POOL} "):
            _, rating, label = key.split(" ", 2)
            by_rating.setdefault(rating, {})[label] = count
    return PoolSummary(
        reviews=counts["reviews"],
        sentences=counts["sentences"],
        reviews_left_out=counts["reviews_left_out"],
        not_admitted=counts["not_admitted"],
        empty=counts["empty"],
        truncated=counts["truncated"],
        by_rating_and_prediction=by_rating,
        by_cell={k.removeprefix(f"{_CELL} "): n for k, n in sorted(counts.items()) if k.startswith(f"{_CELL} ")},
    )


def select(
    spool: Spool, *, size: int, disagreement_share: float, per_review: int, quotas: Mapping[str, int] | None = None
) -> Selection:
    """Draw up to `size` sentences: first the disagreeing share, then the random one, which fills up.

    No two drawn sentences have one folded text; at most `per_review` come from one review; of a cell named in `quotas`
    at most that many are drawn as disagreeing. The drawn ones come in random order, so their place tells nothing.
    """
    taken: dict[str, Drawn] = {}
    of_review: Counter[str] = Counter()
    of_cell: Counter[str] = Counter()

    def draw(rows: Iterator[tuple[str, Pooled]], up_to: int, by_cell: bool) -> None:
        for key, pooled in rows:
            if len(taken) >= up_to:
                return
            cell = pooled.cell if by_cell and pooled.cell else RANDOM_CELL
            full = quotas is not None and by_cell and of_cell[cell] >= quotas.get(cell, size)
            if key in taken or full or of_review[pooled.sentence.review_id] >= per_review:
                continue
            taken[key] = Drawn(pooled, cell)
            of_review[pooled.sentence.review_id] += 1
            of_cell[cell] += 1

    wanted = round(size * disagreement_share)
    draw(spool.in_random_order(disagreeing=True), wanted, by_cell=True)
    disagreeing = len(taken)
    draw(spool.in_random_order(disagreeing=False), size, by_cell=False)
    return Selection([taken[key] for key in sorted(taken)], wanted, disagreeing)
