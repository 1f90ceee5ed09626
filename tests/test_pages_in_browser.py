"""The pages in a real browser: on a phone, by keyboard, without script, and under their own security policy."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
from flask import Flask

from dynaround.database import writing
from dynaround.settings import create_workspace
from dynaround.terminal import now
from server.access import ENGINE
from server.app import create_app
from tests.browser import listening, opened_browser, wait_for_focus, wait_until
from tests.builders import build_open_round, build_released_round
from workers.invitations import invite, link

if TYPE_CHECKING:
    from playwright.sync_api import Browser

PAGES = ("/", "/rounds/1", "/rounds/2", "/rounds/1/examples", "/readings")


@pytest.fixture(scope="module")
def app(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Flask]:
    workspace = create_workspace(tmp_path_factory.mktemp("browser") / "bench")
    build_released_round(workspace)
    build_open_round(workspace, number=2, examples=12)
    yield create_app(workspace, demo=True)
    workspace.close()


@pytest.fixture(scope="module")
def address(app: Flask) -> Iterator[str]:
    with listening(app) as found:
        yield found


@pytest.fixture(scope="module")
def browser() -> Iterator["Browser"]:
    with opened_browser() as found:
        yield found


@pytest.mark.parametrize("width", [390, 1280])
def test_no_page_is_wider_than_the_screen_or_breaks_its_own_policy(
    browser: "Browser", address: str, width: int
) -> None:
    page = browser.new_page(viewport={"width": width, "height": 800})
    complaints: list[str] = []
    page.on("console", lambda message: complaints.append(message.text))
    for path in PAGES:
        page.goto(address + path)
        assert page.evaluate("document.documentElement.scrollWidth") <= width, path
        assert page.evaluate("getComputedStyle(document.querySelector('main')).display") == "block"
        assert page.evaluate("document.styleSheets.length") == 1
    page.close()
    assert complaints == []


def test_a_wide_table_is_reached_and_scrolled_by_keyboard(browser: "Browser", address: str) -> None:
    page = browser.new_page(viewport={"width": 390, "height": 800})
    page.goto(address + "/rounds/1/examples")
    box = page.get_by_role("region", name="Examples")
    box.focus()
    page.keyboard.press("ArrowRight")
    wait_until(page, lambda: bool(page.evaluate("document.querySelector('.table-box').scrollLeft")))
    page.close()


def test_the_first_tab_leads_past_the_navigation(browser: "Browser", address: str) -> None:
    page = browser.new_page()
    page.goto(address + "/rounds/1")
    page.keyboard.press("Tab")
    assert page.locator(":focus").inner_text() == "Skip to the content"
    place = page.locator(":focus").bounding_box()
    assert place is not None and place["x"] >= 0
    page.keyboard.press("Enter")
    wait_for_focus(page, "content")
    page.close()


def test_the_filter_form_works_without_script(browser: "Browser", address: str) -> None:
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(address + "/rounds/1/examples")
    page.get_by_label("split").select_option("dev")
    page.get_by_role("button", name="Show").click()
    page.get_by_role("status").get_by_text("10 examples.", exact=True).wait_for()
    assert set(page.locator("tbody td:nth-last-child(2)").all_inner_texts()) == {"dev"}
    context.close()


@pytest.mark.parametrize("script", [True, False])
def test_a_link_joins_with_and_without_script_and_no_log_holds_its_token(
    browser: "Browser", app: Flask, address: str, caplog: pytest.LogCaptureFixture, script: bool
) -> None:
    caplog.set_level("DEBUG")
    with writing(app.extensions[ENGINE]) as session:
        token = invite(session, f"platform-id-{script}", str(app.secret_key), now(), days=1)
    context = browser.new_context(java_script_enabled=script)
    page = context.new_page()
    page.goto(link(token, address, []))
    field = page.get_by_label("Your invitation")
    assert field.is_visible() != script
    if not script:
        field.fill(page.url)
    page.get_by_role("button", name="Join").click()
    page.get_by_role("heading", level=1, name="Account", exact=True).wait_for()
    context.close()
    assert "POST /join" in caplog.text and token not in caplog.text


def test_colours_follow_the_reader_s_scheme(browser: "Browser", address: str) -> None:
    seen = set()
    for scheme in ("light", "dark"):
        page = browser.new_page(color_scheme=scheme)
        page.goto(address)
        seen.add(page.evaluate("getComputedStyle(document.body).backgroundColor"))
        page.close()
    assert len(seen) == 2
