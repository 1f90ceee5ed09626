"""Validators and the launcher in a real browser: keyboard alone, no script, a reload, and the rules of axe."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from flask import Flask
from sqlmodel import col, select

from dynaround.database import reading, writing
from dynaround.settings import create_workspace
from dynaround.tables import LAUNCHER, Account, Flag, PageComment, Response, Worker
from dynaround.tasks.sentiment_guide import GUIDE
from rounds.lifecycle import find_round
from server.access import CLOCK, ENGINE, VISIT
from tests.author_site import serve
from tests.browser import focused, listening, opened_browser, wait_for_focus, wait_until
from tests.site import LIFETIME, SECRET
from tests.validate_site import LIVE, TASK, VALIDATE, Validator, add_examples, add_validated_round, admit
from workers.accounts import account_of_invited, make_account
from workers.visits import open_visit

if TYPE_CHECKING:
    from playwright.sync_api import Browser, BrowserContext, Page

LONG = f"A long one that is not broken {'n' * 90} and goes on for quite some time, so that it takes several lines."


@pytest.fixture(scope="module")
def browser() -> Iterator["Browser"]:
    with opened_browser() as found:
        yield found


class Site:
    """A served round whose validators are people in browser windows."""

    def __init__(self, app: Flask, address: str, ids: list[int]):
        self.app, self.address, self.ids = app, address, ids
        self.engine = app.extensions[ENGINE]
        self.contexts: list[BrowserContext] = []

    def enter(self, browser: "Browser", account_of: Callable[..., Account], **options: object) -> "Page":
        """Open a browser window with a visit of an account."""
        context = browser.new_context(**options)  # type: ignore[arg-type]
        self.contexts.append(context)
        at = self.app.extensions[CLOCK]()
        with writing(self.engine) as session:
            token = open_visit(session, account_of(session, at), at, LIFETIME)
        signed = self.app.session_interface.get_signing_serializer(self.app).dumps({VISIT: token})  # type: ignore[attr-defined]
        context.add_cookies([{"name": "dynaround", "value": signed, "url": self.address}])
        return context.new_page()

    def arrive(self, browser: "Browser", place: int, ready: bool = True, **options: object) -> "Page":
        """Open the work of one of the validators."""
        worker_id = self.ids[place]
        if ready:
            admit(self.app, self.engine, worker_id)
        page = self.enter(
            browser, lambda session, at: account_of_invited(session, session.get_one(Worker, worker_id), at), **options
        )
        page.goto(self.address + VALIDATE)
        return page

    def responses(self, place: int) -> list[str]:
        with reading(self.engine) as session:
            query = select(Response.label).where(Response.worker_id == self.ids[place]).order_by(col(Response.id))
            return list(session.exec(query))


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory, browser: "Browser") -> Iterator[Site]:
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setenv("DYNAROUND_SECRET", SECRET)
        workspace = create_workspace(tmp_path_factory.mktemp("validators") / "bench")
        ids = add_validated_round(workspace.engine(), examples=24, workers=9, checks=4)
        with writing(workspace.engine()) as session:
            add_examples(session, find_round(session, 1), [LONG])
        app = serve(workspace, None)
    with listening(app) as address:
        found = Site(app, address, ids)
        yield found
        for context in found.contexts:
            context.close()
    workspace.close()


def test_a_page_is_done_by_keyboard_alone_and_the_next_one_has_the_focus(site: Site, browser: "Browser") -> None:
    page = site.arrive(browser, 0)
    for _ in range(30):
        if focused(page) == "1.answer":
            break
        page.keyboard.press("Tab")
    assert focused(page) == "1.answer"
    page.keyboard.press("3")
    assert focused(page) == "sentence-2"
    page.keyboard.press("j")
    page.keyboard.press("k")
    page.keyboard.press("ArrowDown")
    assert focused(page) == "sentence-3"
    page.keyboard.press("ArrowUp")
    for word in ("1", "2", "4", "1", "2", "3", "4", "1", "2"):
        page.keyboard.press(word)
    assert page.get_by_role("status").inner_text() == "10 of 10 answered"
    assert focused(page) == "Give in this page"
    page.keyboard.press("Enter")
    page.get_by_text("0.25 USD").first.wait_for()
    wait_for_focus(page, "sentence-1")
    wait_until(page, lambda: page.get_by_role("status").inner_text() == "0 of 10 answered")
    said = site.responses(0)
    assert set(said) == set(TASK.labels)
    with reading(site.engine) as session:
        mine = select(Response.seconds).where(Response.worker_id == site.ids[0])
        assert all(seconds is not None and 0 < seconds < 60 for seconds in session.exec(mine))


def test_choices_survive_a_reload_and_a_key_typed_in_the_comment_chooses_nothing(
    site: Site, browser: "Browser"
) -> None:
    page = site.arrive(browser, 1)
    second = page.locator("#sentence-2")
    second.get_by_text("No sentiment").click()
    third = page.locator("#sentence-3")
    third.get_by_text("I cannot judge this").click()
    third.get_by_label("It is offensive").check()
    page.locator("#comment").fill("")
    page.locator("#comment").press_sequentially("1 and 2")
    assert page.get_by_role("status").inner_text() == "2 of 10 answered"
    page.reload()
    assert page.get_by_role("status").inner_text() == "2 of 10 answered"
    assert page.locator("#sentence-2 input[value=neutral]").is_checked()
    assert page.locator("#sentence-3").get_by_label("It is offensive").is_checked()
    assert page.locator("#comment").input_value() == "1 and 2"


def test_what_one_person_chose_is_not_put_before_the_next_one_at_the_same_browser(
    browser: "Browser", tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DYNAROUND_SECRET", SECRET)
    workspace = create_workspace(tmp_path / "bench")
    ids = add_validated_round(workspace.engine(), examples=3, workers=2, screening=12, screening_items=10)
    app = serve(workspace, None)
    with listening(app) as address:
        found = Site(app, address, ids)
        pages = [found.arrive(browser, place) for place in (0, 1)]
        pages[0].locator("fieldset.judge input[value=positive]").first.check()
        wait_until(pages[0], lambda: pages[0].get_by_role("status").inner_text() == "1 of 10 answered")
        pages[0].context.clear_cookies()
        pages[0].context.add_cookies(pages[1].context.cookies())
        pages[0].reload()
        assert pages[0].get_by_role("status").inner_text() == "0 of 10 answered"
        assert pages[0].locator("input:checked").count() == 0
        for context in found.contexts:
            context.close()
    workspace.close()


def test_without_script_a_page_is_refused_with_what_was_chosen_and_then_given_in(
    site: Site, browser: "Browser"
) -> None:
    page = site.arrive(browser, 2, java_script_enabled=False)
    assert not page.locator(".keys").is_visible()
    # Nothing of the browser's own stands in the way here.
    for position in range(1, 10):
        page.locator(f"#sentence-{position} .options label").nth(position % 4).click()
    page.locator("#sentence-9").get_by_text("I cannot judge this").click()
    page.locator("#sentence-9").get_by_label("It is not in English").check()
    page.locator("#comment").fill("Odd, <b>this</b>.")
    address, sent = f"{site.address}{VALIDATE}", page.locator("#sheet")
    assert address == page.url and sent.get_attribute("method") == "post"
    page.get_by_role("button", name="Give in this page").click()
    assert site.responses(2) == [], "the browser itself asks for what is missing"
    page.locator("#sentence-10 .options label").first.click()
    page.get_by_role("button", name="Give in this page").click()
    page.get_by_text("0.25 USD").first.wait_for()
    with reading(site.engine) as session:
        assert session.exec(select(PageComment.text)).all() == ["Odd, <b>this</b>."]
        flags = session.exec(select(Flag.reason).where(Flag.worker_id == site.ids[2])).all()
    assert len(flags) + len(site.responses(2)) in (9, 10)


def test_no_page_has_a_violation_of_axe_or_is_wider_than_the_screen(site: Site, browser: "Browser") -> None:
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="pip install axe-playwright-python").Axe()

    def judge(page: "Page", what: str) -> None:
        page.wait_for_load_state()
        for width in (390, 1280):
            page.set_viewport_size({"width": width, "height": 800})
            assert page.evaluate("document.documentElement.scrollWidth") <= width, (what, width)
            for scheme in ("light", "dark"):
                page.emulate_media(color_scheme=scheme)
                results = axe.run(page)
                assert results.violations_count == 0, f"{what}, {width}, {scheme}\n{results.generate_report()}"

    # The pages' own policy forbids the scripts of axe.
    page = site.arrive(browser, 3, ready=False, bypass_csp=True)
    complaints: list[str] = []
    page.on("console", lambda message: complaints.append(message.text))
    judge(page, "consent")
    page.get_by_label("I have read this").check()
    page.get_by_role("button", name="Agree and go on").click()
    judge(page, "instructions")
    page.get_by_role("link", name="Go on").click()
    for question in GUIDE.validator_quiz:
        page.locator(f'input[name={question.key}][value="{question.right}"]').check()
    page.get_by_role("button", name="Check my answers").click()
    page.get_by_text("Rules and worked examples").click()
    page.locator("#sentence-2").get_by_text("I cannot judge this").click()
    page.locator("#sentence-1").get_by_text("Mixed").click()
    judge(page, "page")
    page.evaluate("document.getElementById('sheet').noValidate = true")
    page.get_by_role("button", name="Give in this page").click()
    page.get_by_role("heading", name="Not given in").wait_for()
    judge(page, "refused")
    page.goto(f"{site.address}/work")
    judge(page, "work")
    assert all("400" in said for said in complaints), complaints

    for worker_id in site.ids[4:9]:
        admit(site.app, site.engine, worker_id)
        for place in range(3):
            one = Validator(site.app, worker_id)
            one.page_of()
            if one.positions():
                flagged = {"1.answer": "cannot.offensive"} if not place else {}
                one.give_in({**one.answers(TASK.labels[(worker_id + place) % 2]), **flagged})
    launcher = site.enter(
        browser, lambda session, at: make_account(session, LAUNCHER, LAUNCHER, "-", at), bypass_csp=True
    )
    launcher.goto(site.address + LIVE)
    assert launcher.get_by_label("load them every 15 seconds").is_checked()
    judge(launcher, "live")
    launcher.get_by_role("link", name="Close the round").click()
    judge(launcher, "confirm")
