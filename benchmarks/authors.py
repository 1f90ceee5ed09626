"""Authors that never pause, as one process: python -m benchmarks.authors PORT AUTHORS SERVER [--practice].

Each has an account and a session of its own and does over one connection what a browser does: it posts the form and
loads the page that follows. What they saw is printed as JSON; `benchmarks.authoring` runs this and tells of it.
"""

import argparse
import json
import os
import re
import sys
import threading
import time
from dataclasses import dataclass, field
from http.client import HTTPConnection
from itertools import chain
from pathlib import Path
from random import Random
from typing import Any
from urllib.parse import urlencode

from dynaround.mixture import mix
from dynaround.tasks.sentiment import SENTIMENT

AUTHORS = 16
WARM_UP, MEASURED = 3.0, 12.0
"""Seconds before and while it is measured."""
HOST, PASSWORD = "127.0.0.1", "a password of a benchmark"
WRITE, ATTEMPTS = "/rounds/1/write", "/rounds/1/attempts"
INSTRUCTIONS, PRACTICE = "/rounds/1/instructions", "/rounds/1/practice"
LABELLED = f"sst:{Path(__file__).resolve().parents[2] / 'shared' / 'data' / 'sst'}"


def author_name(place: int) -> str:
    """Return the name of an account."""
    return f"author {place}"


class Browser:
    """As much of a browser as an author needs: one connection that stays open, cookies, forms."""

    def __init__(self, port: int):
        self._connection = HTTPConnection(HOST, port, timeout=60)
        self._cookies: dict[str, str] = {}
        self.page = ""

    def get(self, address: str) -> None:
        """Load a page."""
        while address:
            address = self._send("GET", address, None)[1]

    def post(self, address: str, **form: str) -> tuple[int, str]:
        """Send the form of the page that was loaded last; return the status and the address to go on to."""
        return self._send("POST", address, urlencode({"csrf_token": self.value("csrf_token"), **form}))

    def follow(self, address: str, **form: str) -> None:
        """Send a form and load the page that it leads to."""
        self.get(self.post(address, **form)[1])

    def value(self, name: str) -> str:
        """Return what a form of the page carries under a name."""
        return self.found(rf'name="{name}" value="([^"]*)"')

    def found(self, pattern: str) -> str:
        """Return what the page has in the place of the brackets of a pattern, or nothing."""
        match = re.search(pattern, self.page, re.DOTALL)
        return match[1] if match else ""

    def _send(self, method: str, address: str, body: str | None) -> tuple[int, str]:
        headers = {"Cookie": "; ".join(f"{name}={value}" for name, value in self._cookies.items())}
        if body is not None:
            headers["Content-Type"] = "application/x-www-form-urlencoded"
        self._connection.request(method, address, body, headers)
        answer = self._connection.getresponse()
        page = answer.read().decode()
        for cookie in answer.headers.get_all("Set-Cookie") or []:
            name, _, value = cookie.partition(";")[0].partition("=")
            self._cookies[name] = value
        if answer.status == 303:
            return 303, answer.headers["Location"]
        self.page = page
        return answer.status, ""


@dataclass
class Record:
    """What an author saw: seconds of each call that was answered, the same with the page after it, and what was not."""

    calls: list[float] = field(default_factory=list)
    turns: list[float] = field(default_factory=list)
    refused: int = 0
    failed: int = 0

    def add(self, status: int, start: float, answered: float, shown: float) -> None:
        """Add one call by its status and moments."""
        if status in (200, 303):
            self.calls.append(answered - start)
            self.turns.append(shown - start)
        elif status == 400:
            self.refused += 1
        else:
            self.failed += 1


class Author:
    """Somebody who joins, and then sends sentence after sentence, each for the label that it has."""

    def __init__(self, port: int, place: int, sentences: dict[str, list[str]], practice: bool):
        self._browser = Browser(port)
        self._sentences = {label: iter(texts[place::AUTHORS]) for label, texts in sentences.items()}
        self.record = Record()
        browser = self._browser
        browser.get("/log-in")
        browser.follow("/log-in", name=author_name(place), password=PASSWORD)
        browser.get(WRITE)
        browser.follow("/rounds/1/consent", agreed="yes")
        # Practice ends with the questions.
        if not practice:
            browser.get("/rounds/1/quiz")
            right = {question.key: question.right for question in SENTIMENT.guide.author_quiz}
            browser.follow("/rounds/1/quiz", **{"try": "1"}, **right)

    def work(self, begin: float, end: float, practice: bool) -> None:
        """Send sentences until `end`; what is sent after `begin` is recorded (both on the monotonic clock)."""
        browser = self._browser
        browser.get(INSTRUCTIONS if practice else WRITE)
        while time.monotonic() < end:
            confirming = browser.found(r'action="([^"]*/confirm)"')
            if confirming:
                browser.follow(confirming)
                continue
            address, form = self._practice() if practice else self._attempt()
            start = time.monotonic()
            status, following = browser.post(address, **form)
            answered = time.monotonic()
            if following:
                browser.get(following)
            if start >= begin:
                self.record.add(status, start, answered, time.monotonic())

    def _attempt(self) -> tuple[str, dict[str, str]]:
        browser = self._browser
        text = next(self._sentences[browser.found('<h2 id="target">.*?<strong>([^<]+)')])
        return ATTEMPTS, {"token": browser.value("token"), "writing": browser.value("writing"), "text": text}

    def _practice(self) -> tuple[str, dict[str, str]]:
        return PRACTICE, {"text": next(chain.from_iterable(self._sentences.values()))}


def processor_seconds(pid: int) -> float:
    """Return the processor time that the children of a process have used."""
    ticks = 0
    for child in Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii").split():
        # The name of the program, which may hold blanks, ends with the bracket.
        fields = Path(f"/proc/{child}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
        ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")


def write_many(port: int, count: int, server: int, practice: bool) -> dict[str, Any]:
    """Let authors write at once, each in a thread, and return what they saw and what the server used meanwhile."""
    sentences = sentences_by_label()
    authors = [Author(port, place, sentences, practice) for place in range(count)]
    begin = time.monotonic() + WARM_UP
    threads = [threading.Thread(target=author.work, args=(begin, begin + MEASURED, practice)) for author in authors]
    for thread in threads:
        thread.start()
    time.sleep(WARM_UP)
    used = processor_seconds(server)
    for thread in threads:
        thread.join()
    used = processor_seconds(server) - used
    records = [author.record for author in authors]
    return {
        "calls": [seconds for record in records for seconds in record.calls],
        "turns": [seconds for record in records for seconds in record.turns],
        "refused": sum(record.refused for record in records),
        "failed": sum(record.failed for record in records),
        "processor": used,
    }


def sentences_by_label() -> dict[str, list[str]]:
    """Return the sentences of SST by label, in an order of no meaning."""
    rows = mix([LABELLED], SENTIMENT, on_reject=lambda spec, rejected: None).rows
    mixed = Random(1).sample(rows, len(rows))
    return {label: [row.text for row in mixed if row.shares[0][0] == label] for label in SENTIMENT.model_labels}


def main() -> None:
    """Write, and print what was seen."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("port", type=int)
    parser.add_argument("authors", type=int)
    parser.add_argument("server", type=int, help="id of the server's first process, whose children are measured")
    parser.add_argument("--practice", action="store_true", help="send practice texts, which are never stored")
    given = parser.parse_args()
    json.dump(write_many(given.port, given.authors, given.server, given.practice), sys.stdout)


if __name__ == "__main__":
    main()
