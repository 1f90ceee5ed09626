"""Which candidate stands in train, dev or test: balanced dev and test, and nothing that belongs together kept apart."""

import hashlib
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import NamedTuple

from dynaround.errors import BadInput
from dynaround.split_program import Allocation, Kind, SplitProgram

HELD_OUT = ("dev", "test")
SPLITS = ("train", "dev", "test", "withheld")
HELD_OUT_SHARE = 0.30
"""Dev and test together hold at most this part of train, dev and test."""
MINIMUM_WINNING = 4
"""Responses for the gold label that dev and test ask for (Potts et al. 2021, sec. 3.5)."""


class Cell(NamedTuple):
    """A gold label and what the target model predicted for it."""

    gold: str
    prediction: str

    def __str__(self) -> str:
        return f"cell gold={self.gold}, model={self.prediction}"


@dataclass(frozen=True)
class Candidate:
    """What splitting needs to know of one example.

    `winning` counts the responses for the gold label; `eligible` is False for what may only stand in train (no prompt,
    or a prompt that occurs more than once); `groups` are the keys that tie it to others (review, prompt, the prompt's
    review, group text), each with a prefix that tells the sorts of keys apart.
    """

    key: str
    gold: str | None
    prediction: str
    winning: int
    rating: int | None
    eligible: bool
    groups: tuple[str, ...]


@dataclass(frozen=True)
class SplitPlan:
    """Where every candidate stands, and the counts behind it.

    `cells_before` counts what dev and test could be drawn from, `cells_after` the same candidates by the split in which
    they ended. `unevenness` counts by how many candidates the ratings within the cells of dev and test leave equal
    parts. `proven` is False where the search met its limit: the plan keeps every rule, but a larger size, more
    even ratings or fewer withheld may exist.
    """

    split_of: Mapping[str, str]
    per_cell: int
    cells_before: Mapping[Cell, int]
    cells_after: Mapping[str, Mapping[Cell, int]]
    ratings: Mapping[tuple[str, int | None], int]
    withheld: int
    unevenness: int
    proven: bool

    def count(self, split: str) -> int:
        """Return the number of candidates in a split, or withheld."""
        return sum(1 for placed in self.split_of.values() if placed == split)


class _Component(NamedTuple):
    """Candidates that must share a split, with those of them that dev or test may hold by stratum."""

    members: tuple[Candidate, ...]
    drawable: Mapping[int, tuple[Candidate, ...]]


class _Drawn(NamedTuple):
    """A component of dev or test, and those of its members that stand there."""

    component: _Component
    members: tuple[Candidate, ...]

    @property
    def gift(self) -> tuple[tuple[Cell, int], ...]:
        """What it gives: the same gift can be exchanged between dev and test."""
        return tuple(sorted((_cell(c), -1 if c.rating is None else c.rating) for c in self.members))


