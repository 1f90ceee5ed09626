"""The sheet that a plot is drawn on: title, marks and key on top, and the axes below, all placed in points.

This and the other modules of plots load matplotlib; commands import them only when a report is made.
"""

import io
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Any

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties, findfont, get_font
from matplotlib.textpath import text_to_path

from rounds.report_parts import plain_text

WIDTH = 460.0
NAME_WIDTH = 150.0
"""The most room that the names of categories take beside the axes."""

AXIS, AXIS_NAME = 20.0, 14.0
"""The room below the axes: for the numbers, and for what they are."""

SMALL, TITLE = 8.5, 11.0
INK, SOFT, LINE, WARNING = "#211f1b", "#5f5a51", "#dcd8ce", "#8a3b12"
FONT = "DejaVu Sans"
"""Comes with matplotlib, so that the same plot has the same bytes on every machine."""


_SETTINGS: Any = {
    "font.family": [FONT],
    "font.size": SMALL,
    "text.parse_math": False,
    "text.color": INK,
    "axes.edgecolor": SOFT,
    "axes.labelcolor": SOFT,
    "axes.labelsize": SMALL,
    "axes.linewidth": 0.6,
    "axes.axisbelow": True,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "grid.color": LINE,
    "grid.linewidth": 0.6,
    "xtick.color": SOFT,
    "ytick.color": SOFT,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "xtick.labelsize": SMALL,
    "ytick.labelsize": SMALL,
    "hatch.linewidth": 0.7,
    "legend.fontsize": SMALL,
    "legend.frameon": False,
    "lines.linewidth": 1.2,
    # Text as outlines: the reader needs no font. The salt makes the ids of clips and hatches the same in every run.
    "svg.fonttype": "path",
    "svg.hashsalt": "dynaround",
}


@contextmanager
def own_settings() -> Iterator[None]:
    """Draw with matplotlib's defaults and the settings above; those of this machine come back afterwards."""
    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(_SETTINGS)
        yield


def text_width(text: str, size: float = SMALL, *, bold: bool = False) -> float:
    """Return the width of a text in points."""
    properties = FontProperties(family=FONT, size=size, weight="bold" if bold else "normal")
    width: float = text_to_path.get_text_width_height_descent(text, properties, ismath=False)[0]
    return width


def drawable(text: str) -> str:
    """Return a text on one line, with U+FFFD for every character that the font lacks; the table has it whole."""
    return "".join(character if ord(character) in _characters() else "�" for character in plain_text(text))


@cache
def _characters() -> frozenset[int]:
    fonts = [get_font(findfont(FontProperties(family=FONT, weight=weight))) for weight in ("normal", "bold")]
    return frozenset(fonts[0].get_charmap()) & frozenset(fonts[1].get_charmap())


def fitted(text: str, width: float) -> str:
    """Return a text that can be drawn in `width` points; the middle of a long one gives way to an ellipsis."""
    text = drawable(text)
    whole = text_width(text)
    if whole <= width:
        return text
    # About so many characters fit; from a few more downwards it is a short way.
    kept = min(len(text) - 1, int(len(text) * width / whole) + 8)
    while kept > 2 and text_width(_shortened(text, kept)) > width:
        kept -= 1
    return _shortened(text, kept)


def _shortened(text: str, kept: int) -> str:
    # Both ends stay, since names of one family often differ only there.
    end = kept // 2
    return f"{text[: kept - end].rstrip()}…{text[len(text) - end :].lstrip()}"


def wrapped(text: str, width: float, size: float, *, bold: bool = False, lines: int = 4) -> list[str]:
    """Return a text in lines of at most `width` points; what does not fit into `lines` gives way to an ellipsis."""
    done: list[str] = []
    line = ""
    for word in drawable(text).split():
        tried = f"{line} {word}".strip()
        if text_width(tried, size, bold=bold) <= width:
            line = tried
            continue
        done += [line] if line else []
        line = word if text_width(word, size, bold=bold) <= width else fitted(word, width * SMALL / size * 0.85)
    done += [line] if line else []
    if len(done) <= lines:
        return done
    last = f"{done[lines - 1]} …"
    while text_width(last, size, bold=bold) > width:
        last = f"{last.removesuffix(' …').rpartition(' ')[0]} …"
    return [*done[: lines - 1], last]


def name_below(axes: Axes, name: str) -> None:
    """Write below axes what their numbers are, no longer than the sheet has room on both sides of their middle."""
    box = axes.get_position()
    middle = (box.x0 + box.x1) / 2 * WIDTH
    axes.set_xlabel(fitted(name, 2 * min(middle, WIDTH - middle)))


class Sheet:
    """A figure of fixed width: what stands above the axes is known first, then the axes give it its height."""

    def __init__(self, title: str, marks: Sequence[str], key: Sequence[tuple[Any, str]] = ()):
        self.title = wrapped(title, WIDTH, TITLE, bold=True)
        self.marks = [line for mark in marks for line in wrapped(f"▲ {mark}", WIDTH, SMALL)]
        self.key = [(handle, fitted(name, 200)) for handle, name in key]
        widest = max((text_width(name) for _, name in self.key), default=0)
        self.key_columns = max(1, min(len(self.key), int((WIDTH + 14) // (widest + 44))))
        self.key_rows = -(-len(self.key) // self.key_columns)
        self.head = 15 * len(self.title) + 12 * len(self.marks) + 4
        self.top = self.head + (15 * self.key_rows + 6 if self.key else 2)

    def axes(
        self, left: float, right: float, heights: Sequence[float], *, above: float = 0, below: float = 0, gap: float = 0
    ) -> list[Axes]:
        """Return the axes, one under the other, with room for names around them.

        `left` and `right` are the margins; `heights` the heights of the axes, `gap` the room between two of them,
        `above` the first and `below` the last.
        """
        height = self.top + above + sum(heights) + gap * (len(heights) - 1) + below
        self.figure = Figure(figsize=(WIDTH / 72, height / 72), dpi=72)
        self.height = height
        for place, line in enumerate(self.title):
            self.write(0, 15 * place + 11, line, size=TITLE, weight="bold")
        for place, line in enumerate(self.marks):
            self.write(0, 15 * len(self.title) + 12 * place + 10, line, color=WARNING)
        if self.key:
            self.figure.legend(
                *zip(*self.key, strict=True),
                loc="upper left",
                bbox_to_anchor=(0, 1 - (self.head + 2) / height),
                ncols=self.key_columns,
                borderpad=0,
                borderaxespad=0,
                handlelength=2.2,
                handleheight=1.0,
                handletextpad=0.6,
                columnspacing=14 / SMALL,
                labelspacing=0.6,
            )
        made = []
        start = self.top + above
        for one in heights:
            box = (left / WIDTH, 1 - (start + one) / height, (WIDTH - left - right) / WIDTH, one / height)
            made.append(self.figure.add_axes(box))
            start += one + gap
        return made

    def write(self, x: float, y: float, text: str, **options: Any) -> None:
        """Write a text with its base line at `y` points from the top; `options` are those of matplotlib's text."""
        self.figure.text(x / WIDTH, 1 - y / self.height, text, va="baseline", **options)

    def svg(self) -> str:
        """Return the sheet as an SVG element, without date, maker or a document type."""
        file = io.StringIO()
        nothing = dict.fromkeys(("Creator", "Date", "Format", "Type"))
        self.figure.savefig(file, format="svg", transparent=True, metadata=nothing)
        text = file.getvalue()
        return text[text.index("<svg") :]
