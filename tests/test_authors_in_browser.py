"""Authors in a real browser: the whole way, a lost connection, the keyboard alone, no script, and the rules of axe."""

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, NamedTuple

import pytest
from flask import Flask
from sqlalchemy import Engine
from sqlmodel import Session, col, select

from dynaround.database import reading, writing
from dynaround.settings import Workspace, create_workspace
from dynaround.tables import (
    NO_PROMPT_ARM,
    PROMPT_ARM,
    WORKER,
    Account,
    Attempt,
    AttemptDecision,
    AuthorSession,
    Bar,
    Example,
    QuizAttempt,
    Worker,
    Writing,
)
from dynaround.target_model import TargetModel
from dynaround.tasks.sentiment_guide import GUIDE
from dynaround.terminal import now
from rounds.lifecycle import AUTHORING
from rounds.opening import open_new_round
from server.access import ENGINE, VISIT
from server.app import create_app
from server.live_model import MODELS
from tests.author_site import WRITE, FixedModels, let_in
from tests.authored_round import LABELS, NUMBER, FixedAnswer, add_authored_round, answer_of, begin_in_arm, other_than
from tests.browser import listening, opened_browser, wait_for_focus, wait_until
from tests.site import LIFETIME, PASSWORD, SECRET
from tests.small_round import add_tiny_model, write_reviews
from workers.accounts import hashed_password, make_account
from workers.invitations import invite
from workers.roster import PERSON, enlist
from workers.standing import CLAIMS_REFUTED, bar
from workers.visits import open_visit

if TYPE_CHECKING:
    from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Page, Route

WRONG, RIGHT = "not so", "right"


class ListeningModels(FixedModels):
    """Says the label that a text names."""

    def ask(self, text: str) -> FixedAnswer:
        named = next((label for label in LABELS if label in text), LABELS[0])
        super().ask(text)
        return answer_of(named)


class Site(NamedTuple):
    """A served round that people write in."""

    app: Flask
    address: str
    models: ListeningModels

    @property
    def engine(self) -> Engine:
        engine: Engine = self.app.extensions[ENGINE]
        return engine

    def read(self, wanted: Callable[[Session], object]) -> object:
        with reading(self.engine) as session:
            return wanted(session)

    def attempts(self, worker_id: int) -> list[Attempt]:
        with reading(self.engine) as session:
            return list(session.exec(select(Attempt).where(Attempt.worker_id == worker_id).order_by(col(Attempt.id))))


@pytest.fixture(scope="module")
def browser() -> Iterator["Browser"]:
    with opened_browser() as found:
        yield found


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory, browser: "Browser") -> Iterator[Site]:
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setenv("DYNAROUND_SECRET", SECRET)
        workspace = create_workspace(tmp_path_factory.mktemp("authors") / "bench")
        app = create_app(workspace)
    models = app.extensions[MODELS] = ListeningModels()
    add_authored_round(workspace.engine(), prompts=200, authors=0)
    with listening(app) as address:
        yield Site(app, address, models)
    workspace.close()


class Author:
    """One person at one browser window."""

    def __init__(self, site: Site, context: "BrowserContext", worker_id: int):
        self.site, self.context, self.worker_id = site, context, worker_id
        self.page = context.new_page()
        self.complaints: list[str] = []
        self.page.on("console", self.note)
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))

    def note(self, message: "ConsoleMessage") -> None:
        """Keep what the browser complains of; that a refusal has its status is no reason to."""
        if message.type == "error" and "Failed to load resource" not in message.text:
            self.complaints.append(message.text)

    def look(self, address: str = WRITE) -> "Page":
        self.page.goto(self.site.address + address)
        return self.page

    @property
    def target(self) -> str:
        return self.page.locator("#target strong").inner_text()

    @property
    def fooling(self) -> str:
        return other_than(self.target)

    @property
    def box(self) -> str:
        return self.page.get_by_label("Your sentence").input_value()

    def write(self, text: str) -> None:
        self.page.get_by_label("Your sentence").fill(text)

    def press_submit(self) -> None:
        self.page.get_by_role("button", name="Submit to the model").click()

    def wait_for(self, heading: str) -> None:
        """Wait for a page by its heading, and until its script has run: what is typed before, nobody counts."""
        self.page.get_by_role("heading", name=heading).wait_for()
        self.page.wait_for_load_state()

    def wait_for_attempts_left(self, count: int) -> None:
        self.page.get_by_text(f"{count} of 10 attempts left").wait_for()
        self.page.wait_for_load_state()

    def wait_for_focus(self, where: str) -> None:
        wait_for_focus(self.page, where)

    @property
    def attempts(self) -> list[Attempt]:
        return self.site.attempts(self.worker_id)


