"""Reports as HTML, SVG, LaTeX and text: nothing foreign acts in them, everything is labelled, and bytes repeat."""

import base64
import hashlib
import re
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path

import matplotlib
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rounds.report_html import html
from rounds.report_latex import escaped, latex
from rounds.report_looks import LOOKS, look_of
from rounds.report_parts import Plot, Report, Section, Series, Table, cell_text, figure_columns, plain_text
from rounds.report_plots import DRAWN, svg
from rounds.report_sheet import fitted, own_settings, text_width
from rounds.report_text import text
from tests.example_report import CROWD, HOSTILE, TWELVE, example_plots, example_report, hostile_report, page_of

ROOT = Path(__file__).resolve().parents[1]
PICTURE = "data:image/svg+xml;base64,"
PLOTS = {plot.key: plot for plot in (*example_plots(), *(s.plots[0] for s in hostile_report().sections))}


class Page(HTMLParser):
    """The elements of a page with their attributes, the texts by element, and the declarations and comments."""

    def __init__(self, page: str):
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[tuple[str, str]] = []
        self.others: list[str] = []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag, attrs):
        assert len(dict(attrs)) == len(attrs), "an attribute stands twice"
        self.elements.append((tag, dict(attrs)))

    def handle_data(self, data):
        self.texts.append((self.elements[-1][0] if self.elements else "", data))

    def handle_comment(self, data):
        self.others.append(data)

    def unknown_decl(self, data):
        self.others.append(data)

    def of(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.elements if name == tag]

    def text_in(self, tag: str) -> str:
        return "".join(data for name, data in self.texts if name == tag)


@pytest.fixture(scope="module", params=[example_report, hostile_report])
def report(request: pytest.FixtureRequest) -> Report:
    return request.param()


@pytest.fixture(scope="module")
def page(report: Report) -> Page:
    return Page(page_of(example_report if report == example_report() else hostile_report))


def pictures(page: Page) -> Iterator[str]:
    for image in page.of("img"):
        yield base64.b64decode(image["src"].removeprefix(PICTURE), validate=True).decode("utf-8")


def test_nothing_in_the_page_acts_or_comes_from_outside(page: Page):
    names = {name for name, _ in page.elements}
    assert not names & {"script", "iframe", "object", "embed", "form", "base", "link", "svg"}
    for name, attributes in page.elements:
        assert not [key for key in attributes if key.startswith("on") or key in ("style", "srcset", "action")], name
        assert (attributes.get("href") or "#").startswith("#")
        assert (attributes.get("src") or PICTURE).startswith(PICTURE)
    assert page.others == []
    assert len(page.of("img")) == len(page.of("figure")) > 0


def test_the_policy_allows_the_one_style_sheet_and_pictures_of_the_page_itself(page: Page):
    [policy] = [meta["content"] for meta in page.of("meta") if meta.get("http-equiv") == "Content-Security-Policy"]
    assert re.fullmatch(
        r"default-src 'none'; style-src 'sha256-[\w+/=]{44}'; img-src data:; base-uri 'none'; form-action 'none'",
        policy,
    )
    assert len(page.of("style")) == 1
    style = page.text_in("style")
    assert "url(" not in style and "@import" not in style and "<" not in style


def test_every_part_of_the_page_is_labelled(page: Page, report: Report):
    ids = [attributes["id"] for _, attributes in page.elements if "id" in attributes]
    assert len(ids) == len(set(ids))
    assert {link["href"].removeprefix("#") for link in page.of("a")} <= set(ids)
    assert {one["aria-labelledby"] for _, one in page.elements if "aria-labelledby" in one} <= set(ids)
    tables = sum(len(section.tables) for section in report.sections)
    assert len(page.of("table")) == len(page.of("caption")) == tables
    assert all(image["alt"] and image["width"] and image["height"] for image in page.of("img"))
    assert {heading.get("scope") for heading in page.of("th")} == {"col", "row"}
    regions = [one for _, one in page.elements if one.get("role") == "region"]
    assert len(regions) == tables + len(page.of("img")) and all(one["tabindex"] == "0" for one in regions)
    assert page.of("html") == [{"lang": "en"}]


def test_a_mark_stands_on_top_and_at_every_heading_table_and_figure():
    page = Page(page_of(example_report))
    shown = [attributes for name, attributes in page.elements if name == "span" and attributes.get("class") == "mark"]
    assert len(shown) == len(example_report().sections) + len(page.of("table"))
    assert CROWD in page.text_in("strong") and CROWD in page.text_in("title")
    assert all(CROWD in image["alt"] for image in page.of("img"))
    assert latex(example_report()).count("Answered by a scripted crowd (not people).") == len(page.of("table"))
    assert sum(CROWD in line for line in text(example_report())) == 1 + len(page.of("table"))


