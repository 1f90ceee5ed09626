"""Texts that are judged on and so never trained on, looked up folded, and what is found of them in training corpora."""

from collections.abc import Iterable
from typing import NamedTuple

from dynaround.text import folded

CHANCE_SHARE = 0.005
"""Short sentences that anybody may write ("Great place!") stand in many corpora; more than this share is no chance."""


class BarredText(NamedTuple):
    """A text that is judged on, and where it stands: "round 1, dev", or the set as it was named."""

    text: str
    stands_in: str


class Leak(NamedTuple):
    """A training sentence whose folded text is barred."""

    corpus: str
    sentence: str
    text: str
    stands_in: str


class BarredTexts:
    """Says of a text where it is judged on; of several places the first given."""

    def __init__(self, barred: Iterable[BarredText] = ()) -> None:
        self._stands_in: dict[str, str] = {}
        for text, stands_in in barred:
            self._stands_in.setdefault(folded(text), stands_in)

    def __len__(self) -> int:
        return len(self._stands_in)

    def where(self, text: str) -> str | None:
        """Return where a text stands, or None where it may be trained on."""
        return self._stands_in.get(folded(text)) if self._stands_in else None