Arrive = Callable[..., Author]


@pytest.fixture
def arrive(site: Site, browser: "Browser") -> Iterator[Arrive]:
    """Return a function that makes an author who is logged in, let in, and in an arm, and looks at the writing page."""
    contexts: list[BrowserContext] = []

    def arriving(arm: str = NO_PROMPT_ARM, *, ready: bool = True, **options: object) -> Author:
        context = browser.new_context(**options)  # type: ignore[arg-type]
        contexts.append(context)
        with writing(site.engine) as session:
            name = f"author {len(session.exec(select(Worker.id)).all())}"
            made = make_account(session, name, WORKER, PASSWORD_HASH, now(), f"PLATFORM {name}")
            token, worker_id = open_visit(session, made, now(), LIFETIME), made.worker_id
        assert worker_id is not None
        signed = site.app.session_interface.get_signing_serializer(site.app).dumps({VISIT: token})  # type: ignore[attr-defined]
        context.add_cookies([{"name": "dynaround", "value": signed, "url": site.address}])
        author = Author(site, context, worker_id)
        if ready:
            let_in(site.engine, worker_id, now())
            begin_in_arm(site.engine, worker_id, arm, at=now())
            author.look()
        return author

    yield arriving
    for context in contexts:
        context.close()


PASSWORD_HASH = hashed_password(PASSWORD)


def answer(page: "Page", **changed: str) -> None:
    """Answer all questions right but those that are `changed`, and send the form."""
    for question in GUIDE.author_quiz:
        choice = changed.get(question.key, question.right)
        page.locator(f'input[name={question.key}][value="{choice}"]').check()
    page.get_by_role("button", name="Check my answers").click()


def test_an_author_joins_learns_fools_the_model_and_fails_ten_times(site: Site, browser: "Browser") -> None:
    with writing(site.engine) as session:
        invitation = invite(session, "PLATFORM-INVITED", SECRET, now(), 7)
    context = browser.new_context()
    page = context.new_page()
    page.goto(f"{site.address}/join#{invitation}")
    page.get_by_role("button", name="Join").click()
    page.get_by_role("navigation").get_by_role("link", name="Write").click()
    page.get_by_label("I have read this").check()
    page.get_by_role("button", name="Agree and go on").click()
    page.get_by_label("A sentence").fill(f"Someone is {LABELS[1]} here.")
    page.keyboard.press("Enter")
    page.get_by_role("heading", name=f"The model says {LABELS[1]}").wait_for()
    page.get_by_role("link", name="Go on to the questions").click()
    answer(page, machine="true")
    page.get_by_role("heading", name="4 of 5 answers were right").wait_for()
    assert page.get_by_text("Not right. Only sentences that people wrote").is_visible()
    answer(page)
    page.get_by_text("All answers are right.").wait_for()
    page.wait_for_load_state()

    with reading(site.engine) as session:
        worker = session.exec(select(Worker).where(Worker.platform_id == "PLATFORM-INVITED")).one()
        tries = session.exec(select(QuizAttempt.passed).where(QuizAttempt.worker_id == worker.id)).all()
    assert worker.id is not None and list(tries) == [False, True]
    author = Author(site, context, worker.id)
    author.page.close()
    author.page = page
    target = author.target
    author.write(f"A sentence that reads {author.fooling}, at the first try.")
    page.keyboard.press("Enter")
    author.wait_for("You fooled the model")
    author.wait_for_focus("result")
    page.get_by_role("button", name="Yes, others would agree").click()
    author.wait_for("Example 1: stored")
    author.wait_for_focus("before")

    second = author.target
    for number in range(1, 11):
        author.write(f"A sentence that reads {second}, at try {number}.")
        page.keyboard.press("Enter")
        if number < 10:
            author.wait_for_attempts_left(10 - number)
            author.wait_for_focus("result")
    author.wait_for("Example 2: stored, all attempts are used up")
    author.wait_for_focus("before")
    assert "at try 10." in page.locator("#before").inner_text()
    with reading(site.engine) as session:
        stored = session.exec(select(Example).where(Example.author_id == worker.id).order_by(col(Example.number))).all()
        labels = [session.get_one(Writing, a.writing_id).target_label for a in author.attempts]
    assert [example.text.rpartition(", ")[2] for example in stored] == ["at the first try.", "at try 10."]
    assert labels == [target] + [second] * 10
    assert page.locator(".account").get_by_text("0.60 USD").is_visible()
    context.close()


