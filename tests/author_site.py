"""A served round that people write in, for tests: authors without script, and what stands in for the live models."""

from collections.abc import Mapping
from datetime import datetime
from html.parser import HTMLParser
from typing import Any

from flask import Flask
from flask.testing import FlaskClient
from sqlalchemy import Engine
from werkzeug.test import TestResponse

from dynaround.database import reading, writing
from dynaround.errors import Unavailable
from dynaround.settings import Workspace
from dynaround.tables import Round, Worker, Writing
from rounds.lifecycle import find_round
from server.access import CLOCK, ENGINE, VISIT
from server.app import create_app
from server.live_model import MODELS
from server.onboarding_pages import offer_of
from tests.authored_round import NUMBER, FixedAnswer, FixedModel
from tests.site import LIFETIME, Clock
from workers.accounts import account_of_invited
from workers.onboarding import consent, grade
from workers.visits import open_visit

WRITE = f"/rounds/{NUMBER}/write"


class FixedModels(FixedModel):
    """Stands in the place of the live models of a server; with a `problem` it gives no answer.

    `fixed` is its answer to whatever it is asked.
    """

    problem: str | None = None
    fixed: FixedAnswer | None = None

    def for_round(self, round_: Round, labels: object) -> "FixedModels":
        return self

    def warm(self) -> None:
        pass

    def close(self) -> None:
        pass

    def ask(self, text: str) -> FixedAnswer:
        if self.problem is not None:
            raise Unavailable(self.problem)
        return self.fixed or super().ask(text)


def serve(workspace: Workspace, models: FixedModels | None, *, demo: bool = False) -> Flask:
    """Make the application of a workspace, with a clock that stands; without `models` it has its own live models."""
    app = create_app(workspace, clock=Clock(), demo=demo)
    if models is not None:
        app.extensions[MODELS] = models
    return app


def let_in(engine: Engine, worker_id: int, at: datetime) -> None:
    """Let a worker consent and answer all questions right."""
    with writing(engine) as session:
        worker, quiz = session.get_one(Worker, worker_id), offer_of(session, NUMBER).quiz
        consent(session, worker, quiz.version, at)
        grade(session, worker, quiz, 1, {question.key: question.right for question in quiz.questions}, at)


class Page(HTMLParser):
    """What a page holds: its forms by address, with their fields as a browser would send them, and its ids."""

    def __init__(self, text: str):
        super().__init__()
        self.text = text
        self.forms: dict[str, dict[str, str]] = {}
        self.headings: list[int] = []
        self._form: dict[str, str] = {}
        self._box: str | None = None
        self.feed(text)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        found = dict(attributes)
        if tag == "form":
            self._form = self.forms.setdefault(found.get("action") or "", {})
        elif tag == "input" and found.get("name"):
            chosen = found.get("type") not in ("radio", "checkbox") or "checked" in found
            if chosen:
                self._form[str(found["name"])] = found.get("value") or ""
        elif tag == "textarea":
            self._box = found.get("name") or ""
            self._form[self._box] = ""
        elif tag in ("h1", "h2", "h3"):
            self.headings.append(int(tag[1]))

    def handle_endtag(self, tag: str) -> None:
        if tag == "textarea":
            self._box = None

    def handle_data(self, data: str) -> None:
        if self._box is not None:
            self._form[self._box] += data.removeprefix("\n")


class Author:
    """An author in a browser without script: looks at pages, and sends the forms that stand on them."""

    def __init__(self, app: Flask, worker_id: int):
        self.app, self.worker_id = app, worker_id
        self.page = Page("")
        self.client = app.test_client()
        with writing(app.extensions[ENGINE]) as database:
            now = app.extensions[CLOCK]()
            account = account_of_invited(database, database.get_one(Worker, worker_id), now)
            token = open_visit(database, account, now, LIFETIME)
        with self.client.session_transaction() as session:
            session[VISIT] = token

    def another_window(self) -> FlaskClient:
        """Return a further client with the cookie that this one has."""
        window = self.app.test_client()
        with self.client.session_transaction() as mine, window.session_transaction() as its:
            its.update(mine)
        return window

    def look(self, address: str = WRITE) -> TestResponse:
        """Open an address, and whatever it leads to."""
        return self._see(self.client.get(address, follow_redirects=True))

    def form(self, ending: str) -> tuple[str, dict[str, str]]:
        """Return the address and the fields of the form on the page whose address ends so."""
        [found] = [(address, dict(form)) for address, form in self.page.forms.items() if address.endswith(ending)]
        return found

    def send(self, ending: str, follow: bool = True, **changed: str) -> TestResponse:
        """Send a form of the page with some fields changed; and see what comes of it."""
        address, form = self.form(ending)
        return self._see(self.client.post(address, data={**form, **changed}, follow_redirects=follow))

    def submit(self, text: str, **changed: str) -> TestResponse:
        """Submit a text on the writing page."""
        return self.send("/attempts", text=text, **changed)

    def _see(self, answer: TestResponse) -> TestResponse:
        self.page = Page(answer.text)
        return answer

    @property
    def writing(self) -> Writing:
        """The example in the making that stands on the page."""
        with reading(self.app.extensions[ENGINE]) as session:
            return session.get_one(Writing, int(self.form("/next")[1]["writing"]))


def change_plan(engine: Engine, **changed: Any) -> None:
    """Change how people write in the round, as no launcher could."""
    with writing(engine) as session:
        round_ = find_round(session, NUMBER)
        plan: Mapping[str, Any] = round_.plan
        round_.plan = {**plan, "authoring": {**plan["authoring"], **changed}}
        session.add(round_)