def plan_splits(
    candidates: Iterable[Candidate],
    *,
    model_labels: Sequence[str],
    per_cell: int | None,
    seed: int,
    held_out_share: float = HELD_OUT_SHARE,
    minimum_winning: int = MINIMUM_WINNING,
    seconds: float = 600.0,
) -> SplitPlan:
    """Place every candidate in train, dev, test or withheld; the same for any order of `candidates`.

    Dev and test hold exactly `per_cell` candidates of every cell of gold and predicted label, drawn from eligible ones
    with a gold label of the model's and at least `minimum_winning` responses for it. What shares a group with one of
    them stands in the same split or is withheld; the rest is train. With `per_cell` None the size is the largest with
    dev + test within `held_out_share` of train + dev + test; a stated size is bound by what the pool can fill, not by
    the share. Then ratings within a cell are as even, and withheld as few, as that allows. Each of these three steps
    ends after a fixed number of search nodes, on a very slow machine after `seconds`.

    Raises BadInput for a size that the pool cannot fill (naming the cell and the largest possible size), for a pool
    that no size fits, for repeated keys and unknown predictions, and where the time allows no plan at all.
    """
    pool = sorted(candidates, key=lambda candidate: candidate.key)
    cells = [Cell(gold, prediction) for gold in model_labels for prediction in model_labels]
    _refuse_malformed(pool, model_labels, per_cell)
    drawable = [c for c in pool if c.eligible and c.gold in model_labels and c.winning >= minimum_winning]
    before = Counter(_cell(candidate) for candidate in drawable)
    cells_before = {cell: before[cell] for cell in cells}
    ratings = sorted({candidate.rating for candidate in drawable}, key=lambda rating: (rating is None, rating or 0))
    stratum_of = {c.key: cells.index(_cell(c)) * len(ratings) + ratings.index(c.rating) for c in drawable}
    by_kind = _kinds(components_of(pool), stratum_of, len(cells) * len(ratings), seed)
    kinds = tuple(Kind(counts, size, len(alike)) for (counts, size), alike in by_kind.items())
    share = Fraction(held_out_share).limit_denominator(10_000)
    program = SplitProgram(kinds, len(cells), max(len(ratings), 1), len(pool), share, seconds)
    allocation = _allocation(program, cells_before, per_cell)
    split_of = dict.fromkeys((candidate.key for candidate in pool), "train")
    for side, chosen in _draw(allocation, list(by_kind.values()), seed).items():
        for component, drawn in chosen:
            split_of |= dict.fromkeys((member.key for member in component.members), "withheld")
            split_of |= dict.fromkeys((member.key for member in drawn), side)
    return SplitPlan(
        split_of=split_of,
        per_cell=allocation.per_cell,
        cells_before=cells_before,
        cells_after={split: _cells_in(split, drawable, split_of, cells) for split in SPLITS},
        ratings=Counter((split_of[candidate.key], candidate.rating) for candidate in pool),
        withheld=sum(1 for split in split_of.values() if split == "withheld"),
        unevenness=allocation.unevenness,
        proven=allocation.proven,
    )


def _refuse_malformed(pool: Sequence[Candidate], model_labels: Sequence[str], per_cell: int | None) -> None:
    for earlier, later in zip(pool, pool[1:], strict=False):
        if earlier.key == later.key:
            raise BadInput(f"text id {later.key} occurs twice among the examples to split; ids must be unique")
    for candidate in pool:
        if candidate.prediction not in model_labels:
            known = ", ".join(model_labels)
            raise BadInput(f"example {candidate.key} has the prediction {candidate.prediction!r}, none of {known}")
    if per_cell is not None and per_cell < 1:
        raise BadInput(f"a size of {per_cell} per cell is no size; state 1 or more, or none for the largest possible")


def _cell(candidate: Candidate) -> Cell:
    return Cell(str(candidate.gold), candidate.prediction)


def components_of(pool: Sequence[Candidate]) -> list[list[Candidate]]:
    """Return the candidates connected by shared groups, directly or through others (union-find)."""
    parent = list(range(len(pool)))

    def root(index: int) -> int:
        while parent[index] != index:
            parent[index] = parent[parent[index]]
            index = parent[index]
        return index

    first_with: dict[str, int] = {}
    for index, candidate in enumerate(pool):
        for group in candidate.groups:
            parent[root(index)] = root(first_with.setdefault(group, index))
    components: dict[int, list[Candidate]] = defaultdict(list)
    for index, candidate in enumerate(pool):
        components[root(index)].append(candidate)
    return list(components.values())


def priority(seed: int, key: str) -> bytes:
    """Return a random number fixed by seed and key: a draw by it does not depend on the order of arrival."""
    return hashlib.blake2b(f"{seed}\n{key}".encode(), digest_size=16).digest()


def _kinds(
    components: Iterable[Sequence[Candidate]], stratum_of: Mapping[str, int], strata: int, seed: int
) -> dict[tuple[tuple[int, ...], int], list[_Component]]:
    """Group the components that dev or test could use by what they hold, each group in the order of the draw."""
    by_kind: dict[tuple[tuple[int, ...], int], list[tuple[bytes, _Component]]] = defaultdict(list)
    for members in components:
        drawable: dict[int, list[tuple[bytes, Candidate]]] = defaultdict(list)
        for candidate in members:
            if candidate.key in stratum_of:
                drawable[stratum_of[candidate.key]].append((priority(seed, candidate.key), candidate))
        if not drawable:
            continue
        counts = [0] * strata
        for stratum, ranked in drawable.items():
            ranked.sort(key=lambda pair: pair[0])
            counts[stratum] = len(ranked)
        first = min(ranked[0][0] for ranked in drawable.values())
        ordered = {stratum: tuple(candidate for _, candidate in ranked) for stratum, ranked in drawable.items()}
        by_kind[tuple(counts), len(members)].append((first, _Component(tuple(members), ordered)))
    return {
        kind: [component for _, component in sorted(by_kind[kind], key=lambda pair: pair[0])]
        for kind in sorted(by_kind)
    }