def test_a_lost_connection_keeps_the_text_and_costs_nothing(arrive: Arrive) -> None:
    author = arrive()
    page, label = author.page, author.target
    author.context.set_offline(True)
    author.write(f"It reads {label} to me.")
    page.get_by_text("Your draft is kept in this browser.").wait_for()
    author.press_submit()
    page.get_by_role("status").get_by_text("The connection is lost.").wait_for()
    assert author.box == f"It reads {label} to me." and author.attempts == []
    author.context.set_offline(False)
    author.press_submit()
    author.wait_for("The model was not fooled")
    assert [attempt.text for attempt in author.attempts] == [f"It reads {label} to me."]


def test_an_answer_that_is_lost_on_its_way_is_shown_when_the_text_is_sent_again(arrive: Arrive) -> None:
    author = arrive()
    page, label = author.page, author.target
    asked = len(author.site.models.calls)

    def lose(route: object) -> None:
        route.fetch(max_redirects=0)  # type: ignore[attr-defined]
        route.abort()  # type: ignore[attr-defined]

    page.route("**/attempts", lose)
    author.write(f"It reads {label}, and the answer is lost.")
    author.press_submit()
    page.get_by_role("status").get_by_text("The connection is lost.").wait_for()
    page.unroute("**/attempts")
    author.press_submit()
    author.wait_for("The model was not fooled")
    assert len(author.attempts) == 1 and len(author.site.models.calls) == asked + 1


def test_a_draft_survives_a_reload_at_once_and_later(arrive: Arrive) -> None:
    author = arrive()
    author.write("Half a sent")
    author.page.reload()
    author.page.get_by_text("Your draft is back.").wait_for()
    assert author.box == "Half a sent"
    author.write("Half a sentence")
    author.page.get_by_text("Draft kept.").wait_for()
    author.page.evaluate("localStorage.clear()")
    author.page.reload()
    assert author.box == "Half a sentence"
    assert author.complaints == []


def test_what_is_typed_before_the_script_has_come_takes_the_place_of_a_draft(arrive: Arrive) -> None:
    author = arrive()
    page = author.page
    author.write("A draft")
    page.get_by_text("Draft kept.").wait_for()
    held: list[Route] = []
    page.route("**/author.js", lambda route: held.append(route))
    page.reload(wait_until="commit")
    page.locator("#text:focus").wait_for()
    author.write("Typed at once")
    wait_until(page, lambda: bool(held))
    held[0].continue_()
    page.get_by_text("Draft kept.").wait_for()
    page.unroute("**/author.js")
    page.reload()
    assert author.box == "Typed at once"


def test_whoever_must_log_in_again_finds_the_text(arrive: Arrive) -> None:
    author = arrive()
    author.context.clear_cookies()
    author.write("Written while the log-in ran out.")
    author.press_submit()
    author.wait_for("Log in")
    with reading(author.site.engine) as session:
        name = session.exec(select(Account.name).where(Account.worker_id == author.worker_id)).one()
    author.page.get_by_label("Name").fill(name)
    author.page.get_by_label("Password").fill(PASSWORD)
    author.page.get_by_role("button", name="Log in").click()
    author.page.get_by_text("Your draft is back.").wait_for()
    assert author.box == "Written while the log-in ran out." and author.attempts == []


def test_a_form_of_an_earlier_log_in_is_told_and_keeps_the_text(arrive: Arrive) -> None:
    author = arrive()
    author.page.evaluate("document.querySelector('#writing [name=csrf_token]').value = 'of another log-in'")
    author.write("Written on an old page.")
    author.press_submit()
    author.page.get_by_role("status").get_by_text("this form is too old").wait_for()
    assert author.box == "Written on an old page."
    author.page.reload()
    assert author.box == "Written on an old page."


