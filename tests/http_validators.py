"""Validators at a real server, for tests and benchmarks: gunicorn on a round of plain sentences, and clients that never
pause. They know what they were told is stored, so that a database can be held against it.
"""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from html import unescape
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlencode

from sqlalchemy import Engine, insert
from sqlmodel import Session, col, func, select

from dynaround.database import reading, writing
from dynaround.labels import RESPONSES
from dynaround.settings import Workspace
from dynaround.tables import SILENT, CheckItem, Example, Page, Response, Seat, Uncounted
from dynaround.tasks import DEFAULT, get_task
from dynaround.text import text_key
from rounds.lifecycle import draft_round, open_round
from rounds.plan import make_plan
from server.access import VISIT
from server.app import create_app
from server.validate_view import validation_offer
from workers.accounts import account_of_invited
from workers.onboarding import consent, grade
from workers.roster import SCRIPTED, enlist
from workers.visits import open_visit

HOST, SECRET = "127.0.0.1", "a secret of a benchmark, that guards nothing"
VALIDATE = "/rounds/1/validate"
TASK = get_task(DEFAULT)
AT_ONCE = 5000
"""Examples that are stored by one statement."""


def text_of(number: int) -> str:
    """Return the text of an example."""
    return f"On day {number} the soup came late, and nobody at our table minded it much."


def check_text(number: int) -> str:
    """Return the text of a check item."""
    return f"Sentence {number} has an answer that is known."


def label_of(text: str) -> str:
    """Return what every validator answers to a sentence, so that nobody is removed for disagreeing."""
    return TASK.labels[zlib.crc32(text.encode()) % len(TASK.labels)]


def example_rows(round_id: int, first: int, last: int) -> list[dict[str, Any]]:
    """Return rows of examples by number; a fixed prediction stands in, since none of this is about a model."""
    prediction = TASK.model_labels[0]
    same = {"round_id": round_id, "task": TASK.name, "cell": "random", "prediction": prediction, "imported": False}
    same |= {"probs": {prediction: 1.0}, "truncated": False, "model_hash": "h", "precision": "float32"}
    return [
        {**same, "back_end": "torch", "number": number, "text": text_of(number), "text_key": text_key(text_of(number))}
        for number in range(first, last + 1)
    ]


def prepare(workspace: Workspace, *, examples: int, workers: int, checks: int = 0, **validation: Any) -> list[str]:
    """Open a round and let workers in, past all that comes before the first page; return their cookies."""
    engine, now = workspace.engine(), datetime.now(UTC)
    plan = make_plan(
        task=TASK.name,
        reviews="jsonl:none",
        reviews_sha256="0" * 64,
        size=0,
        seed=7,
        validation={"screening_items": 0, **validation},
    )
    with writing(engine) as session:
        round_ = draft_round(session, TASK, plan, "stand-in", "h")
        open_round(session, round_, "test", now)
        assert round_.id is not None
        for first in range(1, examples + 1, AT_ONCE):
            session.execute(insert(Example), example_rows(round_.id, first, min(first + AT_ONCE - 1, examples)))
        for text in map(check_text, range(checks)):
            known = {"text": text, "text_key": text_key(text), "label": label_of(text)}
            session.add(CheckItem(round_id=round_.id, task=TASK.name, use=SILENT, **known))
        quiz = validation_offer(session, round_.number).entry.quiz
        tokens = []
        for place in range(workers):
            worker = enlist(session, f"scripted-{place}", SCRIPTED)
            consent(session, worker, quiz.consent_version, now)
            grade(session, worker, quiz, 1, {question.key: question.right for question in quiz.questions}, now)
            account = account_of_invited(session, worker, now)
            tokens.append(open_visit(session, account, now, timedelta(hours=12)))
    workspace.settings = workspace.settings.model_copy(update={"secret": SECRET})
    app = create_app(workspace)
    signer = app.session_interface.get_signing_serializer(app)  # type: ignore[attr-defined]
    return [signer.dumps({VISIT: token}) for token in tokens]


class Served(NamedTuple):
    """A running server: its port, and its first process, whose children answer."""

    port: int
    process: subprocess.Popen[bytes]

    def children(self) -> list[int]:
        """Return the processes that answer at this moment."""
        listed = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children")
        return [int(child) for child in listed.read_text(encoding="ascii").split()]


@contextmanager
def serving(
    workspace: Workspace, *, processes: int, threads: int, application: str = "server.wsgi:app()"
) -> Iterator[Served]:
    """Serve a workspace by gunicorn until the end of the block."""
    with socket.create_server((HOST, 0)) as free:
        port = free.getsockname()[1]
    environment = os.environ | {
        "DYNAROUND_WORKSPACE": str(workspace.root),
        "DYNAROUND_SECRET": SECRET,
        "DYNAROUND_HOSTS": json.dumps([HOST]),
    }
    command = [sys.executable, "-m", "gunicorn", "-w", str(processes), "--threads", str(threads), "--keep-alive", "60"]
    command += ["-b", f"{HOST}:{port}", "--log-level", "critical", application]
    process = subprocess.Popen(command, env=environment, stderr=subprocess.DEVNULL)
    try:
        wait_for(port)
        yield Served(port, process)
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def wait_for(port: int) -> None:
    """Return when a server answers."""
    end = time.monotonic() + 60
    while True:
        connection = HTTPConnection(HOST, port, timeout=60)
        try:
            connection.request("GET", "/log-in")
            connection.getresponse().read()
            return
        except (OSError, HTTPException):
            if time.monotonic() > end:
                raise
            time.sleep(0.1)
        finally:
            connection.close()