def _cells_in(
    split: str, drawable: Iterable[Candidate], split_of: Mapping[str, str], cells: Iterable[Cell]
) -> dict[Cell, int]:
    counts = Counter(_cell(candidate) for candidate in drawable if split_of[candidate.key] == split)
    return {cell: counts[cell] for cell in cells}


def _draw(allocation: Allocation, by_kind: Sequence[Sequence[_Component]], seed: int) -> dict[str, list[_Drawn]]:
    """Name the components of dev and test, and their members that stand there."""
    drawn: dict[str, list[_Drawn]] = {}
    for side, split in enumerate(HELD_OUT):
        chosen: list[_Component] = []
        for numbers, alike in zip(allocation.components, by_kind, strict=True):
            start = numbers[0] if side else 0
            chosen += alike[start : start + numbers[side]]
        members: list[Candidate] = []
        for stratum, numbers in enumerate(allocation.drawn):
            here = [candidate for component in chosen for candidate in component.drawable.get(stratum, ())]
            members += sorted(here, key=lambda candidate: priority(seed, candidate.key))[: numbers[side]]
        keys = {candidate.key for candidate in members}
        held = [(component, [c for c in component.members if c.key in keys]) for component in chosen]
        # Only where the search was cut short can a chosen component give nothing; it then stays in train.
        drawn[split] = [_Drawn(component, tuple(given)) for component, given in held if given]
    return _exchanged(drawn, seed)


def _exchanged(drawn: Mapping[str, Sequence[_Drawn]], seed: int) -> dict[str, list[_Drawn]]:
    """Deal components that give the same to dev and test anew at random.

    The program may fill dev from small and test from large components; what is exchangeable shall not differ so.
    """
    by_gift: dict[tuple[tuple[Cell, int], ...], list[_Drawn]] = defaultdict(list)
    for one in (*drawn["dev"], *drawn["test"]):
        by_gift[one.gift].append(one)
    dev_numbers = Counter(one.gift for one in drawn["dev"])
    dealt: dict[str, list[_Drawn]] = {"dev": [], "test": []}
    for gift, alike in by_gift.items():
        alike.sort(key=lambda one: priority(seed, f"deal {one.component.members[0].key}"))
        dealt["dev"] += alike[: dev_numbers[gift]]
        dealt["test"] += alike[dev_numbers[gift] :]
    return dealt


def _allocation(program: SplitProgram, cells: Mapping[Cell, int], per_cell: int | None) -> Allocation:
    """Return the best allocation, or refuse with the reason why there is none."""
    unbound = replace(program, share=None)
    scarcest = min(cells, key=lambda cell: cells[cell])
    needed = 2 * (per_cell or 1)
    if cells[scarcest] >= needed:
        allocation = program.allocate() if per_cell is None else unbound.allocate(per_cell)
        if allocation is not None:
            return allocation
    largest = unbound.largest() if cells[scarcest] >= 2 else 0
    has = f"has {cells[scarcest]}" if cells[scarcest] else "is empty: it has 0"
    if cells[scarcest] < needed:
        reason = f"{scarcest} {has}, needs {needed} for {needed // 2} in dev and as many in test"
    elif per_cell is None and largest:
        share = f"{float(program.share or 1):.0%} of train, dev and test"
        reason = f"1 per cell is already more than {share}; a stated size is not bound by this share"
    else:
        reason = (
            f"{needed // 2} per cell cannot be drawn without parting what shares a review, a prompt or a text; "
            f"the scarcest, {scarcest}, {has}"
        )
    advice = f"state at most the largest possible {largest}, or" if largest else "no size is possible:"
    raise BadInput(f"dev and test cannot be filled: {reason}; {advice} collect more examples of the scarce cells")
