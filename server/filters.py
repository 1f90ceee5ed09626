"""How pages show plain values: counts, scores, intervals, moments."""

from collections.abc import Sequence
from datetime import datetime


def shown_number(count: int) -> str:
    """Return a count with its thousands set apart."""
    return f"{count:,}"


def shown_score(value: float | None) -> str:
    """Return a score or share with three decimals."""
    return "undefined" if value is None else f"{value:.3f}"


def shown_interval(ends: Sequence[float]) -> str:
    """Return the two ends of an interval with three decimals."""
    low, high = ends
    return f"[{low:.3f}, {high:.3f}]"


def shown_percent(value: float) -> str:
    """Return a share in per cent, without decimals."""
    return f"{value:.0%}"


def shown_moment(at: datetime) -> str:
    """Return a moment in UTC, to the minute."""
    return f"{at:%Y-%m-%d %H:%M}"


FILTERS = {
    "number": shown_number,
    "score": shown_score,
    "interval": shown_interval,
    "percent": shown_percent,
    "moment": shown_moment,
}
"""The filters of the templates, by name."""
