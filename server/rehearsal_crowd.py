"""A scripted crowd at the real pages: each worker reads forms from the HTML, answers, and perhaps misbehaves.

It knows no more than a browser would: what a page shows, and where a form says that it goes.
"""

import random
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from html.parser import HTMLParser
from typing import NamedTuple

from flask import Flask
from werkzeug.test import Client, TestResponse

from dynaround.task import Task
from server.access import VISIT
from workers.crowds import CrowdMix, scripted_label

WORKING, WAITING, GONE = "working", "waiting", "gone"
"""What a scripted worker does: has something to go on with, was told that there is nothing now, never comes back."""


BETWEEN_STEPS = timedelta(seconds=5)
"""How far the clock moves from one worker's step to the next one's."""


@dataclass
class Clock:
    """The time of a rehearsal: it moves when it is moved, so that nobody waits for a lease to end."""

    moment: datetime

    def __call__(self) -> datetime:
        """Return the moment."""
        return self.moment


class Planted(NamedTuple):
    """The label that a sentence of a rehearsal carries; a clear one is read alike by all who read."""

    label: str
    clear: bool


class Part(NamedTuple):
    """What one scripted worker is: the kind of `CrowdMix`, and how it misbehaves beside that.

    `leaves_after`: that many pages are given in and the next one never; None: stays. `twice`: every page is sent twice.
    `careful_first`: the sentences before the first page are answered with care, whatever the kind.
    """

    number: int
    kind: str
    careful_first: bool
    leaves_after: int | None
    twice: bool

    @property
    def name(self) -> str:
        """The platform id, which says what this is."""
        return f"scripted-{self.number + 1}"


class Stage(NamedTuple):
    """What the workers of a rehearsal share; `pool` has two threads, to send a page twice at once."""

    app: Flask
    address: str
    task: Task
    planted: Mapping[str, Planted]
    mix: CrowdMix
    seed: int
    pool: ThreadPoolExecutor


@dataclass
class Form:
    """A form of a page: where it goes, its hidden fields, the choices of each name, and the sentence before these."""

    action: str
    hidden: dict[str, str] = field(default_factory=dict)
    choices: dict[str, list[str]] = field(default_factory=dict)
    sentences: dict[str, str] = field(default_factory=dict)


class Reader(HTMLParser):
    """Reads the forms of a page."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.forms: list[Form] = []
        self._sentence: list[str] = []
        self._inside = False
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Keep forms, their fields, and where a sentence begins."""
        told = {name: value or "" for name, value in attrs}
        if tag == "form":
            self.forms.append(Form(told.get("action", "")))
        elif tag == "span" and told.get("class") == "sentence":
            self._sentence, self._inside = [], True
        elif tag == "input" and self.forms:
            form, name, value = self.forms[-1], told.get("name", ""), told.get("value", "")
            if told.get("type") == "hidden":
                form.hidden[name] = value
            else:
                form.choices.setdefault(name, []).append(value)
                form.sentences.setdefault(name, "".join(self._sentence))

    def handle_data(self, data: str) -> None:
        """Keep the text of a sentence."""
        if self._inside:
            self._sentence.append(data)

    def handle_endtag(self, tag: str) -> None:
        """End a sentence with its element."""
        if tag == "span":
            self._inside = False


