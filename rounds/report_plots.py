"""A plot of a report as SVG, drawn by matplotlib: grids, reliability curves and histograms here, the others beside."""

import math
from collections.abc import Callable, Sequence

from matplotlib.axes import Axes
from matplotlib.colors import to_hex, to_rgb
from matplotlib.lines import Line2D
from matplotlib.patches import Rectangle

from rounds.report_bars import bars, points, stacked
from rounds.report_looks import LOOKS, count_ticks, fill, line_key, look_of, marker, value_range, value_text
from rounds.report_parts import Plot, PlotKind
from rounds.report_sheet import (
    AXIS,
    AXIS_NAME,
    LINE,
    NAME_WIDTH,
    SMALL,
    SOFT,
    WIDTH,
    Sheet,
    fitted,
    name_below,
    own_settings,
    text_width,
)

_DASHED = (0, (4, 3))


def svg(plot: Plot, marks: Sequence[str] = ()) -> str:
    """Return a plot as an SVG element with its title and the report's marks; the same plot gives the same bytes.

    Text is drawn as outlines and never read as mathematics; a missing value leaves a gap.
    """
    with own_settings():
        return DRAWN[plot.kind](plot, marks).svg()


def _grid(plot: Plot, marks: Sequence[str]) -> Sheet:
    """The darker a cell, the larger its value; below zero the tint is another, and the number says so too."""
    sheet = Sheet(plot.title, marks)
    columns = max(1, len(plot.categories))
    rows = [fitted(series.name, NAME_WIDTH) for series in plot.series]
    left = max([text_width(name) for name in rows] + [text_width(fitted(plot.y_name, NAME_WIDTH))]) + 8
    side = min(76.0, (WIDTH - left) / columns)
    names = [fitted(name, 2 * NAME_WIDTH / 3) for name in plot.categories]
    widest = max([text_width(name) for name in names], default=0.0)
    turned = widest > side - 6
    above = (widest + 8 if turned else 16) + (13 if plot.x_name else 0)
    [axes] = sheet.axes(left, WIDTH - left - side * columns, [22.0 * len(rows)], above=above, below=4)
    axes.set(xlim=(0, columns), ylim=(len(rows), 0))
    axes.set_yticks([place + 0.5 for place in range(len(rows))], rows)
    axes.xaxis.tick_top()
    axes.set_xticks([place + 0.5 for place in range(len(names))], names, rotation=90 if turned else 0)
    axes.tick_params(length=0, pad=5)
    axes.spines[:].set_visible(False)
    if plot.x_name:
        sheet.write(left, sheet.top + 8, fitted(plot.x_name, WIDTH - left), color=SOFT)
    if plot.y_name:
        sheet.write(0, sheet.top + above - 6, fitted(plot.y_name, NAME_WIDTH), color=SOFT)
    size = SMALL if side > 40 else SMALL - 1.5
    for row, series in enumerate(plot.series):
        for column, value in enumerate(series.values):
            tint, ink = _tint(plot, value)
            axes.add_patch(Rectangle((column, row), 1, 1, facecolor=tint, edgecolor=LINE, linewidth=0.8))
            text = "–" if value is None else value_text(plot, value)
            axes.text(column + 0.5, row + 0.5, text, ha="center", va="center_baseline", color=ink, fontsize=size)
    return sheet


def _tint(plot: Plot, value: float | None) -> tuple[str, str]:
    """Return the colours of a cell and of the number in it."""
    if value is None:
        return "none", SOFT
    if plot.y_range is None:
        given = [abs(one) for series in plot.series for one in series.values if one is not None]
        strength = abs(value) / (max(given) or 1)
    else:
        strength = min(1.0, max(0.0, (value - plot.y_range[0]) / (plot.y_range[1] - plot.y_range[0])))
    full = to_rgb(LOOKS[0].colour if value >= 0 else LOOKS[6].colour)
    tint = to_hex((1 - strength * (1 - full[0]), 1 - strength * (1 - full[1]), 1 - strength * (1 - full[2])))
    return tint, "#ffffff" if _luminance(tint) < 0.18 else "#000000"


