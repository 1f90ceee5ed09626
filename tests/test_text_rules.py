"""What authors may not send as a sentence, and that languages, emoji and accents are none of it."""

import sys
import unicodedata

import pytest

from dynaround.text_rules import complaint_about, storable

BLANK = "There is no text; write a sentence first."
BREAK = "The text has a line break; write one sentence on one line."
NO_LETTERS = "The text has no letters; write a sentence in words."


def hidden(code: str) -> str:
    return f"The text holds a control or invisible character (U+{code}); take it out."


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", BLANK),
        (" \t\u00a0\u3000\n", BLANK),
        ("One line.\nAnother.", BREAK),
        ("One line.\rAnother.", BREAK),
        ("One line.\x0bAnother.", BREAK),
        ("One line.\x0cAnother.", BREAK),
        ("One line.\x85Another.", BREAK),
        ("One line.\u2028Another.", BREAK),
        ("One line.\u2029Another.", BREAK),
        ("It was\x00good", hidden("0000")),
        ("It was\tgood", hidden("0009")),
        ("It was \x1b[31mgood", hidden("001B")),
        ("It was \x7fgood", hidden("007F")),
        ("It was \x9fgood", hidden("009F")),
        ("It was so\u00adso", hidden("00AD")),
        ("It was\u200b good", hidden("200B")),
        ("It was\u2060 good", hidden("2060")),
        ("\ufeffIt was good", hidden("FEFF")),
        ("It was \u202edoog\u202c", hidden("202E")),
        ("It was \u2066good\u2069", hidden("2066")),
        ("It was go\u034fod", hidden("034F")),
        ("It was good\U000e0041", hidden("E0041")),
        ("\u3164", hidden("3164")),
        ("\u115f\u1160", hidden("115F")),
        ("It was\u2800good", hidden("2800")),
        ("It was \ufff9good", hidden("FFF9")),
        ("It was \ud83d good", hidden("D83D")),
        ("It was \ue000", hidden("E000")),
        ("It was \uffff", hidden("FFFF")),
        ("It was \ufdd0", hidden("FDD0")),
        ("It was \U0010fffe", hidden("10FFFE")),
        ("10/10 !!!", NO_LETTERS),
        ("\U0001f44d\U0001f44d", NO_LETTERS),
    ],
    ids=ascii,
)
def test_each_rule_says_what_is_wrong(text: str, complaint: str):
    assert complaint_about(text, max_characters=50) == complaint


@pytest.mark.parametrize(
    "text",
    [
        "It was good, for once.",
        "It's “fine”, they said – 100 % café…",
        "A cafe\u0301 with a\u0300 la carte",
        "Better\u00a0than before",
        "The chef \U0001f469\u200d\U0001f373 waved \U0001f44b\U0001f3fd",
        "Loved it \u2764\ufe0f, a 1\ufe0f\u20e3 for me \U0001f1eb\U0001f1f7",
        "Up the \U0001f3f4\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067\U000e007f team",
        "An eye \U0001f441\ufe0f\u200d\U0001f5e8\ufe0f as witness",
        "האוכל היה טוב!\u200f",
        "كان الطعام لذيذا\u061c 5",
        "نمی\u200cخواهم",
        "क\u094d\u200dष बहुत अच्छा",
        "料理は\u3000おいしい",
        "Newer than this Python: \U0001faea and fine",
    ],
    ids=ascii,
)
def test_what_people_write_is_fine(text: str):
    assert complaint_about(text, max_characters=80) is None


@pytest.mark.parametrize("joiner", ["\u200c", "\u200d", "\u200e", "\u200f", "\ufe0f", "\U000e0061"], ids=ascii)
@pytest.mark.parametrize("text", ["It was good{}", "{}It was good", "It was{} good", "It’{}s good", "It was good.{}"])
def test_an_english_text_does_not_look_new_by_what_nobody_sees(text: str, joiner: str):
    assert complaint_about(text.format(joiner), max_characters=50) == hidden(f"{ord(joiner):04X}")


def test_the_length_is_counted_in_code_points():
    assert complaint_about("\U0001f600" * 9 + "é", max_characters=10) is None
    complaint = complaint_about("word " * 3, max_characters=10)
    assert complaint == "The text has 15 characters; at most 10 are allowed."


def test_no_visible_character_of_unicode_is_refused():
    """Every letter, mark, number, sign and symbol that this Python knows can stand in a sentence, save empty ones."""
    seen = [chr(c) for c in range(sys.maxunicode) if unicodedata.category(chr(c))[0] in "LMNPS"]
    refused = {c for c in seen if complaint_about(f"x{c}", max_characters=9) is not None}
    names = {unicodedata.name(c, "") for c in refused}
    empty = ("FILLER", "VARIATION SELECTOR", "JOINER", "VOWEL INHERENT", "BRAILLE PATTERN BLANK")
    assert refused and all(any(word in name for word in empty) for name in names), names


@pytest.mark.parametrize("text", ["a\x00b", "a\ud83db", "a\udc00b"], ids=ascii)
def test_every_text_can_be_stored_as_a_draft(text: str):
    assert storable(text) == "a\ufffdb"


def test_a_draft_is_otherwise_kept_as_typed():
    typed = " two  blanks,\ttabs\r\nand lines \U0001f600 "
    assert storable(typed) == typed
