"""Takes the screenshots: of the writing page from a demo that runs, of validators' and launcher's pages from its own.

Run: dynaround demo --port 8765 &  python -m docs.screenshots.take http://127.0.0.1:8765
     python -m docs.screenshots.take
"""

import shutil
import sys

from playwright.sync_api import Page, sync_playwright

from docs.screenshots.pictures import NARROW, WIDE, take
from docs.screenshots.validation import take_validation

SITTINGS = 12
"""Sittings after which both arms have come, all but surely: each has the arm that had fewer."""

PLAIN = {
    "positive": ["We loved every minute of it.", "The staff were kind and the room was lovely."],
    "negative": ["The soup was cold and the waiter was rude.", "It was a waste of an evening."],
    "neutral": ["The shop stands on the corner of the main street.", "They open at nine on weekdays."],
}
TRICKY = {
    "positive": ["I would not trade this place for any other.", "Try to find a fault with it, I could not."],
    "negative": ["They never failed to disappoint me.", "If you enjoy waiting, you will adore this bank."],
    "neutral": ["They moved the awful old sign to the back door.", "The lovely lady from the ad has changed her name."],
}


def main() -> None:
    """Play Round 2 of the demo at an address until every picture is taken; without one, let a crowd validate."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        for address in sys.argv[1:]:
            page = browser.new_page(viewport=WIDE)
            page.goto(address)
            _reach_the_writing_page(page)
            _take_both_arms(page, address)
            _take_both_results(page)
        if not sys.argv[1:]:
            take_validation(browser)
        browser.close()


def _reach_the_writing_page(page: Page) -> None:
    page.get_by_role("button", name="Play Round 2").click()
    page.get_by_role("navigation").get_by_role("link", name="Write").click()
    page.get_by_label("I have read this").check()
    page.get_by_role("button", name="Agree and go on").click()
    page.get_by_role("link", name="Go on").click()
    for _ in range(4):
        page.locator("#target, .quiz").first.wait_for()
        questions = page.locator("fieldset")
        if not questions.count():
            return
        # A wrong answer is marked: the next choice is tried.
        for place in range(questions.count()):
            choices = questions.nth(place).get_by_role("radio")
            checked = [number for number in range(choices.count()) if choices.nth(number).is_checked()]
            wrong = questions.nth(place).get_by_text("Not right.").count() > 0
            choices.nth(0 if not checked else checked[0] + wrong).check()
        page.get_by_role("button", name="Check my answers").click()
        page.locator("#target, #result").first.wait_for()


def _take_both_arms(page: Page, address: str) -> None:
    taken: set[str] = set()
    for _ in range(SITTINGS):
        arm = "prompt" if page.locator(".start").count() else "no-prompt"
        if arm not in taken:
            take(page, f"writing-{arm}")
            taken.add(arm)
            if arm == "prompt":
                page.set_viewport_size(NARROW)
                take(page, "writing-narrow")
                page.set_viewport_size(WIDE)
        if len(taken) == 2:
            return
        page.get_by_role("button", name="End this sitting").click()
        page.get_by_role("navigation").get_by_role("link", name="Write").click()
        page.locator("#target").wait_for()


def _take_both_results(page: Page) -> None:
    taken: set[str] = set()
    for sentences in (PLAIN, TRICKY, TRICKY, PLAIN, TRICKY, PLAIN):
        target = page.locator("#target strong").inner_text()
        for sentence in sentences[target]:
            page.get_by_label("Your sentence").fill(sentence)
            # The result before has the same place: the answer brings a new one.
            page.evaluate("document.querySelector('main').dataset.before = 'yes'")
            page.get_by_role("button", name="Submit to the model").click()
            page.locator("main:not([data-before]) :is(#result, #before, #complaint)").wait_for(timeout=15_000)
            if page.locator("#complaint").count():
                continue
            fooled = page.get_by_role("button", name="Yes, others would agree")
            name = "fooled" if fooled.count() else "not-fooled"
            if name not in taken:
                take(page, f"writing-{name}")
                taken.add(name)
                if name == "fooled":
                    page.emulate_media(color_scheme="dark")
                    take(page, "writing-dark")
                    page.emulate_media(color_scheme="light")
            if taken == {"fooled", "not-fooled"}:
                return
            if fooled.count():
                fooled.click()
                break
        else:
            page.get_by_role("button", name="next example").click()
        page.locator("#before").wait_for()


if __name__ == "__main__":
    main()
