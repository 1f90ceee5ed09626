"""A report in a real browser: under its own policy, on a phone, in both colour schemes, and by the rules of axe."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.browser import opened_browser, wait_until
from tests.example_report import example_report, hostile_report, page_of

if TYPE_CHECKING:
    from playwright.sync_api import Browser


@pytest.fixture(scope="module")
def browser() -> Iterator["Browser"]:
    with opened_browser() as found:
        yield found


@pytest.fixture(scope="module", params=[example_report, hostile_report])
def address(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> str:
    file: Path = tmp_path_factory.mktemp("report") / "report.html"
    file.write_text(page_of(request.param), encoding="utf-8")
    return file.as_uri()


@pytest.mark.parametrize("width", [390, 1280])
def test_a_report_fits_the_screen_asks_for_nothing_and_breaks_no_policy(
    browser: "Browser", address: str, width: int
) -> None:
    page = browser.new_page(viewport={"width": width, "height": 800})
    complaints: list[str] = []
    asked: list[str] = []
    page.on("console", lambda message: complaints.append(message.text))
    page.on("dialog", lambda dialog: complaints.append(dialog.message))
    page.on("request", lambda request: asked.append(request.url.partition(",")[0]))
    page.goto(address)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert page.evaluate("getComputedStyle(document.querySelector('.box')).overflowX") == "auto"
    assert page.evaluate("[...document.images].every(image => image.complete && image.naturalWidth > 0)")
    assert set(asked) <= {address, "data:image/svg+xml;base64"}
    assert complaints == []
    page.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_to_complain_about(browser: "Browser", address: str, scheme: str) -> None:
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="pip install axe-playwright-python")
    # The report's own policy forbids scripts, so also those of axe.
    page = browser.new_page(bypass_csp=True, viewport={"width": 390, "height": 800})
    page.emulate_media(color_scheme="dark" if scheme == "dark" else "light")
    page.goto(address)
    results = axe.Axe().run(page)
    assert results.violations_count == 0, results.generate_report()
    page.close()


def test_a_wide_table_is_reached_and_scrolled_by_keyboard(browser: "Browser", address: str) -> None:
    page = browser.new_page(viewport={"width": 390, "height": 800})
    page.goto(address)
    box = page.get_by_role("region").first
    box.focus()
    page.keyboard.press("ArrowRight")
    wait_until(page, lambda: bool(box.evaluate("box => box.scrollLeft")))
    page.close()


def test_a_printed_page_shows_every_table_to_its_last_column(browser: "Browser", address: str) -> None:
    page = browser.new_page(viewport={"width": 680, "height": 900})
    page.emulate_media(media="print")  # at the width of A4 within the margins, in CSS pixels
    page.goto(address)
    cut = "[...document.querySelectorAll('table, img')].filter(one => one.getBoundingClientRect().right > innerWidth)"
    assert page.evaluate(f"{cut}.map(one => one.id)") == []
    page.close()
