"""From responses to a gold label and a label distribution."""

import itertools

import pytest

from dynaround.errors import BadInput
from dynaround.labels import Gold, gold_label, label_distribution

ORDER = ("positive", "negative", "neutral", "mixed")


@pytest.mark.parametrize(
    ("counts", "gold"),
    [
        ((2, 2, 1, 0), "None"),
        ((2, 1, 1, 1), "None"),
        ((3, 2, 0, 0), "positive"),
        ((1, 1, 0, 3), "mixed"),
        ((0, 2, 2, 1), "None"),
        ((3, 0, 0, 0), "pending (3 answers)"),
        ((2, 1, 0, 0), "pending (3 answers)"),
    ],
)
def test_met_04_gold_needs_three_of_five_whatever_the_order_of_keys(counts: tuple[int, ...], gold: str) -> None:
    for order in itertools.permutations(zip(ORDER, counts, strict=True)):
        assert str(gold_label(dict(order))) == gold


def test_met_04_the_distribution_keeps_every_label_in_order() -> None:
    distribution = label_distribution(["neutral", "positive", "negative", "negative", "positive"], ORDER)
    assert list(distribution.items()) == [("positive", 2), ("negative", 2), ("neutral", 1), ("mixed", 0)]


def test_three_equal_responses_of_four_are_still_pending() -> None:
    assert gold_label({"positive": 3, "negative": 1}) == Gold(None, True, 4)


def test_no_response_at_all_is_pending() -> None:
    assert str(gold_label(label_distribution([], ORDER))) == "pending (0 answers)"


def test_a_sixth_response_is_refused_not_counted() -> None:
    with pytest.raises(BadInput, match="6 responses where 5 are retained"):
        gold_label({"positive": 6})


def test_an_unknown_label_is_refused_by_name() -> None:
    with pytest.raises(BadInput, match="'nosentiment' is none of positive, negative, neutral, mixed"):
        label_distribution(["positive", "nosentiment"], ORDER)