def test_the_keyboard_alone_is_enough(arrive: Arrive) -> None:
    author = arrive(PROMPT_ARM)
    page, keys, label = author.page, author.page.keyboard, author.target
    author.wait_for_focus("text")
    keys.press("Control+A")
    keys.type(f"It reads {label}.")
    keys.press("Escape")
    author.wait_for_focus("text")
    assert author.box == f"It reads {label}."
    keys.press("Enter")
    author.wait_for("The model was not fooled")
    author.wait_for_focus("result")
    keys.press("Tab")
    author.wait_for_focus("text")
    keys.press("Tab")
    author.wait_for_focus("Submit to the model")
    keys.press("Tab")
    author.wait_for_focus("Another sentence to start from")
    before = author.box
    keys.press("Enter")
    wait_until(page, lambda: author.box != before)
    author.wait_for_focus("text")
    keys.press("Control+A")
    keys.type(f"It reads {author.fooling}.")
    keys.press("Tab")
    keys.press("Space")
    author.wait_for("You fooled the model")
    author.wait_for_focus("result")
    keys.press("Tab")
    author.wait_for_focus("Yes, others would agree")
    keys.press("Tab")
    author.wait_for_focus("No, take it back")
    keys.press("Enter")
    author.wait_for("Taken back")
    author.wait_for_focus("result")
    keys.press("Tab")
    keys.press("Control+A")
    keys.type(f"Now it reads {author.fooling}.")
    keys.press("Enter")
    author.wait_for("You fooled the model")
    author.wait_for_focus("result")
    keys.press("Tab")
    keys.press("Enter")
    author.wait_for("Example 1: stored")
    author.wait_for_focus("before")
    keys.press("Tab")
    author.wait_for_focus("text")
    with reading(author.site.engine) as session:
        said = session.exec(
            select(AttemptDecision.decision)
            .join(Attempt, col(Attempt.id) == col(AttemptDecision.attempt_id))
            .where(Attempt.worker_id == author.worker_id)
            .order_by(col(Attempt.id))
        ).all()
    assert list(said) == ["taken back", "confirmed"] and len(author.attempts) == 3
    assert page.url.endswith("/write") and author.complaints == []


def test_without_script_the_same_can_be_done(arrive: Arrive) -> None:
    author = arrive(java_script_enabled=False)
    page, label = author.page, author.target
    author.write("12345")
    author.press_submit()
    author.wait_for("Not sent")
    assert author.box == "12345"
    page.locator("#text:focus").wait_for()
    author.write(f"Without script it reads {label}.")
    author.press_submit()
    author.wait_for("The model was not fooled")
    page.locator("#result:focus").wait_for()
    author.write(f"Without script it reads {author.fooling}.")
    page.get_by_role("button", name="Submit to the model").dblclick()
    author.wait_for("You fooled the model")
    page.get_by_role("button", name="Yes, others would agree").click()
    author.wait_for("Example 1: stored")
    page.get_by_role("button", name="Skip, next example").click()
    author.wait_for("Example 2: skipped")
    page.get_by_role("button", name="End this sitting").click()
    page.get_by_text("The sitting is over.").wait_for()
    assert [(a.pasted, a.keystrokes, a.seconds) for a in author.attempts] == [(None, None, None)] * 2


def test_a_refusal_stands_beside_the_text_which_can_be_sent_once_mended(arrive: Arrive) -> None:
    author = arrive()
    page, label = author.page, author.target
    author.write("12345")
    author.press_submit()
    author.wait_for("Not sent")
    assert page.get_by_text("The text has no letters").is_visible()
    author.wait_for_focus("text")
    assert author.box == "12345"
    assert page.get_by_label("Your sentence").get_attribute("aria-invalid") == "true"
    assert page.title().startswith("Not sent")
    author.site.models.problem = "it is being mended"
    author.write(f"It reads {label}.")
    author.press_submit()
    author.wait_for("The model cannot answer now")
    assert (author.box, author.target) == (f"It reads {label}.", label)
    author.site.models.problem = None
    page.get_by_role("button", name="Submit to the model").dblclick()
    author.wait_for("The model was not fooled")
    assert len(author.attempts) == 1


@pytest.mark.parametrize("script", [True, False])
def test_on_a_phone_the_reason_of_a_refusal_is_in_sight_above_the_box(arrive: Arrive, script: bool) -> None:
    author = arrive(java_script_enabled=script, viewport={"width": 390, "height": 700})
    page = author.page
    author.write("12345")
    author.press_submit()
    author.wait_for("Not sent")
    page.locator("#text:focus").wait_for()
    figures, reason, box = (page.locator(place).bounding_box() for place in (".account dl", "#complaint", "#text"))
    assert figures is not None and reason is not None and box is not None
    assert figures["y"] + figures["height"] <= reason["y"] < box["y"] < 700


