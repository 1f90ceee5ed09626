"""A report with every kind of plot and cell, and one in which every text is hostile."""

from collections.abc import Callable
from functools import cache

from rounds.report_html import html
from rounds.report_parts import Plot, Report, Section, Series, Table

CROWD = "answered by a scripted crowd (not people)"
HOSTILE = (
    "<script>alert(1)</script>",
    '"><img src=x onerror=1>',
    "]]>--><!-- &amp; </style></title>",
    "\\input{/etc/passwd} \\\\ \\end{tabular} ^^5c",
    "$x$ $\\frac$ 100 % #1 {a_b} ~",
    "\u202egnp.exe\u2066 \u200f\u05d0\u05d1",
    "NUL \x00 bell \x07 escape \x1b[31m next \x85 line\nline\r\n\ttab\ufffe",
    "half \ud800 a pair \U0001f600 \u65e5\u672c",
    "http://example.org/ javascript:alert(1) " + "very long name " * 20,
)
LABELS = ("first label", "second label", "third label", "fourth label")
TWELVE = tuple(f"model-{n}-trained-from-scratch-on-everything-seed-{n}" for n in range(12))


def example_plots() -> list[Plot]:
    """Return two plots or more of every kind, some with values missing."""
    shares = ((0.226, 1 / 3, None), (0.148, 1 / 3, None), (0.477, 1 / 3, None), (0.149, 0.0, None))
    counts = ((8677.0, 3389.0, 1955.0), (11793.0, 20458.0, 12825.0), (3482.0, None, 13534.0), (955.0, 2099.0, 846.0))
    scores = [tuple(0.6 + 0.02 * n + 0.1 * m for n in range(12)) for m in range(3)]
    intervals = [tuple((v - 0.02, v + 0.02) for v in row) for row in scores]
    one_missing = (*scores[0][:11], None)
    x = tuple(0.35 + 0.065 * n for n in range(10))
    right = (*(v - 0.05 for v in x[:4]), None, *(v - 0.1 for v in x[5:]))
    bins = tuple(f"{5 * n}–{5 * n + 5} %" for n in range(20))
    workers = tuple(float(n * n) for n in range(20))
    return [
        Plot("votes", "bars", "Winning vote", "t", ("3 of 5", "4 of 5"), (Series("dev", (0.0, 2356.0)),), y_name="n"),
        Plot("names", "bars", "F1", "t", TWELVE, (Series("a", one_missing, intervals[0]), Series("b", scores[1]))),
        Plot("below", "bars", "Difference", "t", ("dev",), (Series("d", (-0.03,), ((-0.05, -0.01),)),), y_name="d"),
        Plot("none", "bars", "Nothing", "t", ("dev", "test"), (Series("d", (None, None)),)),
        Plot(
            *("shares", "stacked", "Gold labels by split", "t", ("train", "dev", "none")),
            tuple(Series(name, values) for name, values in zip(LABELS, shares, strict=True)),
            y_name="share of examples",
        ),
        Plot(
            *("crossed", "grid", "Gold label by prediction", "t", LABELS[:3]),
            tuple(Series(name, values) for name, values in zip(LABELS, counts, strict=True)),
            x_name="prediction",
            y_name="gold label",
        ),
        Plot("change", "grid", "Forgetting", "t", TWELVE, (Series("model-1", (-0.2, 0.1, *[None] * 10)),)),
        Plot("points", "points", "Models", "t", TWELVE, tuple(map(Series, "abc", scores, intervals)), y_name="F1"),
        Plot("kappa", "points", "Kappa", "t", ("dev", "test"), (Series("kappa", (0.6, None), ((0.5, 0.7), None)),)),
        Plot(
            *("curve", "reliability", "Reliability", "t", (), (Series("m", x, intervals[0][:10]), Series("n", right))),
            x_name="mean probability",
            y_name="share that is right",
            x=x,
        ),
        Plot("agreement", "histogram", "Agreement", "t", bins, (Series("workers", workers),), x_name="agreement"),
        Plot("loads", "histogram", "Loads", "t", bins, (Series("dev", workers), Series("test", (None, *workers[1:])))),
    ]


def example_report(marks: tuple[str, ...] = (CROWD,)) -> Report:
    """Return a report with all example plots, a wide and a long table, and texts of all lengths."""
    intervals = tuple(f"0.5{n} [0.48{n}, 0.52{n}]" for n in range(10))
    wide = Table("t", "All models.", ("model", *TWELVE[:10], "p"), tuple((m, *intervals, 2e-4) for m in TWELVE[:5]))
    mixed = Table(
        "rates",
        "Rates",
        ("definition", "what is counted", "numerator", "rate", "reason"),
        (
            ("published", "of all examples with any gold label " * 3, 42619, 0.46533, None),
            ("claimed", "", None, None, "x"),
        ),
        note="–: nobody claimed anything.",
    )
    workers = Table("workers", "Workers.", ("worker", "responses"), tuple((f"w{n}", 7528 - n) for n in range(40)))
    return Report(
        "Report on Round 1",
        (("round", "1"), ("hash of the target model", "a3f5" * 16)),
        (
            Section("rates", "Rates", ("Each example has five retained responses. " * 4,), (mixed,)),
            Section("models", "Models", (), (wide,), tuple(example_plots())),
            Section("workers", "Workers", (), (workers,)),
        ),
        marks,
    )


def hostile_report() -> Report:
    """Return a report in which everything but the keys is hostile."""
    rows = tuple((text, text, place) for place, text in enumerate(HOSTILE))
    sections = []
    for place, text in enumerate(HOSTILE):
        table = Table(f"t{place}", text, (text, text, text), rows, note=text)
        values = Series(text, (0.1,) * len(HOSTILE))
        kinds = ("bars", "stacked", "grid", "points", "histogram")
        kind = kinds[place % len(kinds)]
        plot = Plot(f"p{place}", kind, text, f"t{place}", HOSTILE, (values, values), x_name=text, y_name=text)
        sections.append(Section(f"s{place}", text, (text,), (table,), (plot,)))
    marked = Plot("curve", "reliability", HOSTILE[0], "t0", (), (Series(HOSTILE[4], (0.5,)),), HOSTILE[1], x=(0.5,))
    sections.append(Section("last", HOSTILE[0], plots=(marked,)))
    return Report(HOSTILE[2], tuple((text, text) for text in HOSTILE), tuple(sections), HOSTILE)


@cache
def page_of(report: Callable[[], Report]) -> str:
    """Return the page of `example_report` or `hostile_report`, drawn once for all tests of one process."""
    return html(report())
