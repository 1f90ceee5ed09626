"""How many items it takes: the chance that a model as good as people is called solved on a round of some size."""

import math
from statistics import NormalDist

from dynaround.errors import BadInput
from dynaround.paired_resampling import TAIL

DEFAULT_SPREAD = 0.35
"""Standard error of the difference times the root of the number of items, for a model as good as people.

Measured with simulated models (`benchmarks/solved_calibration.py`) on Round 1 dev of DynaSent: .326 where their errors
partly follow the people's, .339 where they do not; on Round 2 dev .294 and .304. Sources with many items spread the
difference more; hence the reserve.
"""

# A normal estimate lies this many standard errors from its one-sided bound.
_BOUND = NormalDist().inv_cdf(1 - TAIL)


def chance_called_solved(items: int, margin: float, spread: float = DEFAULT_SPREAD) -> float:
    """Return the chance that a model exactly as good as people is called solved on so many items, all splits together.

    The difference is about normal around 0 with a standard error of spread / sqrt(items); its lower bound lies 1.645
    standard errors below it and must be above minus the margin. Raises BadInput for less than one item, a margin or
    a spread that is not above 0.
    """
    if items < 1 or margin <= 0 or spread <= 0:
        raise BadInput(f"{items} items, margin {margin} and spread {spread} give no chance; all three must be above 0")
    return NormalDist().cdf(margin * math.sqrt(items) / spread - _BOUND)


def items_called_solved(chance: float, margin: float, spread: float = DEFAULT_SPREAD) -> int:
    """Return the smallest number of items with this chance of being called solved: chance_called_solved turned round.

    At least 2, also where nothing spreads: a single item cannot be resampled. Raises BadInput for a chance that is
    not between .05 and 1, a margin that is not above 0 and a spread below 0.
    """
    if not TAIL < chance < 1 or margin <= 0 or spread < 0:
        raise BadInput(
            f"chance {chance}, margin {margin} and spread {spread} give no size; a chance lies between {TAIL} and 1, "
            "a margin is above 0 and a spread not below it"
        )
    distance = _BOUND + NormalDist().inv_cdf(chance)
    return max(2, math.ceil((distance * spread / margin) ** 2))
