"""Precision, recall, F1, confusion counts, fooling rates and winning votes."""

import json
import random
from itertools import chain, repeat
from pathlib import Path

import pytest
from sklearn.metrics import accuracy_score, precision_recall_fscore_support

from dynaround.errors import BadInput
from dynaround.scoring import ConfusionCounts, confusion_counts, fooling_rates, score, score_confusion, winning_votes

MODEL_LABELS = ("positive", "negative", "neutral")
# Published: rows gold (negative, neutral, positive, mixed), columns prediction (negative, neutral, positive).
COLUMNS = ("negative", "neutral", "positive")
ROUND_1_TRAIN = ((8677, 3389, 1955), (11793, 20458, 12825), (3482, 4375, 13534), (955, 2099, 846))
ROUND_2_TRAIN = ((3693, 214, 672), (406, 1473, 569), (255, 261, 5522), (1612, 584, 1138))


def test_scores_agree_with_scikit_learn() -> None:
    rng = random.Random(7)
    gold, predicted = rng.choices(MODEL_LABELS, k=500), rng.choices(MODEL_LABELS, weights=(5, 2, 1), k=500)
    found = score(gold, predicted, MODEL_LABELS)
    columns = precision_recall_fscore_support(gold, predicted, labels=MODEL_LABELS, zero_division=0)
    for row, precision, recall, f1, support in zip(found.per_label, *columns, strict=True):
        assert row[1:] == pytest.approx((precision, recall, f1, support))
    macro = precision_recall_fscore_support(gold, predicted, labels=MODEL_LABELS, average="macro", zero_division=0)
    assert (found.macro_precision, found.macro_recall, found.macro_f1) == pytest.approx(macro[:3])
    assert found.accuracy == pytest.approx(accuracy_score(gold, predicted))


def test_a_label_that_never_occurs_counts_as_zero_in_the_macro_f1() -> None:
    found = score(["positive", "negative"], ["positive", "negative"], MODEL_LABELS)
    assert found.per_label[2] == ("neutral", 0.0, 0.0, 0.0, 0)
    assert (found.macro_f1, found.accuracy) == (pytest.approx(2 / 3), 1.0)


def test_all_cells_of_the_confusion_counts_are_present() -> None:
    found = confusion_counts(["positive", "positive", "neutral"], ["negative", "positive", "neutral"], MODEL_LABELS)
    assert found.counts == ((1, 1, 0), (0, 0, 0), (0, 0, 1))
    assert (found.cell("positive", "negative"), found.cell("negative", "positive"), found.items) == (1, 0, 3)


@pytest.mark.parametrize(
    ("gold", "predicted", "message"),
    [
        (["positive"], [], "1 gold labels and 0 predictions"),
        ([], [], "nothing to score"),
        (["positive", "mixed"], ["positive", "positive"], "gold label 2 is 'mixed'"),
        (["positive"], ["POSITIVE"], "prediction 1 is 'POSITIVE'"),
    ],
)
def test_what_cannot_be_scored_is_refused(gold: list[str], predicted: list[str], message: str) -> None:
    with pytest.raises(BadInput, match=message):
        score(gold, predicted, MODEL_LABELS)


def test_labels_named_twice_are_refused() -> None:
    with pytest.raises(BadInput, match="give each label once"):
        score(["positive"], ["positive"], ("positive", "positive"))


@pytest.mark.parametrize(
    ("cells", "rows", "macro_f1", "accuracy"),
    [
        (
            ROUND_1_TRAIN,
            {
                "positive": (0.4780, 0.6327, 0.5446),
                "negative": (0.3623, 0.6189, 0.4570),
                "neutral": (0.7249, 0.4539, 0.5582),
            },
            0.5199,
            0.5301,
        ),
        (
            ROUND_2_TRAIN,
            {
                "positive": (0.8165, 0.9145, 0.8627),
                "negative": (0.8482, 0.8065, 0.8268),
                "neutral": (0.7562, 0.6017, 0.6702),
            },
            0.7866,
            0.8181,
        ),
    ],
)
def test_published_scores_of_the_target_models_on_train(
    cells: tuple[tuple[int, ...], ...], rows: dict[str, tuple[float, ...]], macro_f1: float, accuracy: float
) -> None:
    found = score_confusion(ConfusionCounts(COLUMNS, cells[:3]))
    for row in found.per_label:
        assert row[1:4] == pytest.approx(rows[row.label], abs=5.1e-5)
    assert (found.macro_f1, found.accuracy) == pytest.approx((macro_f1, accuracy), abs=5.1e-5)


def test_confusion_counts_without_items_have_no_score() -> None:
    with pytest.raises(BadInput, match="nothing to score"):
        score_confusion(ConfusionCounts(("a", "b"), ((0, 0), (0, 0))))


