"""How texts compare: folded (uniqueness, refusals, leaks) or as group text (what shares a split); how ids sort."""

import hashlib
import re
import unicodedata

_WHITE_SPACE = re.compile(r"\s+")
_DIGITS = re.compile(r"([0-9]+)")


def folded(text: str) -> str:
    """Return `text` in NFC, each run of white space one blank, the ends cut; case and punctuation stay."""
    return _WHITE_SPACE.sub(" ", unicodedata.normalize("NFC", text)).strip()


def group_text(text: str) -> str:
    """Return the folded text, case-folded and without punctuation; a text of punctuation alone keeps it.

    Symbols (an emoji, a currency sign) carry sentiment and stay.
    """
    bare = "".join(c for c in folded(text).casefold() if not unicodedata.category(c).startswith("P"))
    return folded(bare) or folded(text)


def text_key(text: str) -> str:
    """Return the SHA-256 of the folded text, in hex: an index key of one length for texts of any length."""
    return hashlib.sha256(folded(text).encode()).hexdigest()


def natural_order(public_id: str) -> tuple[tuple[str | int, ...], str]:
    """Return a sort key that reads digits as numbers: w2 comes before w10."""
    parts = _DIGITS.split(public_id)
    return tuple(int(part) if place % 2 else part for place, part in enumerate(parts)), public_id
