"""Figures of the workers who validated: how much each did, and how often each agreed with the gold label."""

from collections import Counter
from collections.abc import Sequence
from statistics import median
from typing import NamedTuple

from dynaround.agreement import WorkerResponse, worker_agreement
from dynaround.text import natural_order

RATE_BINS = 20
"""Bins of 5 % that a histogram of agreement rates has."""
MOST_ACTIVE = 5
"""Workers that a list of the most active ones names."""


class WorkerLoad(NamedTuple):
    """A worker's public id and number of responses."""

    worker: str
    responses: int


class RateBin(NamedTuple):
    """Workers whose agreement rate is at least `low` and below `high`; the last bin holds a rate of 1 too."""

    low: float
    high: float
    workers: int


class WorkerFigures(NamedTuple):
    """Loads and agreement of workers; `reason` says why figures are None where nothing can be counted.

    `mode_load` is the most common number of responses, the smallest of several. Rates are over the `comparable`
    workers, who responded on an example with a gold label; `perfect` of them always agree with it, `from_95` at least
    19 times in 20. `rates` has the histogram.
    """

    workers: int
    responses: int
    median_load: float | None
    mode_load: int | None
    most_active: tuple[WorkerLoad, ...]
    comparable: int
    perfect: int
    from_95: int
    share_from_95: float | None
    median_rate: float | None
    rates: tuple[RateBin, ...]
    reason: str | None


def worker_figures(responses: Sequence[WorkerResponse]) -> WorkerFigures:
    """Return the figures of all workers among these responses, who are to go by public ids.

    Agreement is that of `agreement.worker_agreement` (Potts et al. 2021, B.4): a worker's own response counts in the
    majority. Raises BadInput as it does.
    """
    loads = Counter(response.worker for response in responses)
    known = [found for found in worker_agreement(responses).values() if found.comparable]
    # In whole numbers: a rate of exactly 19 in 20 belongs to the last bin.
    places = Counter(min(RATE_BINS * found.agreeing // found.comparable, RATE_BINS - 1) for found in known)
    most_active = sorted(loads.items(), key=lambda load: (-load[1], natural_order(load[0])))[:MOST_ACTIVE]
    times = Counter(loads.values())
    from_95 = places[RATE_BINS - 1]
    return WorkerFigures(
        workers=len(loads),
        responses=loads.total(),
        median_load=float(median(loads.values())) if loads else None,
        mode_load=min(times, key=lambda load: (-times[load], load)) if loads else None,
        most_active=tuple(WorkerLoad(*load) for load in most_active),
        comparable=len(known),
        perfect=sum(found.agreeing == found.comparable for found in known),
        from_95=from_95,
        share_from_95=from_95 / len(known) if known else None,
        median_rate=float(median(found.agreeing / found.comparable for found in known)) if known else None,
        rates=tuple(RateBin(place / RATE_BINS, (place + 1) / RATE_BINS, places[place]) for place in range(RATE_BINS)),
        reason=None if known else _reason(loads),
    )


def _reason(loads: Counter[str]) -> str:
    if not loads:
        return "undefined: there is no response"
    return "undefined: no worker responded on an example with a gold label"
