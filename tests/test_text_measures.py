"""Edit distance, lengths and diversity of vocabulary."""

import random
import statistics
from pathlib import Path

import numpy as np
import pytest

from dynaround.text_measures import edit_distance, summary, text_lengths, tweet_tokens, vocabulary_diversity
from tests.published_rounds import ROUND_1, ROUND_2, SST, published


def prompts_and_sentences(shared_data: Path) -> list[tuple[str, str]]:
    return [(row["prompt_data"]["prompt_sentence"], row["sentence"]) for row in published(shared_data, ROUND_2)]


def distance_by_table(text: str, other: str) -> float:
    row = list(range(len(other) + 1))
    for place, letter in enumerate(text, start=1):
        above, row = row, [place]
        for column, against in enumerate(other):
            row.append(min(above[column + 1] + 1, row[-1] + 1, above[column] + (letter != against)))
    return row[-1] / max(len(text), len(other))


def test_published_edit_distance_from_prompt_to_sentence(shared_data: Path) -> None:
    distances = [edit_distance(prompt, sentence) for prompt, sentence in prompts_and_sentences(shared_data)]
    found = summary(distances)
    assert found[:5] == pytest.approx((720, 0.4973, 0.5516, 0.2500, 0.7289), abs=1e-4)
    assert np.histogram(distances, bins=10, range=(0, 1))[0].tolist() == [38, 93, 87, 63, 47, 63, 104, 161, 56, 8]
    assert distances.count(0) == 1


def test_edit_distance_equals_a_plain_dynamic_programme(shared_data: Path) -> None:
    for prompt, sentence in prompts_and_sentences(shared_data)[:50]:
        assert edit_distance(prompt, sentence) == pytest.approx(distance_by_table(prompt, sentence), abs=1e-12)


@pytest.mark.parametrize(
    ("text", "other", "expected"),
    [
        ("", "", 0),
        ("", "ab", 1),
        ("abc", "abc", 0),
        ("kitten", "sitting", 3 / 7),
        ("ab", "ba", 1),
        ("good 😀", "good 😡", 1 / 6),
    ],
)
def test_edit_distance_by_hand(text: str, other: str, expected: float) -> None:
    assert edit_distance(text, other) == edit_distance(other, text) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("name", "characters", "tokens"),
    [(ROUND_1, 72.5261, 15.7036), (ROUND_2, 68.5472, 14.6333), (SST, 100.86, 19.04)],
)
def test_published_lengths(shared_data: Path, name: str, characters: float, tokens: float) -> None:
    found = text_lengths([row["sentence"] for row in published(shared_data, name)])
    digits = 5e-5 if name != SST else 5e-3
    assert found.characters.mean == pytest.approx(characters, abs=digits)
    assert found.tokens.mean == pytest.approx(tokens, abs=digits)


def test_tokens_are_lower_cased_and_keep_emoticons() -> None:
    assert tweet_tokens("GREAT food, I'd return :D") == ["great", "food", ",", "i'd", "return", ":D"]


def test_lengths_count_blanks_and_code_points() -> None:
    found = text_lengths([" é 😀 ", ""])
    assert (found.characters.mean, found.tokens.mean) == (2.5, 1)


def test_a_summary_by_hand_and_in_any_order() -> None:
    assert summary([4, 1, 2, 3]) == summary([1, 2, 3, 4]) == (4, 2.5, 2.5, 1.75, 3.25, None)
    assert summary([7]) == (1, 7, 7, 7, 7, None)


def test_a_summary_of_nothing_is_undefined() -> None:
    assert summary([]) == (0, None, None, None, None, "undefined: there is no value to sum up")
    assert text_lengths([]).tokens.mean is None


def test_quartiles_are_those_of_the_standard_library() -> None:
    values = [random.Random(1).random() for _ in range(37)]
    found = summary(values)
    quartiles = (found.lower_quartile, found.median, found.upper_quartile)
    assert quartiles == pytest.approx(statistics.quantiles(values, method="inclusive"))


def test_diversity_of_one_text_over_and_over_is_its_tokens() -> None:
    found = vocabulary_diversity(["one two three four five"] * 200 + ["too short"], seed=1, repetitions=10)
    assert found.texts == 200
    assert found.distinct[:5] == (10, 5, 5, 5, 5)


def test_diversity_of_all_new_tokens_is_all_that_is_drawn() -> None:
    texts = [" ".join(f"t{n}x{m}" for m in range(6)) for n in range(200)]
    assert vocabulary_diversity(texts, seed=1, repetitions=10).distinct.mean == 1000


def test_diversity_draws_tokens_without_replacement() -> None:
    found = vocabulary_diversity(["a b c d e"], seed=1, texts_drawn=1, repetitions=20)
    assert found.distinct.lower_quartile == found.distinct.mean == 5


def test_too_few_texts_leave_diversity_undefined() -> None:
    found = vocabulary_diversity(["one two three four five"] * 199 + ["one two"], seed=1)
    assert found.distinct[:5] == (0, None, None, None, None)
    assert found.distinct.reason == "undefined: 199 texts have 5 tokens or more, and 200 are drawn"


def test_diversity_of_round_2_lies_where_it_was_computed(shared_data: Path) -> None:
    # Dev and test together: 455.0 and 462.7 with a deviation of 13; dev alone is a little smaller a pool.
    prompts, sentences = zip(*prompts_and_sentences(shared_data), strict=True)
    for texts, expected in ((sentences, 455.0), (prompts, 462.7)):
        assert vocabulary_diversity(texts, seed=1).distinct.mean == pytest.approx(expected, abs=10)


def test_diversity_depends_on_the_seed_and_not_on_order(shared_data: Path) -> None:
    texts = [sentence for _, sentence in prompts_and_sentences(shared_data)]
    found = vocabulary_diversity(texts, seed=1, repetitions=20)
    assert vocabulary_diversity(texts[::-1], seed=1, repetitions=20) == found
    assert vocabulary_diversity(texts, seed=2, repetitions=20) != found
