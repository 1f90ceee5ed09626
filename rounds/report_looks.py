"""How series look and how their values are written and ranged: what all kinds of plots share."""

from collections.abc import Iterator
from typing import Any, NamedTuple

from matplotlib.axis import Axis
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator

from rounds.report_parts import Plot, Series, cell_text
from rounds.report_sheet import INK


class Look(NamedTuple):
    """How one series is told from the others: each by colour, by hatch or by marker alone."""

    colour: str
    hatch: str
    hatch_colour: str
    marker: str


# Colours of Okabe and Ito, "Color Universal Design" (2008), https://jfly.uni-koeln.de/color/, without yellow, which is
# too pale on paper; ordered such that neighbours differ in lightness, for print without colour. Hatches are white on
# the dark ones and dark on the light ones.
LOOKS = (
    Look("#0072b2", "", "#ffffff", "o"),
    Look("#e69f00", "////", INK, "s"),
    Look("#009e73", "\\\\\\\\", "#ffffff", "^"),
    Look("#cc79a7", "xxxx", INK, "D"),
    Look("#555555", "----", "#ffffff", "v"),
    Look("#56b4e9", "||||", INK, "P"),
    Look("#d55e00", "++++", "#ffffff", "X"),
)


def look_of(place: int) -> Look:
    """Return the look of the series at a place; no two of the first 49 have the same colour and hatch or marker."""
    again, colour = divmod(place, len(LOOKS))
    other = LOOKS[(colour + again) % len(LOOKS)]
    return LOOKS[colour]._replace(hatch=other.hatch, marker=other.marker)


def fill(look: Look) -> dict[str, Any]:
    """Return the options of a filled patch."""
    return {"facecolor": look.colour, "hatch": look.hatch, "edgecolor": look.hatch_colour, "linewidth": 0}


def marker(look: Look) -> dict[str, Any]:
    """Return the options of a line's points."""
    return {
        "marker": look.marker,
        "color": look.colour,
        "markersize": 6,
        "markeredgecolor": "#ffffff",
        "markeredgewidth": 0.6,
    }


def patch_key(plot: Plot) -> list[tuple[Any, str]]:
    """Return the key to the fills of a plot; one series needs none, unless it is a share."""
    if len(plot.series) == 1 and plot.kind != "stacked":
        return []
    return [(Patch(**fill(look_of(place))), series.name) for place, series in enumerate(plot.series)]


def line_key(plot: Plot) -> list[tuple[Any, str]]:
    """Return the key to the points and lines of a plot."""
    lines = (Line2D([], [], linewidth=1.4, **marker(look_of(place))) for place in range(len(plot.series)))
    return [(line, series.name) for line, series in zip(lines, plot.series, strict=True)]


def value_text(plot: Plot, value: float) -> str:
    """Return what is written for a value of a plot, or for an end of its interval."""
    return cell_text(float(value), 0 if _only_whole(plot) else plot.digits)


def _only_whole(plot: Plot) -> bool:
    # One whole value among fractions, such as 1, is written like its neighbours.
    values = [value for series in plot.series for value in series.values if value is not None]
    ends = [end for series in plot.series for interval in series.intervals or () for end in interval or ()]
    return all(float(value).is_integer() for value in (*values, *ends))


def interval_of(series: Series, place: int) -> tuple[float, float] | None:
    """Return the interval of a value, if it has one."""
    return None if series.intervals is None else series.intervals[place]


def drawn_values(plot: Plot) -> Iterator[tuple[int, int, float]]:
    """Yield series, place and value of what is drawn."""
    for at, series in enumerate(plot.series):
        for place, value in enumerate(series.values):
            if value is not None:
                yield at, place, value


def value_range(plot: Plot, *, zero: bool) -> tuple[float, float]:
    """Return the range of the axis of values: the plot's own, else that of what is drawn, from 0 if `zero`."""
    if plot.y_range is not None:
        return plot.y_range
    ends = [0.0] if zero else []
    for series in plot.series:
        for place, value in enumerate(series.values):
            ends += [] if value is None else [value, *(interval_of(series, place) or ())]
    low, high = min(ends, default=0.0), max(ends, default=0.0)
    room = 0.04 * (high - low) or 1.0
    return low - (0 if zero and low == 0 else room), high + (0 if zero and high == 0 > low else room)


def count_ticks(axis: Axis, plot: Plot) -> None:
    """Number an axis of counts by whole numbers, in groups of three digits."""
    if _only_whole(plot):
        axis.set_major_locator(MaxNLocator("auto", integer=True, steps=[1, 2, 2.5, 5, 10]))
        axis.set_major_formatter(lambda value, _: cell_text(round(value), 0))