@pytest.mark.parametrize(
    ("name", "model", "each"),
    [("round01-yelp-dev", "model_0_label", 400), ("round02-dynabench-dev", "model_1_label", 80)],
)
def test_the_target_model_is_at_chance_on_its_own_round(shared_data: Path, name: str, model: str, each: int) -> None:
    text = (shared_data / "dynasent" / f"dynasent-v1.1-{name}.jsonl").read_text(encoding="utf-8")
    rows = [json.loads(line) for line in text.splitlines()]
    found = score([row["gold_label"] for row in rows], [row[model] for row in rows], MODEL_LABELS)
    assert found.confusion.counts == ((each,) * 3,) * 3
    assert (found.macro_f1, found.accuracy) == pytest.approx((1 / 3, 1 / 3), abs=1e-15)


def test_met_09_the_four_fooling_rates_come_with_numerator_denominator_and_rule() -> None:
    pairs: list[tuple[str | None, str]] = [
        ("positive", "negative"),
        ("positive", "negative"),
        ("negative", "positive"),
        ("neutral", "positive"),
        *[("positive", "positive")] * 3,
        ("mixed", "positive"),
        *[(None, "negative")] * 2,
    ]
    found = fooling_rates(pairs, MODEL_LABELS)
    assert [(rate.numerator, rate.denominator) for rate in found] == [(4, 8), (4, 7), (5, 8), (4, 10)]
    assert [rate.rate for rate in found] == pytest.approx([0.5, 4 / 7, 0.625, 0.4])
    assert found.published.rule == "model errors over all examples with a gold label, also one that the model lacks"
    assert len({rate.rule for rate in found}) == 4


@pytest.mark.parametrize(
    ("train", "cell", "no_majority", "expected"),
    [
        (ROUND_1_TRAIN, 400, 10071, [(42619, 91588), (42619, 87688), (46519, 91588), (42619, 101659)]),
        (ROUND_2_TRAIN, 80, 2136, [(3337, 17839), (3337, 14505), (6671, 17839), (3337, 19975)]),
    ],
)
def test_published_fooling_rates(
    train: tuple[tuple[int, ...], ...], cell: int, no_majority: int, expected: list[tuple[int, int]]
) -> None:
    splits = [train, ((cell,) * 3,) * 3, ((cell,) * 3,) * 3]
    pairs: chain[tuple[str | None, str]] = chain.from_iterable(
        repeat((gold, predicted), count)
        for split in splits
        for gold, row in zip((*COLUMNS, "mixed"), split, strict=False)
        for predicted, count in zip(COLUMNS, row, strict=True)
    )
    found = fooling_rates(chain(pairs, repeat((None, "neutral"), no_majority)), MODEL_LABELS)
    assert [(rate.numerator, rate.denominator) for rate in found] == expected


def test_no_examples_have_no_fooling_rate() -> None:
    found = fooling_rates([(None, "positive")], MODEL_LABELS)
    assert [rate.rate for rate in found] == [None, None, None, 0.0]


def test_a_prediction_that_the_model_cannot_make_is_refused() -> None:
    with pytest.raises(BadInput, match="prediction 'mixed' is none of"):
        fooling_rates([("positive", "mixed")], MODEL_LABELS)


@pytest.mark.parametrize(
    ("name", "sizes", "no_majority", "agreeing"),
    [
        ("dynasent-v1.1-round01-yelp-dev", {5: 1244, 4: 2356, 3: 0}, 0, 15644),
        ("dynasent-v1.1-round02-dynabench-dev", {5: 327, 4: 393, 3: 0}, 0, 3207),
        ("sst-dev-validated", {5: 528, 4: 278, 3: 231}, 64, 4445),
    ],
)
def test_published_winning_votes(
    shared_data: Path, name: str, sizes: dict[int, int], no_majority: int, agreeing: int
) -> None:
    text = (shared_data / "dynasent" / f"{name}.jsonl").read_text(encoding="utf-8")
    votes = [json.loads(line)["label_distribution"] for line in text.splitlines()]
    found = winning_votes({label: len(workers) for label, workers in vote.items()} for vote in votes)
    assert (found.sizes, found.no_majority, found.pending) == (sizes, no_majority, 0)
    assert (found.agreeing, found.responses) == (agreeing, 5 * sum(sizes.values()))
    assert found.accuracy == pytest.approx(agreeing / found.responses)


def test_pending_examples_are_counted_apart_from_those_without_majority() -> None:
    found = winning_votes([{"positive": 3}, {"positive": 2, "negative": 2, "neutral": 1}])
    assert found == ({5: 0, 4: 0, 3: 0}, 1, 1, 0, 0, None)
