"""A draw of so many from a stream, as equally over the labels as there are some, in memory that does not grow."""

import hashlib
from collections.abc import Mapping
from heapq import heappush, heappushpop
from typing import Generic, TypeVar

Kept = TypeVar("Kept")


class BalancedDraw(Generic[Kept]):
    """Keeps, of each label, the `most` items that come first in a seeded random order of their names (None: all).

    The order depends on seed and name alone, so whatever else is in the stream, and in which order it comes, the same
    items are drawn.
    """

    def __init__(self, most: int | None, seed: int) -> None:
        self._most = most
        self._seed = seed
        self._arrived = 0
        # The last in the order stands first, to be pushed out; no two items arrive at once, so none is compared.
        self._heaps: dict[str, list[tuple[int, int, Kept]]] = {}

    def add(self, label: str, name: str, item: Kept) -> None:
        """Take one item in; it may push another of its label out."""
        self._arrived += 1
        heap = self._heaps.setdefault(label, [])
        if self._most is None:
            heap.append((0, -self._arrived, item))
            return
        digest = hashlib.blake2b(f"{self._seed}\n{name}".encode(), digest_size=8).digest()
        entry = (-int.from_bytes(digest), -self._arrived, item)
        if len(heap) < self._most:
            heappush(heap, entry)
        else:
            heappushpop(heap, entry)

    def drawn(self) -> list[Kept]:
        """Return the drawn items in the order in which they came."""
        held = {label: len(heap) for label, heap in self._heaps.items()}
        parts = held if self._most is None else even_parts(held, self._most)
        chosen = [entry for label, heap in self._heaps.items() for entry in sorted(heap, reverse=True)[: parts[label]]]
        return [item for _, _, item in sorted(chosen, key=lambda entry: -entry[1])]


def even_parts(available: Mapping[str, int], most: int) -> dict[str, int]:
    """Return how many of each label to take: `most` in all, or all there are, as equal as possible.

    What one label lacks goes to the others in equal parts; what cannot be shared goes to those that have most.
    """
    parts = {}
    left = most
    for place, label in enumerate(sorted(available, key=lambda label: (available[label], label))):
        parts[label] = min(available[label], left // (len(available) - place))
        left -= parts[label]
    return parts
