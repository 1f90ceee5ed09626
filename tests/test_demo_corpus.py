"""The packaged corpus is what its card says: long enough, varied, labelled, and cut where the splitter cuts."""

import re
from collections import Counter
from pathlib import Path

from dynaround.corpus.reviews import read_rated_sentences
from dynaround.demo_corpus import HELD_OUT_SEEDS, demo_reviews, demo_seeds, lay_out
from dynaround.tasks.sentiment import SENTIMENT
from workers.simulation import read_truth

REVIEWS, SEEDS = demo_reviews(), demo_seeds()
TEXTS = [sentence.text for review in REVIEWS for sentence in review.sentences] + [seed.text for seed in SEEDS]


def words(text: str) -> list[str]:
    return re.findall(r"[a-z0-9']+", text.lower())


def test_it_is_as_large_as_it_says():
    stars = Counter(review.stars for review in REVIEWS)
    assert len(REVIEWS) >= 300 and stars[1] + stars[5] >= 200 and set(stars) == {1, 2, 3, 4, 5}
    assert len({review.kind for review in REVIEWS}) >= 6
    labels = Counter(seed.label for seed in SEEDS)
    assert len(SEEDS) >= 900 and all(280 <= labels[label] <= 360 for label in SENTIMENT.model_labels)


def test_it_is_varied():
    grams = Counter(tuple(w[i : i + 4]) for w in map(words, TEXTS) for i in range(len(w) - 3))
    assert sum(count == 1 for count in grams.values()) / len(grams) >= 0.95
    openings = Counter(tuple(words(text)[:3]) for text in TEXTS)
    assert openings.most_common(1)[0][1] < 0.02 * len(TEXTS)
    assert len(set(TEXTS)) == len(TEXTS)


def test_every_label_occurs_in_every_kind_of_business():
    found = {(review.kind, sentence.label) for review in REVIEWS for sentence in review.sentences}
    assert found == {(review.kind, label) for review in REVIEWS for label in SENTIMENT.labels}


def test_many_sentences_disagree_with_their_stars():
    against = Counter(
        (review.stars, sentence.label) for review in REVIEWS if review.stars in (1, 5) for sentence in review.sentences
    )
    assert against[1, "positive"] >= 150 and against[5, "negative"] >= 150


def test_the_splitter_finds_exactly_the_labelled_sentences(tmp_path: Path):
    files = lay_out(tmp_path)
    truth = read_truth(files.truth, SENTIMENT)
    found = set()
    for path in files.reviews.values():
        for s in read_rated_sentences(f"jsonl:{path}", on_reject=lambda rejected: None):
            found.add((s.review_id, s.start, s.end))
    assert found == set(truth)


def test_held_out_seeds_are_apart_from_the_others(tmp_path: Path):
    files = lay_out(tmp_path)
    training, held_out = (set(path.read_text().splitlines()[1:]) for path in (files.seeds, files.held_out_seeds))
    assert len(held_out) == HELD_OUT_SEEDS == 150 and not training & held_out


def test_the_rounds_of_the_demo_share_no_review():
    assert {review.round for review in REVIEWS} == {1, 2}
    assert len({review.review_id for review in REVIEWS}) == len(REVIEWS)