def test_going_back_and_a_second_window_lose_and_double_nothing(arrive: Arrive) -> None:
    author = arrive()
    page = author.page
    text = f"It reads {author.fooling}, in the first window."
    second = author.context.new_page()
    second.goto(author.site.address + WRITE)
    author.write(text)
    author.press_submit()
    author.wait_for("You fooled the model")
    second.get_by_label("Your sentence").fill("Something else, in the second window.")
    second.get_by_role("button", name="Submit to the model").click()
    second.get_by_text("say first whether other people would agree").wait_for()
    assert second.get_by_text("Something else, in the second window.").is_visible()
    page.get_by_role("button", name="Yes, others would agree").click()
    author.wait_for("Example 1: stored")
    page.get_by_role("link", name="Instructions").click()
    author.wait_for("How to fool the model")
    page.go_back()
    author.wait_for("Fool the model")
    second.get_by_role("button", name="Yes, others would agree").click()
    second.get_by_role("heading", name="Example 1: stored").wait_for()
    author.write(f"It reads {author.target}, later on.")
    author.press_submit()
    author.wait_for("The model was not fooled")
    assert [attempt.text for attempt in author.attempts] == [
        text,
        f"It reads {author.attempts[1].target_label}, later on.",
    ]


def test_pasting_typing_and_time_are_counted(arrive: Arrive) -> None:
    author = arrive(permissions=["clipboard-read", "clipboard-write"])
    page, label = author.page, author.target
    pasted = f"Pasted, it reads {label}"
    page.evaluate("text => navigator.clipboard.writeText(text)", pasted)
    page.get_by_label("Your sentence").focus()
    page.keyboard.press("Control+V")
    wait_until(page, lambda: author.box == pasted)
    page.keyboard.type(" ok.")
    page.keyboard.press("Enter")
    author.wait_for("The model was not fooled")
    page.get_by_label("Your sentence").focus()
    page.keyboard.press("End")
    page.wait_for_timeout(200)
    page.keyboard.type("!")
    page.keyboard.press("Enter")
    author.wait_for_attempts_left(8)
    author.write("")
    author.write(f"Typed, it reads {label}.")
    page.keyboard.press("Enter")
    author.wait_for_attempts_left(7)
    first, edited, typed = author.attempts
    assert (first.pasted, edited.pasted, typed.pasted) == (len(pasted), len(pasted), 0)
    assert (first.keystrokes, edited.keystrokes) == (len(["Control", "V", *" ok."]), len(["End", "!"]))
    assert first.seconds is not None and edited.seconds is not None and 0.1 <= edited.seconds < 60


def test_no_page_has_a_violation_of_axe_or_is_wider_than_the_screen(arrive: Arrive) -> None:
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="pip install axe-playwright-python").Axe()
    # The pages' own policy forbids the scripts of axe.
    author = arrive(ready=False, bypass_csp=True)
    page, site = author.page, author.site

    def judge(what: str) -> None:
        page.wait_for_load_state()
        for width in (390, 1280):
            page.set_viewport_size({"width": width, "height": 800})
            assert page.evaluate("document.documentElement.scrollWidth") <= width, (what, width)
            for scheme in ("light", "dark"):
                page.emulate_media(color_scheme=scheme)
                results = axe.run(page)
                assert results.violations_count == 0, f"{what}, {width}, {scheme}\n{results.generate_report()}"

    author.look()
    judge("consent")
    page.get_by_label("I have read this").check()
    page.get_by_role("button", name="Agree and go on").click()
    page.get_by_label("A sentence").fill("A try.")
    page.get_by_role("button", name="Ask the model").click()
    judge("instructions")
    author.look()
    answer(page, machine="true", prompt="true")
    judge("questions")
    let_in_after_failing(site, author.worker_id)
    begin_in_arm(site.engine, author.worker_id, PROMPT_ARM, at=now())
    author.look()
    judge("writing from a prompt")
    author.write("x" * 600)
    author.press_submit()
    author.wait_for("Not sent")
    judge("refused")
    author.write(f"A long one that is not broken {'n' * 90} reads {author.target}.")
    author.press_submit()
    author.wait_for("The model was not fooled")
    judge("not fooled")
    author.write(f"It reads {author.fooling}, says axe.")
    author.press_submit()
    author.wait_for("You fooled the model")
    judge("fooled")
    page.get_by_role("button", name="Yes, others would agree").click()
    author.wait_for("Example 1: stored")
    judge("the next example")
    with writing(site.engine) as session:
        worker = session.get_one(Worker, author.worker_id)
        bar(session, worker, AUTHORING, CLAIMS_REFUTED, {}, now(), now() + LIFETIME)
    author.look()
    judge("barred")
    page.get_by_label("Your words").fill("They misread me.")
    page.get_by_role("button", name="Send").click()
    page.get_by_text("They misread me.").wait_for()
    judge("objected")
    assert author.complaints == []
    assert site.read(lambda session: session.exec(select(Bar.objection)).first()) == "They misread me."