class ScriptedWorker:
    """One worker of a rehearsal, and what the server acknowledged: labels by sentence, by the number of the page."""

    def __init__(self, stage: Stage, part: Part, token: str) -> None:
        self.part, self.state = part, WORKING
        self.acknowledged: dict[str, dict[str, str]] = {}
        self.sent_twice = 0
        self.refused: list[str] = []
        self._stage = stage
        self._form: Form | None = None
        client = stage.app.test_client()
        with client.session_transaction() as cookie:
            cookie[VISIT] = token
        self._client: Client = client

    def step(self) -> None:
        """Do the next thing: load the next page, or answer the form in front and see where that leads."""
        form, address = self._form, self._stage.address
        if form is None:
            self._arrive(self._client.get(address, follow_redirects=True))
        elif form.action == f"{address}/consent":
            self._send(form, {"agreed": "yes"})
        elif form.action == f"{address}/quiz":
            self._send(form, {question.key: question.right for question in self._stage.task.guide.validator_quiz})
        elif form.action == address:
            self._give_in(form)
        else:
            self._send(form, self._answers(form, "careful" if self.part.careful_first else self.part.kind))

    def _send(self, form: Form, answers: Mapping[str, str]) -> None:
        self._arrive(self._client.post(form.action, data={**form.hidden, **answers}, follow_redirects=True))

    def _give_in(self, form: Form) -> None:
        if self.part.leaves_after is not None and len(self.acknowledged) >= self.part.leaves_after:
            self.state = GONE
            return
        answers = self._answers(form, self.part.kind)
        sent = {**form.hidden, **answers}
        if not self.part.twice:
            response = self._client.post(form.action, data=sent)
        else:
            self.sent_twice += 1
            other = self._second_window()
            if self.sent_twice % 2:
                calls = [self._stage.pool.submit(one.post, form.action, data=sent) for one in (self._client, other)]
                response, _ = (call.result() for call in calls)
            else:
                response = self._client.post(form.action, data=sent)
                other.post(form.action, data=sent)
        if response.status_code != 303:
            self._arrive(response)
            return
        labels = {form.sentences[name]: label for name, label in answers.items() if name in form.sentences}
        self.acknowledged[form.hidden["page"]] = labels
        self._arrive(self._client.get(response.headers["Location"], follow_redirects=True))

    def _second_window(self) -> Client:
        other = self._stage.app.test_client()
        name = self._stage.app.config["SESSION_COOKIE_NAME"]
        cookie = self._client.get_cookie(name)
        assert cookie is not None
        other.set_cookie(name, cookie.value)
        return other

    def _arrive(self, response: TestResponse) -> None:
        """Take in the page that came."""
        ours = [form for form in Reader(response.text).forms if form.action.startswith(self._stage.address)]
        self._form = ours[0] if ours else None
        if response.request.path.endswith("/barred"):
            self.state = GONE
        elif response.status_code >= 400:
            self.refused.append(f"{response.request.path}: {response.status}")
            self._form, self.state = None, WAITING
        elif self._form is None and response.request.path == self._stage.address:
            self.state = WAITING
        else:
            self.state = WORKING

    def _answers(self, form: Form, kind: str) -> dict[str, str]:
        return {name: self._label(form.sentences[name], kind) for name in form.choices if name.endswith(".answer")}

    def _label(self, sentence: str, kind: str) -> str:
        stage, planted = self._stage, self._stage.planted[sentence]
        mix = _ALL_CLEAR if planted.clear else stage.mix
        return scripted_label(planted.label, stage.task.labels, kind, self.part.name, sentence, mix, stage.seed)


# A sentence whose answer is known was chosen for being plain.
_ALL_CLEAR = CrowdMix(ambiguity_limit=0)


def work_until_done(workers: Sequence[ScriptedWorker], clock: Clock, lease: timedelta, seed: int) -> None:
    """Let the workers act in a random order, each from page to page, until nobody is given a page any more.

    When all wait, time moves past the leases of those who left, and they ask once more.
    """
    draw = random.Random(seed)
    while True:
        before = sum(len(worker.acknowledged) for worker in workers)
        working = [worker for worker in workers if worker.state == WORKING]
        while working:
            place = draw.randrange(len(working))
            working[place].step()
            clock.moment += BETWEEN_STEPS
            if working[place].state != WORKING:
                working[place] = working[-1]
                working.pop()
        clock.moment += lease + BETWEEN_STEPS
        waiting = [worker for worker in workers if worker.state == WAITING]
        for worker in waiting:
            worker.step()
        if before == sum(len(worker.acknowledged) for worker in workers) and not any(
            worker.state == WORKING for worker in workers
        ):
            return