_TOKEN = re.compile(r'name="csrf_token"[^>]* value="([^"]*)"')
_PAGE = re.compile(r'name="page" value="([0-9]+)"')
_SENTENCE = re.compile(r'id="sentence-([0-9]+)".*?class="sentence"[^>]*>([^<]*)<', re.DOTALL)


@dataclass
class Validator:
    """Somebody at one connection who gives in page after page; `told` are labels by sentence, by page, as acknowledged.

    `shown` are all pages ever shown. Seconds are of each page that was fetched, and of each that was given in.
    """

    port: int
    cookie: str
    told: dict[int, dict[str, str]] = field(default_factory=dict)
    shown: set[int] = field(default_factory=set)
    fetching: list[tuple[float, float]] = field(default_factory=list)
    giving_in: list[tuple[float, float]] = field(default_factory=list)
    broken_off: int = 0
    failed: list[str] = field(default_factory=list)
    token: str = ""
    _labels: dict[str, str] = field(default_factory=dict)
    _connection: HTTPConnection | None = None

    def work(self, until: Callable[[], bool]) -> None:
        """Go from page to page until told to stop, or until there is nothing; a lost connection is opened anew."""
        while not until():
            try:
                if not self._one_page():
                    break
            except (OSError, HTTPException):
                # Killed at some moment: nothing was acknowledged, and the page may be there or not.
                self.broken_off += 1
                self.close()
                time.sleep(0.05)
        self.close()

    def _one_page(self) -> bool:
        """Fetch a page and give it in; False where there is none."""
        page = self._timed(self.fetching, "GET", VALIDATE)[1]
        found = _PAGE.search(page)
        if found is None:
            return False
        number, form = int(found[1]), self._answered(page)
        self.shown.add(number)
        status, text = self._timed(self.giving_in, "POST", VALIDATE, urlencode({"page": found[1], **form}))
        if status == 303:
            self.told[number] = self._labels
        else:
            self.failed.append(f"{status}: {text[:200]}")
        return True

    def _answered(self, page: str) -> dict[str, str]:
        token = _TOKEN.search(page)
        assert token is not None, page[:500]
        self.token = token[1]
        sentences = {position: unescape(text) for position, text in _SENTENCE.findall(page)}
        self._labels = {text: label_of(text) for text in sentences.values()}
        answers = {f"{position}.answer": label_of(text) for position, text in sentences.items()}
        return {"csrf_token": self.token, "seconds": "", "comment": "", **answers}

    def _timed(
        self, seconds: list[tuple[float, float]], method: str, address: str, body: str | None = None
    ) -> tuple[int, str]:
        start = time.monotonic()
        answer = self.send(method, address, body)
        seconds.append((start, time.monotonic() - start))
        return answer

    def send(self, method: str, address: str, body: str | None = None) -> tuple[int, str]:
        """Send a request over the one connection; return status and text."""
        if self._connection is None:
            self._connection = HTTPConnection(HOST, self.port, timeout=60)
        headers = {"Cookie": f"dynaround={self.cookie}"}
        if body is not None:
            headers["Content-Type"] = "application/x-www-form-urlencoded"
        self._connection.request(method, address, body, headers)
        answer = self._connection.getresponse()
        text = answer.read().decode()
        for cookie in answer.headers.get_all("Set-Cookie") or []:
            self.cookie = cookie.partition(";")[0].partition("=")[2]
        return answer.status, text

    def close(self) -> None:
        """End the connection."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None


def all_work(validators: Sequence[Validator], until: Callable[[], bool]) -> list[threading.Thread]:
    """Let validators work at once, each in a thread of its own."""
    threads = [threading.Thread(target=validator.work, args=(until,)) for validator in validators]
    for thread in threads:
        thread.start()
    return threads


def faults(engine: Engine, validators: Sequence[Validator], worker_ids: Sequence[int]) -> list[str]:
    """Say what was lost, doubled or served to the wrong person; `worker_ids` are those of the validators, in order."""
    with reading(engine) as session:
        stored = _stored(session)
        owners = dict(iter(session.exec(select(Page.id, Page.worker_id)).all()))
        given_in = set(session.exec(select(Page.id).where(col(Page.given_in).is_not(None))))
        counted = session.exec(
            select(Seat.example_id, Seat.worker_id, Response.worker_id).join(
                Response, col(Response.id) == col(Seat.response_id)
            )
        ).all()
        responses = session.exec(select(Response.example_id, Response.worker_id)).all()
        uncounted = session.exec(select(func.count(col(Uncounted.response_id)))).one()
    found: Counter[str] = Counter()
    for validator, worker_id in zip(validators, worker_ids, strict=True):
        for page_id, labels in validator.told.items():
            mine = {text: label for text, label in labels.items() if not text.startswith("Sentence ")}
            found["acknowledged pages that are not given in"] += page_id not in given_in
            found["acknowledged pages whose responses differ"] += stored.get(page_id) != mine
        found["pages shown to another worker"] += sum(owners.get(page_id) != worker_id for page_id in validator.shown)
        found["answers of the server that were errors"] += len(validator.failed)
    places = Counter(example_id for example_id, _, _ in counted)
    found["examples with more responses that count than places"] = sum(count > RESPONSES for count in places.values())
    found["places with another worker's response"] = sum(seated != gave for _, seated, gave in counted)
    found["responses doubled"] = len(responses) - len(set(responses))
    found["responses neither counted nor uncounted"] = len(responses) - len(counted) - uncounted
    return [f"{count} {what}" for what, count in found.items() if count]


def _stored(session: Session) -> Mapping[int, dict[str, str]]:
    found: dict[int, dict[str, str]] = {}
    query = select(Response.page_id, Example.text, Response.label).join(
        Example, col(Example.id) == col(Response.example_id)
    )
    for page_id, text, label in session.exec(query):
        found.setdefault(page_id, {})[text] = label
    return found