def _luminance(colour: str) -> float:
    """Return the relative luminance of a colour, WCAG 2.2; at .18 black and white stand out equally from it."""
    parts = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in to_rgb(colour)]
    return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2]


def _reliability(plot: Plot, marks: Sequence[str]) -> Sheet:
    assert plot.x is not None
    diagonal = Line2D([], [], color=SOFT, linewidth=1, linestyle=_DASHED)
    sheet = Sheet(plot.title, marks, [*line_key(plot), (diagonal, "as often right as sure")])
    side = 250.0
    [axes] = sheet.axes(34, WIDTH - 34 - side, [side], above=4, below=AXIS + AXIS_NAME)
    low, high = plot.y_range or (0.0, 1.0)
    axes.set(xlim=(low, high), ylim=(low, high), ylabel=fitted(plot.y_name, side))
    name_below(axes, plot.x_name)
    axes.grid()
    axes.plot((low, high), (low, high), color=SOFT, linewidth=1, linestyle=_DASHED)
    for at, series in enumerate(plot.series):
        look = look_of(at)
        for place, interval in enumerate(series.intervals or ()):
            if interval is not None:
                axes.plot((plot.x[place],) * 2, interval, color=look.colour, linewidth=1)
        values = [math.nan if value is None else value for value in series.values]
        axes.plot(plot.x, values, **marker(look), clip_on=False)
    return sheet


def _histogram(plot: Plot, marks: Sequence[str]) -> Sheet:
    """One row of bars a series, on one scale, over one line of names."""
    sheet = Sheet(plot.title, marks)
    left = 22 + text_width(value_text(plot, value_range(plot, zero=True)[1] // 1))
    bins = max(1, len(plot.categories))
    width = (WIDTH - left) / bins
    names = [fitted(name, 100) for name in plot.categories]
    widest = max([text_width(name) for name in names], default=0.0)
    turned = widest > width - 4
    # Turned names need a line's height each; of more bins than that, every second, third ... is named.
    step = max(1, math.ceil((SMALL + 2.5) / width)) if turned else 1
    below = (widest if turned else SMALL) + 10 + (AXIS_NAME if plot.x_name else 0)
    above = 16 if plot.series[1:] else 6
    heights = [140.0 if above == 6 else 90.0] * max(1, len(plot.series))
    made = sheet.axes(left, 0, heights, above=above, below=below, gap=22)
    for at, (axes, series) in enumerate(zip(made, plot.series, strict=False)):
        _bins(axes, plot, at)
        if plot.series[1:]:
            axes.set_title(fitted(series.name, WIDTH - left), loc="left", fontsize=SMALL, fontweight="bold", pad=4)
        for place, value in enumerate(series.values):
            if value is None:
                continue
            text = value_text(plot, value)
            if text_width(text, SMALL - 1.5) < width - 1:
                axes.text(place + 0.5, max(value, 0), text, ha="center", va="bottom", fontsize=SMALL - 1.5)
    made[-1].set_xticks([p + 0.5 for p in range(0, bins, step)], names[::step], rotation=90 if turned else 0)
    name_below(made[-1], plot.x_name)
    return sheet


def _bins(axes: Axes, plot: Plot, at: int) -> None:
    """Draw the bars of one series without gaps."""
    low, high = value_range(plot, zero=True)
    axes.set(xlim=(0, max(1, len(plot.categories))), ylim=(low, high + 0.08 * (high - low)))
    axes.set_ylabel(fitted(plot.y_name, 88))
    axes.grid(axis="y")
    count_ticks(axes.yaxis, plot)
    axes.tick_params(length=0)
    axes.spines["left"].set_visible(False)
    axes.set_xticks([])
    for place, value in enumerate(plot.series[at].values):
        if value is not None:
            axes.bar(place + 0.5, value, width=1, **fill(look_of(at)))
            axes.bar(place + 0.5, value, width=1, fill=False, edgecolor="#ffffff", linewidth=0.8)


DRAWN: dict[PlotKind, Callable[[Plot, Sequence[str]], Sheet]] = {
    "bars": bars,
    "stacked": stacked,
    "grid": _grid,
    "points": points,
    "reliability": _reliability,
    "histogram": _histogram,
}
"""How each kind of plot is drawn; called within `own_settings`."""
