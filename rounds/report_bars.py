"""Plots whose categories run down the side, so that names of any length can be read: bars, stacked bars, points."""

from collections.abc import Sequence

from matplotlib.axes import Axes

from rounds.report_looks import (
    count_ticks,
    drawn_values,
    fill,
    interval_of,
    line_key,
    look_of,
    marker,
    patch_key,
    value_range,
    value_text,
)
from rounds.report_parts import Plot, Series
from rounds.report_sheet import (
    AXIS,
    AXIS_NAME,
    INK,
    LINE,
    NAME_WIDTH,
    SMALL,
    SOFT,
    WIDTH,
    Sheet,
    fitted,
    name_below,
    text_width,
)

_PAPER = {"boxstyle": "round,pad=0.15,rounding_size=0.2", "facecolor": "#ffffff", "edgecolor": "none"}


def bars(plot: Plot, marks: Sequence[str]) -> Sheet:
    """Draw the series of each category side by side, each value at the end of its bar or in a column at the right."""
    sheet = Sheet(plot.title, marks, patch_key(plot))
    count = max(1, len(plot.series))
    thickness = 13.0 if count == 1 else 10.5
    texts, widest = _texts(plot)
    heights = [count * thickness + 8] * len(plot.categories)
    axes, middles = _upright(plot, sheet, heights=heights, right=widest + 12)
    low, high = value_range(plot, zero=True)
    axes.set_xlim(low, high)
    # Where a number at the end of its bar would stand on an interval or on a name, all stand in a column.
    column = low < 0 or any(interval for series in plot.series for interval in series.intervals or ())
    for at, place, value in drawn_values(plot):
        y = middles[place] + (at - (count - 1) / 2) * thickness
        axes.barh(y, value, height=thickness - 1.5, **fill(look_of(at)))
        interval = interval_of(plot.series[at], place)
        if interval is not None:
            axes.plot(interval, (y, y), color=INK, linewidth=1, marker="|", markersize=4, markeredgewidth=1)
        if column:
            _in_column(axes, y, texts[at][place], widest)
        else:
            _after_bar(axes, value, y, texts[at][place])
    axes.axvline(0, color=SOFT, linewidth=0.8)
    return sheet


def stacked(plot: Plot, marks: Sequence[str]) -> Sheet:
    """Draw the shares of each category one after the other, with their values where they fit in."""
    sheet = Sheet(plot.title, marks, patch_key(plot))
    axes, middles = _upright(plot, sheet, heights=[24.0] * len(plot.categories), right=12)
    axes.set_xlim(0, 1)
    points = axes.get_position().width * WIDTH
    for place, middle in enumerate(middles):
        start = 0.0
        for at, series in enumerate(plot.series):
            share = series.values[place]
            if share is None:
                continue
            axes.barh(middle, share, left=start, height=16, **fill(look_of(at)))
            axes.barh(middle, share, left=start, height=16, fill=False, edgecolor="#ffffff", linewidth=1.2)
            text = value_text(plot, share)
            if text_width(text, SMALL - 1) + 8 < share * points:
                centre = start + share / 2
                axes.text(centre, middle, text, ha="center", va="center_baseline", fontsize=SMALL - 1, bbox=_PAPER)
            start += share
    return sheet


def points(plot: Plot, marks: Sequence[str]) -> Sheet:
    """Draw one line a series within each category, the value with its interval written at the right."""
    sheet = Sheet(plot.title, marks, line_key(plot) if plot.series[1:] else [])
    count = max(1, len(plot.series))
    texts, widest = _texts(plot)
    heights = [count * 12.0 + 9] * len(plot.categories)
    axes, middles = _upright(plot, sheet, heights=heights, right=widest + 12)
    axes.set_xlim(value_range(plot, zero=False))
    for place in range(1, len(plot.categories)):
        axes.axhline(sum(heights[:place]), color=LINE, linewidth=0.6)
    for at, place, value in drawn_values(plot):
        look = look_of(at)
        y = middles[place] + (at - (count - 1) / 2) * 12
        interval = interval_of(plot.series[at], place)
        if interval is not None:
            axes.plot(interval, (y, y), color=look.colour, linewidth=1.4, solid_capstyle="butt")
        axes.plot(value, y, **marker(look), clip_on=False)
        _in_column(axes, y, texts[at][place], widest)
    return sheet


def _upright(plot: Plot, sheet: Sheet, *, heights: Sequence[float], right: float) -> tuple[Axes, list[float]]:
    """Return axes whose categories run down, and the middle of each category in points from the top."""
    names = [fitted(name, NAME_WIDTH) for name in plot.categories]
    left = max([text_width(name) for name in names], default=0.0) + 8
    above = 12 if plot.x_name else 0
    below = AXIS + (AXIS_NAME if plot.y_name else 0)
    [axes] = sheet.axes(left, right, [sum(heights)], above=above, below=below)
    if plot.x_name:
        name = fitted(plot.x_name, WIDTH - 20)
        sheet.write(max(0.0, left - 6 - text_width(name)), sheet.top + 7, name, color=SOFT)
    axes.set_ylim(sum(heights), 0)
    middles = [sum(heights[:place]) + height / 2 for place, height in enumerate(heights)]
    _names_beside(axes, plot, names, middles)
    axes.spines["left"].set_visible(False)
    return axes, middles


def _names_beside(axes: Axes, plot: Plot, names: Sequence[str], at: Sequence[float]) -> None:
    axes.set_yticks(at, names)
    axes.tick_params(axis="y", length=0, pad=6)
    name_below(axes, plot.y_name)
    axes.grid(axis="x")
    count_ticks(axes.xaxis, plot)
    axes.spines["bottom"].set_visible(False)
    axes.tick_params(axis="x", length=0)


def _texts(plot: Plot) -> tuple[list[list[str]], float]:
    """Return what is written of each value of each series, with its interval, and the width of the widest."""
    texts = [[_with_interval(plot, series, place) for place in range(len(series.values))] for series in plot.series]
    return texts, max([text_width(text, SMALL - 1) for row in texts for text in row], default=0.0)


def _with_interval(plot: Plot, series: Series, place: int) -> str:
    value, interval = series.values[place], interval_of(series, place)
    if value is None:
        return ""
    ends = "" if interval is None else f" [{value_text(plot, interval[0])}, {value_text(plot, interval[1])}]"
    return value_text(plot, value) + ends


def _after_bar(axes: Axes, x: float, y: float, text: str) -> None:
    axes.annotate(text, (x, y), xytext=(4, 0), textcoords="offset points", va="center_baseline", fontsize=SMALL - 1)


def _in_column(axes: Axes, y: float, text: str, width: float) -> None:
    axes.annotate(
        text,
        (1, y),
        xycoords=("axes fraction", "data"),
        xytext=(width + 12, 0),
        textcoords="offset points",
        ha="right",
        va="center_baseline",
        fontsize=SMALL - 1,
    )
