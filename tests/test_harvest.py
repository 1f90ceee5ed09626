"""Harvest: what may be drawn, in which shares, and that interruptions and order leave no trace."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest

from dynaround.corpus.reviews import RatedSentence
from dynaround.errors import BadInput
from dynaround.harvest import RANDOM_CELL, Selection, Spool, fill_spool, select
from dynaround.task import Prediction
from dynaround.tasks.sentiment import SENTIMENT
from dynaround.text import folded

LABELS = SENTIMENT.model_labels
UP, DOWN = "1 star, predicted positive", "5 stars, predicted negative"


def said(**probs: float) -> Prediction:
    return Prediction(max(probs, key=lambda label: probs[label]), probs)


class ByText:
    """Predicts what a sentence's last word says; counts how often it was asked."""

    asked = 0

    def predict(self, sentences: Sequence[str]) -> list[Prediction | None]:
        self.asked += len(sentences)
        return [self.one(sentence) for sentence in sentences]

    def one(self, sentence: str) -> Prediction | None:
        if not sentence.strip():
            return None
        label = sentence.split()[-1].strip(".")
        rest = [other for other in LABELS if other != label]
        return said(**{label: 0.8, rest[0]: 0.1, rest[1]: 0.1})


def stream(count: int) -> list[RatedSentence]:
    found = []
    for number in range(count):
        text = f"Sentence {number} is {LABELS[number % 3]}."
        found.append(RatedSentence(f"v{number // 4}", [1, 5, 3, 1, 5][number % 5], 0, len(text), text))
    return found


def spool_of(tmp_path: Path, sentences: Sequence[RatedSentence], seed: int = 1, name: str = "s") -> Spool:
    spool = Spool(tmp_path / f"{name}.sqlite", "made from this", "torch in float32")
    fill_spool(spool, sentences, ByText(), SENTIMENT, seed=seed, left_out_reviews=set(), on_progress=lambda n: None)
    return spool


def drawn(spool: Spool, **options: object) -> Selection:
    values: dict[str, object] = {"size": 40, "disagreement_share": 0.5, "per_review": 4}
    return select(spool, **{**values, **options})  # type: ignore[arg-type]


def test_prd_04_only_contradicting_ratings_disagree_and_3_stars_are_never_drawn(tmp_path: Path):
    rows = [
        ("s1", 1, said(negative=0.1, positive=0.75, neutral=0.15)),
        ("s2", 5, said(negative=0.62, positive=0.2, neutral=0.18)),
        ("s3", 5, said(negative=0.05, positive=0.9, neutral=0.05)),
        ("s4", 1, said(negative=0.8, positive=0.1, neutral=0.1)),
        ("s5", 3, said(negative=0.1, positive=0.8, neutral=0.1)),
        ("s6", 5, said(negative=0.1, positive=0.2, neutral=0.7)),
    ]
    assert [name for name, rating, prediction in rows if SENTIMENT.disagreement(rating, prediction)] == ["s1", "s2"]
    assert [name for name, rating, _ in rows if SENTIMENT.admits(rating)] == ["s1", "s2", "s3", "s4", "s6"]
    assert not SENTIMENT.admits(None)


def test_prd_04_rows_that_may_not_be_drawn_never_are(tmp_path: Path):
    sentences = [*stream(60), RatedSentence("blank", 1, 0, 2, "  ")]
    spool = Spool(tmp_path / "s.sqlite", "x", "torch")
    summary = fill_spool(
        spool, sentences, ByText(), SENTIMENT, seed=1, left_out_reviews={"v0", "v1"}, on_progress=lambda n: None
    )
    selection = drawn(spool, size=1000)
    assert {d.pooled.sentence.rating for d in selection.drawn} == {1, 5}
    assert not {d.pooled.sentence.review_id for d in selection.drawn} & {"v0", "v1", "blank"}
    assert (summary.reviews, summary.reviews_left_out, summary.empty) == (16, 2, 1)
    assert summary.sentences == 61 and summary.not_admitted == sum(s.rating == 3 for s in sentences[8:])


def test_half_disagrees_and_half_is_random(tmp_path: Path):
    selection = drawn(spool_of(tmp_path, stream(600)), size=100)
    by_share = Counter(d.drawn_by for d in selection.drawn)
    assert by_share[RANDOM_CELL] == 50 and by_share[UP] + by_share[DOWN] == 50
    assert all(d.pooled.cell == d.drawn_by for d in selection.drawn if d.drawn_by != RANDOM_CELL)


