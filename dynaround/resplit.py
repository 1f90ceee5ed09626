"""Train and test drawn anew from the examples of a published file, by seed; what belongs together is not parted."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from dynaround.errors import BadInput
from dynaround.splits import Candidate, components_of, priority


class Sizes(NamedTuple):
    """How many examples train and test hold."""

    train: int
    test: int

    def __str__(self) -> str:
        return f"{self.train}/{self.test}"


def sizes_of(words: str) -> Sizes:
    """Read "2400/1200"; raise BadInput for anything else and for a size of 0."""
    parts = words.split("/")
    if len(parts) != 2 or not all(part.isascii() and part.isdigit() and int(part) for part in parts):
        raise BadInput(f"{words!r} is no resplit; write TRAIN/TEST as two numbers, such as 2400/1200")
    return Sizes(*map(int, parts))


def resplit(candidates: Iterable[Candidate], sizes: Sizes, *, model_labels: Sequence[str], seed: int) -> dict[str, str]:
    """Return train, test or withheld for every candidate, the same for any order of them.

    Candidates that share a group, directly or through others, stay together. Test takes the cells of gold and predicted
    label in turn, so that it holds them as evenly as there are some, and only of groups whose members may all stand
    there: eligible, with a gold label of the model's. Train is drawn from the others, and what is in neither is
    withheld. Raises BadInput where a size cannot be filled exactly.
    """
    pool = sorted(candidates, key=lambda candidate: candidate.key)
    if sizes.train + sizes.test > len(pool):
        raise BadInput(
            f"{sizes} asks for {sizes.train + sizes.test} examples, and there are {len(pool)}; ask for fewer"
        )
    groups = sorted(components_of(pool), key=lambda members: priority(seed, members[0].key))
    by_cell: dict[tuple[str, str], list[list[Candidate]]] = defaultdict(list)
    for members in groups:
        if all(member.eligible and member.gold in model_labels for member in members):
            by_cell[str(members[0].gold), members[0].prediction].append(members)
    split_of = dict.fromkeys((candidate.key for candidate in pool), "withheld")
    _fill(split_of, "test", _in_turn([by_cell[cell] for cell in sorted(by_cell)]), sizes.test)
    left = [members for members in groups if split_of[members[0].key] == "withheld"]
    _fill(split_of, "train", left, sizes.train)
    return split_of


def _in_turn(cells: Sequence[Sequence[list[Candidate]]]) -> list[list[Candidate]]:
    """Return the groups of all cells, one of each cell after the other."""
    longest = max(map(len, cells), default=0)
    return [cell[place] for place in range(longest) for cell in cells if place < len(cell)]


def _fill(split_of: dict[str, str], split: str, groups: Iterable[list[Candidate]], size: int) -> None:
    left = size
    for members in groups:
        if len(members) <= left:
            left -= len(members)
            split_of.update((member.key, split) for member in members)
    if left:
        raise BadInput(
            f"{split} cannot hold {size} examples without parting what shares a review, a prompt or a text: "
            f"{size - left} fit; ask for that many"
        )
