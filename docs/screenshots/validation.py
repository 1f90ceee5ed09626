"""A round that a scripted crowd validates, and the pictures of the pages that validators and its launcher meet."""

import os
import random
import tempfile
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path

from flask import Flask
from playwright.sync_api import Browser
from sqlalchemy import Engine
from sqlmodel import col, select

from docs.screenshots.pictures import NARROW, WIDE, take
from dynaround.database import writing
from dynaround.demo_corpus import demo_reviews, demo_seeds
from dynaround.settings import create_workspace
from dynaround.tables import LAUNCHER, SCREENING, SILENT, CheckItem, Worker
from dynaround.text import text_key
from rounds.lifecycle import find_round
from server.access import CLOCK
from server.validate_view import ValidationOffer, validation_offer
from tests.author_site import serve
from tests.browser import listening
from tests.site import SECRET
from tests.test_validators_in_browser import Site
from tests.validate_site import LIVE, NUMBER, TASK, add_examples, add_validated_round, admit
from workers.accounts import make_account
from workers.assignment import Answer
from workers.giving_in import CannotJudge, give_in_page
from workers.places import PageView, next_page
from workers.roster import SCRIPTED
from workers.screening import screen_round
from workers.standing import current_bar, object_to

EXAMPLES, BATCH, TURNS = 120, 40, 40
CROWD, GUESSER, NEWCOMER, IDLE = range(10), 4, 10, 11
"""Places among the workers: who answers, which of them guesses, who has just come, and who has done all there is."""
RIGHT = 0.85
"""How often whoever does not guess says the label that a sentence carries."""
PRIVATE = "private"
"""The reason for which two of the crowd do not judge some sentences."""


def take_validation(browser: Browser) -> None:
    """Let the crowd work for some hours and take every picture."""
    os.environ["DYNAROUND_SECRET"] = SECRET
    with tempfile.TemporaryDirectory() as folder:
        workspace = create_workspace(Path(folder) / "bench")
        ids = add_validated_round(
            workspace.engine(), examples=0, workers=12, batch=BATCH, screening_items=10, screening_right=8
        )
        app = serve(workspace, None)
        known = _fill(workspace.engine(), ids)
        _let_work(app, workspace.engine(), ids, known)
        with listening(app) as address:
            site = Site(app, address, ids)
            _take_all(browser, site, known)
            for context in site.contexts:
                context.close()
        workspace.close()


def _fill(engine: Engine, ids: list[int]) -> dict[str, str]:
    """Add examples and check items; return the label that each sentence carries."""
    sentences = [sentence for review in demo_reviews() if review.round == 2 for sentence in review.sentences]
    random.Random(1).shuffle(sentences)
    checks = [(seed.text, seed.label) for seed in demo_seeds()[:30]]
    with writing(engine) as session:
        round_ = find_round(session, NUMBER)
        add_examples(session, round_, [sentence.text for sentence in sentences[:EXAMPLES]])
        for place, (text, label) in enumerate(checks):
            facts = {"task": TASK.name, "text": text, "text_key": text_key(text), "label": label}
            session.add(CheckItem(round_id=round_.id, use=SCREENING if place < 10 else SILENT, **facts))
        crowd = [ids[place] for place in (*CROWD, IDLE)]
        for worker in session.exec(select(Worker).where(col(Worker.id).in_(crowd))):
            worker.kind = SCRIPTED
    return {**dict(checks), **{sentence.text: sentence.label for sentence in sentences}}


def _let_work(app: Flask, engine: Engine, ids: list[int], known: Mapping[str, str]) -> None:
    """Let the crowd answer page after page, with pauses, and whoever is removed object."""
    clock, chance = app.extensions[CLOCK], random.Random(2)
    for place in (*CROWD, IDLE):
        admit(app, engine, ids[place])
    with writing(engine) as session:
        offer = validation_offer(session, NUMBER)
    for turn in range(TURNS):
        place = chance.choice(CROWD)
        _give_in_one(engine, offer, ids[place], known, 0.0 if place == GUESSER else RIGHT, chance, clock())
        clock.advance(minutes=chance.choice([2, 4, 9, 25]) if turn % 9 else 70)
    with writing(engine) as session:
        bar = current_bar(session, session.get_one(Worker, ids[GUESSER]), "validating", clock())
        if bar is not None:
            object_to(session, bar, "I read every sentence. Many of them say two things at once.", clock())
    while _give_in_one(engine, offer, ids[IDLE], known, RIGHT, chance, clock()):
        pass


def _give_in_one(
    engine: Engine,
    offer: ValidationOffer,
    worker_id: int,
    known: Mapping[str, str],
    right: float,
    chance: random.Random,
    now: datetime,
) -> bool:
    """Let a worker answer the next page; whether there was one for them."""
    with writing(engine) as session:
        round_, worker = find_round(session, NUMBER), session.get_one(Worker, worker_id)
        if current_bar(session, worker, "validating", now) is not None:
            return False
        page = next_page(session, round_, worker, offer.settings, validating=True, collecting=False, now=now, seed=7)
        if not isinstance(page, PageView):
            return False
        answers = {}
        for at, sentence in page.places:
            carried = known[sentence] if chance.random() < right else chance.choice(TASK.labels)
            answers[at] = Answer(carried, {}, round(chance.uniform(3, 11), 1))
        if worker_id % 5 in (1, 2):
            answers |= {at: CannotJudge(PRIVATE) for at, sentence in page.places if sentence[0] in "HK"}
        give_in_page(session, round_, page.page_id, worker_id, answers, flags_that_hold=2, task=TASK, now=now)
    screen_round(engine, NUMBER, offer.plan, now)
    return True


def _take_all(browser: Browser, site: Site, known: Mapping[str, str]) -> None:
    page = site.arrive(browser, NEWCOMER, ready=False, viewport=WIDE)
    page.get_by_label("I have read this").check()
    page.get_by_role("button", name="Agree and go on").click()
    page.get_by_role("link", name="Go on").click()
    page.locator(".quiz").wait_for()
    take(page, "validating-questions")
    for question in TASK.guide.validator_quiz:
        page.locator(f'input[name={question.key}][value="{question.right}"]').check()
    page.get_by_role("button", name="Check my answers").click()
    for fieldset in page.locator("fieldset.judge").all():
        label = known[fieldset.locator(".sentence").inner_text()]
        fieldset.locator(f'input[value="{label}"]').check()
    page.locator("form.sheet button").click()
    page.get_by_text("Give in this page").wait_for()
    for place in (1, 2):
        fieldset = page.locator("fieldset.judge").nth(place - 1)
        fieldset.locator(f'input[value="{known[fieldset.locator(".sentence").inner_text()]}"]').check()
    for name, size, scheme in (("page", WIDE, "light"), ("narrow", NARROW, "light"), ("dark", WIDE, "dark")):
        page.set_viewport_size(size)
        page.emulate_media(color_scheme=scheme)
        page.locator(".meanings" if name != "narrow" else "#sheet").scroll_into_view_if_needed()
        take(page, f"validating-{name}")
    page = site.arrive(browser, IDLE, ready=False, viewport=WIDE)
    take(page, "validating-nothing")
    page = site.enter(browser, lambda session, at: make_account(session, LAUNCHER, LAUNCHER, "-", at), viewport=WIDE)
    page.goto(site.address + LIVE)
    take(page, "live", whole=True)
