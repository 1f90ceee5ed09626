"""The integer programs behind the splits: how many components of each kind go to dev and test, and what is drawn there.

Components that look alike are interchangeable, so the programs count kinds and leave it to `splits` to name components.
"""

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal, NamedTuple

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, milp
from scipy.sparse import block_array, csr_array, eye_array, kron

from dynaround.errors import BadInput

Aim = Literal["size", "evenness", "withheld"]

# Statuses of scipy.optimize.milp; 1 is a limit on nodes or time.
_OPTIMAL, _INFEASIBLE = 0, 2

# Most pools prove their best within one node; the hardest tried (900 sentences in 270 reviews of five ratings, the
# share just reached) needed 270 to 380 nodes at 20 to 50 a second, or more. Unlike a limit on time, one on nodes stops
# every machine at the same plan.
_NODES = 300


class Kind(NamedTuple):
    """Components that look alike: what one can give to dev or test by stratum, its size, and how many there are."""

    counts: tuple[int, ...]
    size: int
    number: int


class Allocation(NamedTuple):
    """A solution: `components[kind][side]` and `drawn[stratum][side]`, where side 0 is dev and side 1 is test."""

    per_cell: int
    components: list[list[int]]
    drawn: list[list[int]]
    unevenness: int
    proven: bool


class _Solved(NamedTuple):
    """The values of the columns, None if none were found, and whether that is certain to be the best."""

    values: Any
    proven: bool


def _last_found(stages: list[_Solved]) -> Any:
    """Return the values of the last stage that found some: each keeps what those before it reached."""
    return next((stage.values for stage in reversed(stages) if stage.values is not None), None)


