"""Which review ids have occurred, in little memory."""

import hashlib
from array import array


class SeenIds:
    """A set of strings that keeps 64 bits of a hash of each, in one open-addressed array: 12 to 24 bytes a string.

    Of ten million different strings two share their 64 bits with probability .000003 (n squared over 2 to the 65th).
    """

    def __init__(self) -> None:
        self._slots = array("Q", bytes(8 * 2**16))
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def add(self, name: str) -> bool:
        """Add `name` and return whether it is new."""
        # Python's own hash differs from run to run; the same file must always give the same reviews.
        key = int.from_bytes(hashlib.blake2b(name.encode(), digest_size=8).digest(), "little") or 1
        if not self._put(key):
            return False
        self._count += 1
        if 3 * self._count > 2 * len(self._slots):
            self._grow()
        return True

    def _put(self, key: int) -> bool:
        slots, last = self._slots, len(self._slots) - 1
        place = key & last
        while slots[place]:
            if slots[place] == key:
                return False
            place = (place + 1) & last
        slots[place] = key
        return True

    def _grow(self) -> None:
        keys = self._slots
        self._slots = array("Q", bytes(16 * len(keys)))
        for key in keys:
            if key:
                self._put(key)