def test_foreign_text_is_shown_whole_and_nothing_of_it_unseen():
    report = hostile_report()
    page = Page(html(Report(report.title, report.about, (Section("s", "S", HOSTILE, report.sections[0].tables),))))
    shown = page.text_in("th") + page.text_in("td")
    for foreign in HOSTILE:
        assert plain_text(foreign) in shown and plain_text(foreign) in page.text_in("p")
    unseen = r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufffe]"
    assert not re.search(unseen, "".join(data for _, data in page.texts))


def test_pictures_are_sound_xml_that_points_nowhere(page: Page):
    for picture in pictures(page):
        assert "<!DOCTYPE" not in picture and "<?" not in picture
        root = ElementTree.fromstring(picture)
        for element in root.iter():
            name = element.tag.rpartition("}")[2]
            assert name in {"svg", "g", "defs", "style", "path", "use", "clipPath", "rect", "pattern"}
            for key, value in element.attrib.items():
                assert not key.startswith("on")
                assert not key.endswith("href") or value.startswith("#")
                assert set(re.findall(r"url\((.)", value)) <= {"#"}
        assert not [style for style in root.iter("{http://www.w3.org/2000/svg}style") if "url(" in (style.text or "")]


def test_the_same_report_gives_the_same_bytes_in_another_process_too():
    code = (
        "import hashlib\nfrom rounds.report_html import html\nfrom rounds.report_latex import latex\n"
        "from tests.example_report import example_report, hostile_report\n"
        "for report in (example_report(), hostile_report()):\n"
        "    print(hashlib.sha256((html(report) + latex(report)).encode()).hexdigest())\n"
    )
    other = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    here = [page_of(report) + latex(report()) for report in (example_report, hostile_report)]
    assert other.stdout.split() == [hashlib.sha256(one.encode()).hexdigest() for one in here]
    assert html(example_report()) == page_of(example_report)


@pytest.mark.parametrize("key", PLOTS)
def test_no_text_of_a_plot_lies_outside_or_on_another(key: str):
    plot = PLOTS[key]
    with own_settings():
        sheet = DRAWN[plot.kind](plot, (CROWD,))
        # Finer than points, since at so few dots glyphs are widened to whole ones.
        sheet.figure.set_dpi(720)
        boxes = drawn_texts(sheet.figure)
        width, height = sheet.figure.get_size_inches() * 720
    assert f"▲ {CROWD}" in [one for one, _ in boxes]
    for place, (one, box) in enumerate(boxes):
        assert box.x0 >= -1 and box.y0 >= -1 and box.x1 <= width + 1 and box.y1 <= height + 1, one
        for other, beside in boxes[place + 1 :]:
            assert not box.overlaps(beside), (one, other)