def let_in_after_failing(site: Site, worker_id: int) -> None:
    """Let an author in who has failed the questions once."""
    from server.onboarding_pages import offer_of
    from workers.onboarding import grade

    with writing(site.engine) as session:
        quiz = offer_of(session, NUMBER).quiz
        right = {question.key: question.right for question in quiz.questions}
        grade(session, session.get_one(Worker, worker_id), quiz, 2, right, now())


def test_the_figures_stay_in_sight_while_the_page_scrolls(arrive: Arrive) -> None:
    author = arrive()
    for number in range(4):
        author.write(f"It reads {author.target}, {number}. {'And so on. ' * 30}")
        author.press_submit()
        author.wait_for_attempts_left(9 - number)
    for width in (390, 1280):
        author.page.set_viewport_size({"width": width, "height": 600})
        author.page.evaluate("scrollTo(0, document.documentElement.scrollHeight / 2)")
        author.page.wait_for_timeout(50)
        place = author.page.locator(".account dl").bounding_box()
        assert place is not None and 0 <= place["y"] and place["y"] + place["height"] <= 600, width


def test_the_real_model_answers_as_it_does_elsewhere(
    tmp_path_factory: pytest.TempPathFactory, tiny_encoder: object, browser: "Browser"
) -> None:
    folder = tmp_path_factory.mktemp("real")
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setenv("DYNAROUND_SECRET", SECRET)
        monkeypatch.setenv("DYNAROUND_THREADS", "1")
        workspace = create_workspace(folder / "bench")
        add_tiny_model(workspace, tiny_encoder)  # type: ignore[arg-type]
        spec = f"jsonl:{write_reviews(folder).reviews}"
        options = {"size": 0, "seed": 3, "prompts": 5, "authoring": {}}
        open_new_round(workspace, workspace.engine(), target="model-0", reviews=spec, options=options, who="a", now=now)
        app = create_app(Workspace(workspace.root))
    with writing(workspace.engine()) as session:
        worker = enlist(session, "P1", PERSON)
        worker_id = worker.id
        invitation = invite(session, "P1", SECRET, now(), 7)
    assert worker_id is not None
    let_in(app.extensions[ENGINE], worker_id, now())
    begin_in_arm(app.extensions[ENGINE], worker_id, PROMPT_ARM, at=now())
    context = browser.new_context()
    with listening(app) as address:
        page = context.new_page()
        page.goto(f"{address}/join#{invitation}")
        page.get_by_role("button", name="Join").click()
        page.goto(address + WRITE)
        text = "The soup was cold, and never again."
        page.get_by_label("Your sentence").fill(text)
        page.keyboard.press("Enter")
        page.locator("#result .probs").wait_for(timeout=30_000)
        shown = page.locator("#result li.answer").inner_text()
        percents = page.locator("#result .probs .figure").all_inner_texts()
    context.close()
    app.extensions[MODELS].close()
    with reading(workspace.engine()) as session:
        [attempt] = session.exec(select(Attempt)).all()
        assert session.get_one(AuthorSession, session.get_one(Writing, attempt.writing_id).session_id).arm == PROMPT_ARM
    model = TargetModel(workspace.models / "model-0", LABELS, threads=1)
    [prediction] = model.predict([text])
    assert prediction is not None and attempt.prediction == prediction.label and prediction.label in shown
    assert attempt.probs == pytest.approx(dict(prediction.probs), abs=1e-5)
    assert percents == [f"{prediction.probs[label]:.0%}" for label in LABELS]
    workspace.close()
