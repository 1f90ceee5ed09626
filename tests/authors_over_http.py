"""Authors over HTTP against several processes, for tests: the server that they run, and what each author does."""

import os
import re
import subprocess
import sys
import time
from collections.abc import Mapping
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from random import Random
from typing import NamedTuple, Self
from urllib.parse import urlencode

from flask import Flask

from dynaround.tables import CONFIRMED, TAKEN_BACK
from server import wsgi
from server.live_model import MODELS
from tests.author_site import WRITE, FixedModels, Page
from tests.authored_round import LABELS, FixedAnswer, answer_of
from tests.authors_at_work import note
from tests.site import PASSWORD

CALLS = "DYNAROUND_TEST_CALLS"
HOST = "127.0.0.1"
THREADS = 4
"""Requests that one process works on at once."""
WORDS = {"confirm": CONFIRMED, "take-back": TAKEN_BACK}


class NotedModels(FixedModels):
    """Answers by the length of a text, after a moment, and notes each call with the process that it was made in."""

    def __init__(self, calls: Path):
        super().__init__()
        self._calls = calls

    def ask(self, text: str) -> FixedAnswer:
        note(self._calls, os.getpid(), text)
        time.sleep(0.005)
        return answer_of(LABELS[len(text) % len(LABELS)])


def app() -> Flask:
    """Make the application of one process."""
    made = wsgi.app()
    made.extensions[MODELS] = NotedModels(Path(os.environ[CALLS]))
    return made


class Gunicorn:
    """A server of three processes, as somebody who collects from people runs it."""

    def __init__(self, workspace: Path, calls: Path, log: Path):
        command = [sys.executable, "-m", "gunicorn", "-w", "3", "--threads", str(THREADS), "-b", f"{HOST}:0"]
        command += ["--no-control-socket", "--graceful-timeout", "5", "tests.authors_over_http:app()"]
        settings = {"DYNAROUND_WORKSPACE": str(workspace), "DYNAROUND_HOSTS": f'["{HOST}"]', CALLS: str(calls)}
        with log.open("w") as errors:
            self._process = subprocess.Popen(command, env=os.environ | settings, stderr=errors)
        deadline = time.monotonic() + 60
        while (found := re.search(r"Listening at: http://127\.0\.0\.1:(\d+)", log.read_text())) is None:
            assert self._process.poll() is None and time.monotonic() < deadline, log.read_text()
            time.sleep(0.05)
        self.port = int(found[1])

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.terminate()
        self._process.wait(timeout=60)


class Answer(NamedTuple):
    """What came back: status, where it leads, and the page."""

    status: int
    location: str
    text: str


class Acknowledged(NamedTuple):
    """What an author was told is stored: texts by the token of their form, and attempts by what was said of them."""

    texts: dict[str, str]
    said: dict[int, str]
    earned: str


class BusyAuthor:
    """An author with a browser of its own, who never pauses, and whose connection sends some forms twice."""

    def __init__(self, port: int, name: str, seed: int):
        self._port, self._name, self._seed, self._random = port, name, seed, Random(seed)
        self._cookie = ""

    def work(self, submissions: int) -> Acknowledged:
        """Submit so many texts, saying a word on each that fools the model; return what was acknowledged."""
        texts, said = dict[str, str](), dict[int, str]()
        page = self._log_in()
        for number in range(submissions):
            address, form = _form(page, "/attempts")
            text = f"Text {number} of author {self._seed} {'is here ' * self._random.randrange(4)}now."
            answer = self._insist(address, form | {"text": text})
            assert (answer.status, answer.location) == (303, WRITE), answer.text
            texts[form["token"]] = text
            page = self._page()
            if "You fooled the model" in page.text:
                choices = [address for address in page.forms if address.endswith(("/confirm", "/take-back"))]
                chosen = self._random.choice(choices)
                self._insist(chosen, page.forms[chosen])
                said[int(chosen.split("/")[-2])] = WORDS[chosen.rpartition("/")[2]]
            elif self._random.random() < 0.2:
                self._insist(*_form(page, "/next"))
            page = self._page()
        earned = re.search(r"<dt>earned</dt><dd>([^<]+)</dd>", page.text)
        assert earned is not None
        return Acknowledged(texts, said, earned[1])

    def _log_in(self) -> Page:
        page = Page(self._ask("/log-in").text)
        answer = self._ask("/log-in", page.forms["/log-in"] | {"name": self._name, "password": PASSWORD})
        assert answer.status == 303, answer.text
        return self._page()

    def _page(self) -> Page:
        answer = self._ask(WRITE)
        assert answer.status == 200, answer.text
        return Page(answer.text)

    def _insist(self, address: str, form: Mapping[str, str]) -> Answer:
        """Send a form until it is answered; every third time it comes once more."""
        answers = [self._ask(address, form) for _ in range(1 + (self._random.random() < 1 / 3))]
        while answers[-1].status == 409 and "being sent already" in answers[-1].text:
            answers.append(self._ask(address, form))
        return answers[-1]

    def _ask(self, address: str, form: Mapping[str, str] | None = None) -> Answer:
        while True:
            try:
                return self._ask_once(address, form)
            except (HTTPException, ConnectionError):
                # The process was killed meanwhile: the same form goes to another one.
                time.sleep(0.05)

    def _ask_once(self, address: str, form: Mapping[str, str] | None) -> Answer:
        connection = HTTPConnection(HOST, self._port, timeout=60)
        headers = {"Cookie": self._cookie, "Content-Type": "application/x-www-form-urlencoded"}
        body = None if form is None else urlencode(form)
        connection.request("GET" if form is None else "POST", address, body, headers)
        answer = connection.getresponse()
        text = answer.read().decode()
        self._cookie = (answer.getheader("Set-Cookie") or self._cookie).partition(";")[0]
        connection.close()
        return Answer(answer.status, answer.getheader("Location", ""), text)


def _form(page: Page, ending: str) -> tuple[str, dict[str, str]]:
    [found] = [(address, dict(form)) for address, form in page.forms.items() if address.endswith(ending)]
    return found