def test_the_random_share_is_a_random_part_of_the_pool(tmp_path: Path):
    """It holds disagreeing sentences about as often as the pool does, so it can speak for the pool."""
    spool = spool_of(tmp_path, stream(6000))
    only_random = drawn(spool, size=1000, disagreement_share=0.0, per_review=10)
    share = sum(d.pooled.cell is not None for d in only_random.drawn) / 1000
    pool = sum(p.cell is not None for _, p in spool.in_random_order(disagreeing=False))
    assert abs(share - pool / 4800) < 0.04
    with_half = drawn(spool, size=1000, disagreement_share=0.5, per_review=10)
    inside = [d for d in with_half.drawn if d.drawn_by == RANDOM_CELL and d.pooled.cell is not None]
    assert len(inside) > 50


def test_what_disagreement_lacks_the_random_share_fills_and_it_is_told(tmp_path: Path):
    selection = drawn(spool_of(tmp_path, stream(60)), size=40, disagreement_share=1.0)
    assert selection.disagreeing_wanted == 40
    assert selection.disagreeing_drawn == sum(d.drawn_by != RANDOM_CELL for d in selection.drawn) < 40
    assert len(selection.drawn) == 40


def test_no_folded_text_is_drawn_twice_and_no_review_gives_more_than_its_share(tmp_path: Path):
    sentences = stream(80)
    doubled = sentences + [RatedSentence("other", 1, 0, 9, s.text.replace(" is", "  is ")) for s in sentences]
    selection = drawn(spool_of(tmp_path, doubled), size=1000, per_review=2)
    texts = [folded(d.pooled.sentence.text) for d in selection.drawn]
    assert len(texts) == len(set(texts))
    assert max(Counter(d.pooled.sentence.review_id for d in selection.drawn).values()) == 2


def test_quotas_bound_the_cells_of_the_disagreeing_share(tmp_path: Path):
    selection = drawn(spool_of(tmp_path, stream(600)), size=100, quotas={UP: 10, DOWN: 15})
    by_share = Counter(d.drawn_by for d in selection.drawn)
    assert (by_share[UP], by_share[DOWN], by_share[RANDOM_CELL]) == (10, 15, 75)


def test_the_order_of_the_reviews_does_not_matter_and_the_seed_does(tmp_path: Path):
    forward = drawn(spool_of(tmp_path, stream(300), name="a")).drawn
    backward = drawn(spool_of(tmp_path, stream(300)[::-1], name="b")).drawn
    other = drawn(spool_of(tmp_path, stream(300), seed=2, name="c")).drawn
    assert forward == backward != other


def test_an_interrupted_harvest_goes_on_without_asking_or_counting_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("dynaround.harvest.CHUNK", 50)
    whole = spool_of(tmp_path, stream(300), name="whole")
    asked, chunks = ByText(), iter(range(3))
    cut = Spool(tmp_path / "cut.sqlite", "x", "torch")
    with pytest.raises(StopIteration):
        fill_spool(
            cut, stream(300), asked, SENTIMENT, seed=1, left_out_reviews=set(), on_progress=lambda n: next(chunks)
        )
    cut.close()
    again = Spool(tmp_path / "cut.sqlite", "x", "torch")
    assert 0 < again.position < 300
    summary = fill_spool(
        again, stream(300), asked, SENTIMENT, seed=1, left_out_reviews=set(), on_progress=lambda n: None
    )
    assert drawn(again) == drawn(whole) and again.counts == whole.counts
    assert asked.asked == 240 and summary.reviews == 75


def test_a_spool_of_another_harvest_is_refused(tmp_path: Path):
    spool_of(tmp_path, stream(30)).close()
    with pytest.raises(BadInput, match="belongs to another harvest"):
        Spool(tmp_path / "s.sqlite", "made from something else", "torch in float32")


def test_a_harvest_goes_on_only_with_the_back_end_that_it_was_begun_with(tmp_path: Path):
    spool_of(tmp_path, stream(30)).close()
    with pytest.raises(
        BadInput, match="begun with torch in float32 and would go on with openvino in bfloat16; set back"
    ):
        Spool(tmp_path / "s.sqlite", "made from this", "openvino in bfloat16")
    Spool(tmp_path / "s.sqlite", "made from this", "torch in float32").close()