def drawn_texts(figure):
    """Return what is written in a figure with its box in dots."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.text import Text

    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    texts = [one for one in figure.findobj(Text) if one.get_visible() and one.get_text().strip()]
    ticks = {
        label
        for axes in figure.axes
        for axis in (axes.xaxis, axes.yaxis)
        for tick in (*axis.get_major_ticks(), *axis.get_minor_ticks())
        for label in (tick.label1, tick.label2)
    }
    shown = {
        label
        for axes in figure.axes
        for axis in (axes.xaxis, axes.yaxis)
        for label in axis.get_ticklabels()
        if inside(axis, label)
    }
    return [(one.get_text(), one.get_window_extent()) for one in texts if one not in ticks or one in shown]


def inside(axis, label) -> bool:
    low, high = sorted(axis.get_view_interval())
    place = label.get_position()[0 if axis.axis_name == "x" else 1]
    return low - 1e-9 <= place <= high + 1e-9


def test_what_is_no_mathematics_is_not_read_as_such_and_settings_come_back():
    plot = Plot("p", "bars", "$\\frac$ and $x_1$", "t", ("$\\nothing$",), (Series("s", (1.0,)),))
    usual = svg(plot)
    with matplotlib.rc_context({"text.usetex": True, "font.size": 30, "savefig.dpi": 300}):
        before = dict(matplotlib.rcParams)
        assert svg(plot) == usual
        assert dict(matplotlib.rcParams) == before


def test_a_missing_value_leaves_a_gap_and_a_zero_does_not():
    def drawn(value: float | None) -> str:
        return svg(Plot("p", "bars", "t", "t", ("a", "b"), (Series("s", (1.0, value)),)))

    assert drawn(None).count("<use") + 1 == drawn(0.0).count("<use")


def test_series_are_told_apart_without_colour():
    assert len({look.hatch for look in LOOKS}) == len({look.marker for look in LOOKS}) == len(LOOKS)
    assert len({look_of(place)[:2] for place in range(49)}) == len({look_of(place)[::3] for place in range(49)}) == 49


def test_a_long_name_keeps_both_ends():
    with own_settings():
        shown = [fitted(name, 150) for name in TWELVE]
        assert all(text_width(name) <= 150 for name in shown)
    assert len(set(shown)) == len(TWELVE) and shown[0].startswith("model-0") and shown[0].endswith("seed-0")


LATEX_PIECE = r"\\text[a-z]+\{\}|\\[{}$&#_%]|\{\[\}|\{\*\}|-\{\}|[^\\{}$&#_%~^\n\r<>|`*\[]"


@given(st.text())
def test_latex_holds_no_command_that_a_text_brought(foreign: str):
    assert re.fullmatch(f"(?:{LATEX_PIECE})*", escaped(foreign)) and "--" not in escaped(foreign)


def test_latex_prints_what_was_written():
    assert escaped("\\input{/etc/passwd}") == r"\textbackslash{}input\{/etc/passwd\}"
    assert escaped("$x_1$ & 5 % #2 ~^") == r"\$x\_1\$ \& 5 \% \#2 \textasciitilde{}\textasciicircum{}"
    assert escaped("a\n\nb\x00é 日") == "a b[U+0000]é 日".replace("[", "{[}")


def test_latex_tables_have_rules_caption_label_and_as_many_cells_as_columns(report: Report):
    written = latex(report)
    tables = re.findall(r"\\begin\{table\}.*?\\end\{table\}", written, re.DOTALL)
    assert len(tables) == sum(len(section.tables) for section in report.sections)
    for table in tables:
        assert all(table.count(rule) == 1 for rule in (r"\toprule", r"\midrule", r"\bottomrule", r"\label{tab:"))
        [columns] = re.findall(r"\\begin\{tabular\}\{([lr]+)\}", table)
        rows = [line for line in table.splitlines() if line.endswith(r" \\")]
        assert {len(re.findall(r"(?<!\\)&", row)) for row in rows} == {len(columns) - 1}
        assert table.count("{") == table.count("}")


def test_numbers_of_a_latex_table_are_written_as_in_a_paper():
    table = Table("t", "T", ("a", "b"), (("x", -0.5), ("y", 12345), ("z", None), ("u", 0.0002), ("v", "[0.1, 0.2]")))
    written = latex(Report("R", (), (Section("s", "S", (), (table,)),)))
    for row in (r"x & $-$0.500 \\", r"y & 12,345 \\", r"z & -- \\", r"u & \textless{}0.001 \\", r"v & {[}0.1, 0.2] \\"):
        assert f"    {row}\n" in written
    assert r"\begin{tabular}{lr}" in written


@pytest.mark.parametrize(
    ("cell", "shown"),
    [
        (None, "–"),
        (0, "0"),
        (-1234567, "−1,234,567"),
        (0.46533, "0.465"),
        (1053 / 1200, "0.878"),
        (-0.0005, "−0.001"),
        (-0.0, "0.000"),
        (0.0002, "<0.001"),
        (-0.0002, ">−0.001"),
        (1234.5678, "1,234.568"),
        ("a\nb\u202e", "a b[U+202E]"),
    ],
)
def test_a_cell_is_written(cell: str | int | float | None, shown: str):
    assert cell_text(cell, 3) == shown


def test_a_cell_that_is_no_number_is_refused():
    with pytest.raises(ValueError, match="missing value is None"):
        cell_text(float("nan"), 3)


def test_columns_of_figures_are_found():
    rows = (("1", 5, "x", "0.5 [0.4, 0.6]", None, "undefined"), ("2", None, "3 of 5", "2,400/3,600", None, 0.5))
    assert figure_columns(Table("t", "T", tuple("abcdef"), (*rows, ("3", 5, "y", None, None, 0.5)))) == (
        *(False, True, False, True, False, True),
    )


def test_text_for_the_terminal_is_aligned_and_obeys_nothing():
    lines = list(text(hostile_report()))
    assert all(line.isprintable() for line in lines)
    table = Table("t", "T", ("name", "count"), (("a", 5), ("long name", 12345)))
    lines = list(text(Report("R", (("round", "1"),), (Section("s", "S", (), (table,)),))))
    assert lines == [
        "R",
        "round: 1",
        "",
        "S",
        "",
        "T",
        "name        count",
        "---------  ------",
        "a               5",
        "long name  12,345",
    ]


def test_parts_that_do_not_fit_are_refused():
    with pytest.raises(ValueError, match="another number"):
        Plot("p", "bars", "t", "t", ("a", "b"), (Series("s", (1.0,)),))
    with pytest.raises(ValueError, match="without x"):
        Plot("p", "reliability", "t", "t", (), ())
    with pytest.raises(ValueError, match="no number"):
        Plot("p", "bars", "t", "t", ("a",), (Series("s", (float("nan"),)),))
    with pytest.raises(ValueError, match="does not have"):
        Report("R", (), (Section("s", "S", plots=(PLOTS["votes"],)),))
    for keys in (("s", "s"), ('s" onclick="',)):
        with pytest.raises(ValueError, match="used twice, or is no word"):
            Report("R", (), tuple(Section(key, "S") for key in keys))
