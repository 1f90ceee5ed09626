"""Sentence spans: where sentences of reviews begin and end, and that nothing is fetched to find them."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from nltk.tokenize.punkt import PunktSentenceTokenizer

from dynaround.corpus import review_punkt, sentences
from dynaround.corpus.sentences import sentence_spans
from dynaround.task import Span

REVIEW_PIECES = st.sampled_from(
    ["Dr. ", "e.g. ", "p.m. ", "etc. ", "... ", "…", "!!! ", '"', "'", ")", "(", "\n", "\r\n", "\u2028", "\x1f", "\xa0"]
    + [
        " ",
        ".",
        "?",
        "!",
        ":)",
        "👍🏽 ",
        "1. ",
        "P.S. ",
        "No. 5",
        "$3.50 ",
        "Great",
        "we ",
        "The ",
        "I",
        "J. ",
        "—",
        "\u3000",
    ]
)
REVIEWS = st.one_of(st.text(max_size=80), st.lists(REVIEW_PIECES, max_size=30).map("".join))


def split(text: str) -> list[str]:
    return [text[start:end] for start, end in sentence_spans(text)]


@given(REVIEWS)
def test_spans_are_in_order_disjoint_and_hold_every_character_that_is_not_white_space(text: str) -> None:
    spans = sentence_spans(text)
    held = [place for start, end in spans for place in range(start, end)]
    assert held == sorted(set(held))
    assert {place for place, character in enumerate(text) if not character.isspace()} <= set(held)


@given(REVIEWS)
def test_a_span_is_never_empty_and_has_no_outer_white_space_and_no_line_break(text: str) -> None:
    for start, end in sentence_spans(text):
        sentence = text[start:end]
        assert sentence and sentence == sentence.strip()
        assert len(sentence.splitlines()) == 1


def test_spl_01_offsets_count_code_points() -> None:
    text = "👍🏽 Loved it. 🚗💨 Never again!"
    assert len(text) == 28
    assert sentence_spans(text) == [Span(0, 12), Span(13, 28)]
    assert split(text) == ["👍🏽 Loved it.", "🚗💨 Never again!"]


def test_spl_03_every_line_break_ends_a_sentence() -> None:
    text = "Pros: big portions\nCons: cold fries\n\nWould I go back? No"
    assert sentence_spans(text) == [(0, 18), (19, 35), (37, 53), (54, 56)]


def test_spl_04_abbreviations_end_no_sentence() -> None:
    text = (
        "My dentist, Dr. Alvarado, charges $80.50 vs. $120 elsewhere. "
        "Her partner is a Ph.D.: very thorough! Bring ID, e.g. a passport."
    )
    assert sentence_spans(text) == [(0, 60), (61, 99), (100, 126)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("great!!! will be back", ["great!!!", "will be back"]),
        ("Wow...just wow", ["Wow...just wow"]),
        ("Wow... just wow. Wow... Amazing.", ["Wow... just wow.", "Wow...", "Amazing."]),
        ("Hmm… not sure… Maybe", ["Hmm… not sure…", "Maybe"]),
        ("It is 5.5 miles away. It cost $3.50. Fine.", ["It is 5.5 miles away.", "It cost $3.50.", "Fine."]),
        ("Be there at 9 a.m. sharp.", ["Be there at 9 a.m. sharp."]),
        ("They close at 9:30p.m. and 5 p.m. Great!", ["They close at 9:30p.m. and 5 p.m.", "Great!"]),
        ("Great food.The service too.", ["Great food.The service too."]),
        ("the food was bad. the service too.", ["the food was bad.", "the service too."]),
        ("Would I go back? No. I had room no. 5.", ["Would I go back?", "No.", "I had room no. 5."]),
        ("J. Bach ate here. We took plan B. They did not.", ["J. Bach ate here.", "We took plan B.", "They did not."]),
        ('She said “wow.” Then we "left!" Bye.', ["She said “wow.”", 'Then we "left!"', "Bye."]),
        ("(Yum!) Really?! Yes!!!!!!", ["(Yum!)", "Really?!", "Yes!!!!!!"]),
        ("1. Get the tacos. 2. Leave.", ["1. Get the tacos.", "2. Leave."]),
        ("P.S. They have pie.", ["P.S. They have pie."]),
        ("Loved it. :)", ["Loved it. :)"]),
        ("one\r\ntwo\rthree\u2028four\x85five", ["one", "two", "three", "four", "five"]),
        (" \t\n ", []),
        ("", []),
        ("?!", ["?!"]),
    ],
)
def test_sloppy_punctuation_of_reviews(text: str, expected: list[str]) -> None:
    assert split(text) == expected


def test_a_repeated_sentence_keeps_its_own_place() -> None:
    assert sentence_spans("Loved it! Loved it!  Loved it!") == [(0, 9), (10, 19), (21, 30)]


def test_a_line_longer_than_the_window_is_split_as_its_parts_are() -> None:
    once = "Dr. Ito was kind. We waited 45 min. for him, e.g. on Monday. "
    text = once * (3 * sentences.WINDOW // len(once))
    assert len(text) > 2 * sentences.WINDOW
    expected = ["Dr. Ito was kind.", "We waited 45 min. for him, e.g. on Monday."]
    assert split(text) == expected * (len(text) // len(once))


def test_a_line_without_any_end_longer_than_the_window_loses_nothing() -> None:
    text = ("word " * sentences.WINDOW) + "end. Next one."
    assert "".join(split(text)).replace(" ", "") == text.replace(" ", "")


def test_the_short_cut_for_plain_words_agrees_with_punkt(shared_data: Path) -> None:
    """The rule that spares Punkt its tokens must not decide otherwise than Punkt with the same parameters."""
    lines = (shared_data / "reviews" / "yelp_1_and_5_star.csv").read_text(encoding="utf-8").splitlines()[:4000]
    tokenizer = review_punkt.punkt()
    plain = 0
    for line in lines:
        for _, context in tokenizer._match_potential_end_contexts(line):
            match = review_punkt._PLAIN_CONTEXT.match(context)
            if match and match["word"] != "I" and match["word"].lower() not in review_punkt._ANY_ABBREVIATION:
                plain += 1
                assert PunktSentenceTokenizer.text_contains_sentbreak(tokenizer, context), context
    assert plain > 3000


def test_ops_02_splitting_opens_no_file_and_no_connection_and_needs_no_home(tmp_path: Path) -> None:
    program = """
import json, sys
import dynaround.corpus.review_punkt
from dynaround.corpus.sentences import sentence_spans
events = []
sys.addaudithook(lambda name, _: events.append(name) if name.split(".")[0] in ("open", "socket", "urllib") else None)
spans = sentence_spans("My dentist, Dr. Alvarado, left. We stayed!")
print(json.dumps([spans, events]))
"""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("NLTK")}
    environment |= {"HOME": str(tmp_path), "USERPROFILE": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", program], env=environment, cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert json.loads(done.stdout) == [[[0, 31], [32, 42]], []]
    assert list(tmp_path.iterdir()) == []
