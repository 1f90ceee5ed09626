"""The prompts of a round: natural sentences of reviews that authors start from, drawn before the plan is frozen."""

import hashlib
import heapq
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import NamedTuple

from sqlmodel import Session

from dynaround.corpus.rejects import ReadSummary, Rejected
from dynaround.corpus.reviews import (
    RATED_SENTENCE_KINDS,
    REVIEW_KINDS,
    RatedSentence,
    read_rated_sentences,
    read_reviews,
)
from dynaround.corpus.sentences import sentence_spans
from dynaround.corpus.sources import parse_spec
from dynaround.errors import BadInput
from dynaround.folders import data_hash
from dynaround.harvest import priority
from dynaround.tables import Prompt, Round
from dynaround.text import text_key
from dynaround.text_rules import complaint_about

PROMPTS_DRAWN = "prompts drawn"

FEWEST_WORDS, MOST_WORDS = 5, 40
"""Words of a prompt, parted by white space: enough to be changed in many ways, few enough to be read at once."""

SPARE_REVIEWS = 20_000
"""Reviews kept beyond the prompts wanted: so many may repeat the sentence of another. They take about 15 MB."""


class PromptDraw(NamedTuple):
    """The sentences drawn, in the order of their ranks, and what was read for them."""

    sentences: list[RatedSentence]
    read: ReadSummary
    reviews_left_out: int


class _LowestReviews:
    """The `size` reviews of lowest rank among all that were offered, each with its sentence of lowest rank."""

    def __init__(self, seed: int, size: int):
        self._seed, self._size = seed, size
        self._best: dict[str, tuple[int, RatedSentence]] = {}
        # The highest rank on top, as its negative.
        self._ranks: list[tuple[int, str]] = []

    def reaches(self, review_id: str) -> bool:
        """Whether a sentence of this review would be kept."""
        full = len(self._ranks) == self._size
        return not full or review_id in self._best or review_rank(self._seed, review_id) < -self._ranks[0][0]

    def offer(self, sentence: RatedSentence) -> None:
        """Keep a sentence of a review that is in reach, unless a lower one of the same review is there."""
        ranked = (priority(self._seed, "prompt", sentence), sentence)
        if sentence.review_id in self._best:
            self._best[sentence.review_id] = min(self._best[sentence.review_id], ranked)
            return
        self._best[sentence.review_id] = ranked
        entry = (-review_rank(self._seed, sentence.review_id), sentence.review_id)
        if len(self._ranks) < self._size:
            heapq.heappush(self._ranks, entry)
        else:
            del self._best[heapq.heapreplace(self._ranks, entry)[1]]

    def in_order(self) -> Iterator[RatedSentence]:
        """Yield the sentences by the rank of their reviews, the lowest first."""
        for _, review_id in sorted(self._ranks, reverse=True):
            yield self._best[review_id][1]


def review_rank(seed: int, review_id: str) -> int:
    """Return a random rank that depends on seed and review alone, never on the order in which reviews are read."""
    named = json.dumps([seed, "prompt", review_id])
    return int.from_bytes(hashlib.blake2b(named.encode(), digest_size=16).digest(), "big")


def is_natural(text: str, max_characters: int) -> bool:
    """Whether an author may start from a sentence: of 5 to 40 words, and nothing in it that would be refused.

    Four fifths of `max_characters` are the limit, so that there is room to write.
    """
    words = len(text.split())
    return FEWEST_WORDS <= words <= MOST_WORDS and complaint_about(text, max_characters=max_characters * 4 // 5) is None


def draw_prompts(
    reviews: str,
    count: int,
    *,
    seed: int,
    fields: Mapping[str, str] | None,
    needs_rating: bool,
    max_characters: int,
    left_out_reviews: set[str],
    on_reject: Callable[[Rejected], None],
    on_progress: Callable[[int], None],
) -> PromptDraw:
    """Draw `count` natural sentences of "KIND:PATH", at most one of a review and no two with one folded text.

    One pass; memory stays constant, whatever the file. Reviews come by a seeded rank of their own, so their order in
    the file does not matter, and all ratings are taken. `on_progress(n)` is called with reviews read. Raises BadInput
    with the number found where there are fewer.
    """
    pool = _LowestReviews(seed, count + SPARE_REVIEWS)
    read, left_out = ReadSummary(), set()

    def wanted(review_id: str) -> bool:
        on_progress(1)
        if review_id in left_out_reviews:
            left_out.add(review_id)
            return False
        return pool.reaches(review_id)

    for sentence in _sentences(reviews, fields, needs_rating, wanted, on_reject, read):
        if is_natural(sentence.text, max_characters):
            pool.offer(sentence)
    found: dict[str, RatedSentence] = {}
    for sentence in pool.in_order():
        found.setdefault(text_key(sentence.text), sentence)
    if len(found) < count:
        raise BadInput(
            f"{count} prompts were wanted, and {reviews} gives {len(found)} ({read.loaded} reviews read, "
            f"{len(left_out)} left out as used before; one sentence of {FEWEST_WORDS} to {MOST_WORDS} words a review); "
            "name other reviews, or take fewer: --prompts"
        )
    return PromptDraw(list(found.values())[:count], read, len(left_out))


def _sentences(
    reviews: str,
    fields: Mapping[str, str] | None,
    needs_rating: bool,
    wanted: Callable[[str], bool],
    on_reject: Callable[[Rejected], None],
    read: ReadSummary,
) -> Iterator[RatedSentence]:
    """Yield the sentences of wanted reviews; only these are split, which is what takes the time."""
    if parse_spec(reviews, RATED_SENTENCE_KINDS).kind not in REVIEW_KINDS:
        for sentence in read_rated_sentences(
            reviews, fields=fields, needs_rating=needs_rating, on_reject=on_reject, summary=read
        ):
            if wanted(sentence.review_id):
                yield sentence
        return
    for review in read_reviews(reviews, fields=fields, needs_rating=needs_rating, on_reject=on_reject, summary=read):
        if wanted(review.review_id):
            for start, end in sentence_spans(review.text):
                yield RatedSentence(review.review_id, review.rating, start, end, review.text[start:end])


def prompts_hash(sentences: Iterable[RatedSentence]) -> str:
    """Return the SHA-256 of prompts in their order: reviews, ratings, places and texts."""
    return data_hash([list(sentence) for sentence in sentences])


def store_prompts(session: Session, round_: Round, sentences: Iterable[RatedSentence]) -> None:
    """Add the prompts of a round that is being opened, in their order."""
    assert round_.id is not None
    session.add_all(
        Prompt(
            round_id=round_.id,
            text=sentence.text,
            review_id=sentence.review_id,
            rating=sentence.rating,
            span_start=sentence.start,
            span_end=sentence.end,
        )
        for sentence in sentences
    )
    session.flush()