@dataclass(frozen=True)
class SplitProgram:
    """A pool as kinds of components; stratum = cell x `ratings` + rating.

    `total` counts all candidates of the round, `share` bounds dev + test among train + dev + test (None: no bound),
    `seconds` limits each of the three stages, which a limit of nodes should end long before.

    Columns: components (kind, side), drawn (stratum, side), the size, deviations (stratum, side). Only whole
    components are chosen; which of their members are drawn follows, so no column names a member.
    """

    kinds: tuple[Kind, ...]
    cells: int
    ratings: int
    total: int
    share: Fraction | None
    seconds: float

    def allocate(self, per_cell: int | None = None) -> Allocation | None:
        """Return the largest size (unless it is stated), then the most even ratings, then the fewest withheld.

        None where no size is possible, or not the stated one. Unevenness counts by how many candidates the ratings of
        a cell leave the equal part (rounded down or up). `proven` is False where a stage met its limit of
        nodes or time and the best so far was kept. Raises BadInput where nothing at all was found.
        """
        stages: list[_Solved] = []
        if per_cell is None:
            stages.append(self._solve("size", None, None))
            per_cell = self._size(stages[0])
            if per_cell == 0:
                self._refuse_unless_proven(stages)
                return None
        unevenness: int | None = None
        if self.ratings > 1:
            stages.append(self._solve("evenness", per_cell, None))
            best = _last_found(stages)
            if best is None:
                self._refuse_unless_proven(stages)
                return None
            unevenness = self._unevenness(self._drawn(best), per_cell)
        stages.append(self._solve("withheld", per_cell, unevenness))
        best = _last_found(stages)
        if best is None:
            self._refuse_unless_proven(stages)
            return None
        drawn = self._drawn(best)
        components = np.rint(best[: 2 * len(self.kinds)]).astype(int).reshape(-1, 2).tolist()
        proven = all(stage.proven for stage in stages)
        return Allocation(per_cell, components, drawn, self._unevenness(drawn, per_cell), proven)

    def largest(self) -> int:
        """Return the largest size that the pool can fill (as far as the time allows to find it), 0 if none."""
        return self._size(self._solve("size", None, None))

    def _refuse_unless_proven(self, stages: list[_Solved]) -> None:
        if not all(stage.proven for stage in stages):
            limit = f"{_NODES} nodes or {self.seconds:g} seconds of search"
            raise BadInput(f"no split was found within {limit}, though there may be one; state a smaller size")

    @property
    def _strata(self) -> int:
        return self.cells * self.ratings

    def _size(self, solved: _Solved) -> int:
        return 0 if solved.values is None else round(float(solved.values[2 * (len(self.kinds) + self._strata)]))

    def _drawn(self, values: Any) -> list[list[int]]:
        start = 2 * len(self.kinds)
        drawn = np.rint(values[start : start + 2 * self._strata]).astype(int)
        return [[int(dev), int(test)] for dev, test in drawn.reshape(-1, 2)]

    def _unevenness(self, drawn: list[list[int]], per_cell: int) -> int:
        low, high = per_cell // self.ratings, -(-per_cell // self.ratings)
        return sum(max(low - count, 0) + max(count - high, 0) for sides in drawn for count in sides)

    def _solve(self, aim: Aim, per_cell: int | None, unevenness: int | None) -> _Solved:
        kinds, strata = len(self.kinds), self._strata
        sizes = np.repeat([float(kind.size) for kind in self.kinds], 2)
        costs = {
            "size": np.r_[np.zeros(2 * (kinds + strata)), -1.0, np.zeros(2 * strata)],
            "evenness": np.r_[np.zeros(2 * (kinds + strata) + 1), np.ones(2 * strata)],
            "withheld": np.r_[sizes, np.zeros(4 * strata + 1)],
        }
        most = np.repeat([float(kind.number) for kind in self.kinds], 2)
        size = (0.0, np.inf) if per_cell is None else (float(per_cell), float(per_cell))
        lower = np.r_[np.zeros(2 * (kinds + strata)), size[0], np.zeros(2 * strata)]
        upper = np.r_[most, np.full(2 * strata, np.inf), size[1], np.full(2 * strata, np.inf)]
        result = milp(
            costs[aim],
            constraints=self._constraints(per_cell, unevenness),
            bounds=Bounds(lower, upper),
            integrality=np.ones(len(lower), int),
            options={"node_limit": _NODES, "time_limit": self.seconds, "mip_rel_gap": 0.0},
        )
        return _Solved(result.x, result.status in (_OPTIMAL, _INFEASIBLE))

    def _constraints(self, per_cell: int | None, unevenness: int | None) -> list[LinearConstraint]:
        kinds, strata = len(self.kinds), self._strata
        columns = [2 * kinds, 2 * strata, 1, 2 * strata]
        sides = eye_array(2)
        numbers = np.array([kind.number for kind in self.kinds], float)
        counts = csr_array(np.array([kind.counts for kind in self.kinds], float).reshape(kinds, strata))
        cell_sums = kron(kron(eye_array(self.cells), np.ones((1, self.ratings))), sides)
        size = csr_array(-np.ones((2 * self.cells, 1)))
        drawn = eye_array(2 * strata)

        def rows(*blocks: Any) -> Any:
            height = next(block.shape[0] for block in blocks if block is not None)
            filled = [csr_array((height, width)) if block is None else block
                      for block, width in zip(blocks, columns, strict=True)]  # fmt: skip
            return block_array([filled], format="csr")

        found = [
            LinearConstraint(rows(kron(eye_array(kinds), np.ones((1, 2))), None, None, None), -np.inf, numbers),
            LinearConstraint(rows(kron(counts.T, sides), -drawn, None, None), 0.0, np.inf),
            LinearConstraint(rows(None, cell_sums, size, None), 0.0, 0.0),
        ]
        if self.share is not None:
            # drawn <= share x (total - withheld), where withheld = members of the chosen components - drawn
            part, whole = self.share.numerator, self.share.denominator
            members = csr_array(part * np.repeat([float(kind.size) for kind in self.kinds], 2).reshape(1, -1))
            held_out = csr_array(np.full((1, 2 * strata), float(whole - part)))
            found.append(LinearConstraint(rows(members, held_out, None, None), -np.inf, part * self.total))
        if per_cell is not None and self.ratings > 1:
            low, high = per_cell // self.ratings, -(-per_cell // self.ratings)
            found.append(LinearConstraint(rows(None, drawn, None, drawn), low, np.inf))
            found.append(LinearConstraint(rows(None, -drawn, None, drawn), -high, np.inf))
        if unevenness is not None:
            found.append(LinearConstraint(rows(None, None, None, csr_array(np.ones((1, 2 * strata)))), 0, unevenness))
        return found
