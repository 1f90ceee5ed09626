"""What a person's text may not be before it is stored as one sentence: each rule with the words that tell of it."""

import re
import unicodedata

from dynaround.text import folded

_LINE_BREAKS = frozenset("\n\r\x0b\x0c\x85\u2028\u2029")
# What shows nothing: Default_Ignorable_Code_Point of the Unicode Character Database (DerivedCoreProperties.txt), with
# the interlinear marks and the empty Braille cell. Some of them are letters by their category.
_SHOWS_NOTHING = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u2800\u3164"
    "\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)
# Joiners, variation selectors and tags: letters of some scripts, and emoji, are formed with them.
_FORMS = re.compile("[\u180b-\u180d\u180f\u200c\u200d\ufe00-\ufe0f\U000e0020-\U000e007f\U000e0100-\U000e01ef]")
_DIRECTION_MARKS = frozenset("\u061c\u200e\u200f")


def complaint_about(text: str, *, max_characters: int) -> str | None:
    """Return what keeps a text from being one natural sentence, as a sentence for its author; None: nothing.

    `max_characters` counts code points. Line breaks, control and invisible characters, and texts without any letter
    are refused; what letters and emoji are formed with is fine, and so are marks of direction in a text that has
    letters from right to left.
    """
    if not folded(text):
        return "There is no text; write a sentence first."
    if len(text) > max_characters:
        return f"The text has {len(text)} characters; at most {max_characters} are allowed."
    if not _LINE_BREAKS.isdisjoint(text):
        return "The text has a line break; write one sentence on one line."
    hidden = _hidden_in(text)
    if hidden is not None:
        return f"The text holds a control or invisible character (U+{ord(hidden):04X}); take it out."
    if not any(character.isalpha() for character in text):
        return "The text has no letters; write a sentence in words."
    return None


def storable(text: str) -> str:
    """Return a text as every database takes it: NUL and halves of surrogate pairs become U+FFFD, all else stays."""
    return re.sub("[\x00\ud800-\udfff]", "\ufffd", text)


def _hidden_in(text: str) -> str | None:
    """Return the first character that shows nothing and has no use where it stands, or that is none at all."""
    from_right = any(unicodedata.bidirectional(c) in ("R", "AL") and c.isalpha() for c in text)
    for place, character in enumerate(text):
        if _is_no_character(character):
            return character
        if _SHOWS_NOTHING.match(character) and not _is_of_use(text, place, from_right):
            return character
    return None


def _is_no_character(character: str) -> bool:
    # What is merely unassigned may be an emoji that is newer than this Python.
    noncharacter = 0xFDD0 <= ord(character) <= 0xFDEF or ord(character) & 0xFFFE == 0xFFFE
    return noncharacter or unicodedata.category(character) in ("Cc", "Cs", "Co")


def _is_of_use(text: str, place: int, from_right: bool) -> bool:
    """Whether an unseen character forms the letter, mark or symbol before it, or orders a text from right to left.

    Behind a letter or a full stop of English it would only make an old text look new.
    """
    character, before, after = text[place], text[:place][-1:], text[place + 1 : place + 2]
    if character in _DIRECTION_MARKS:
        return from_right
    if not _FORMS.match(character) or not before:
        return False
    if before.isascii():
        # A keycap: digit, selector, enclosing square.
        return character == "\ufe0f" and after == "\u20e3" and before in "#*0123456789"
    return bool(_FORMS.match(before)) or unicodedata.category(before)[0] in "LMS"
