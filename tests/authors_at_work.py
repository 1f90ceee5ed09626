"""Real processes of authors, for tests: each line of the input forks one that works until it is done or killed.

`python -m tests.authors_at_work DATABASE_URL FOLDER`; every line is one JSON object with the arguments of a job, every
answer the number of its process. Loaded once and forked without an open connection, so that a process starts at once.
"""

import json
import os
import sys
import time
from datetime import datetime
from pathlib import Path
from random import Random

from dynaround.database import open_engine
from dynaround.errors import DynaroundError
from dynaround.tables import CONFIRMED, TAKEN_BACK
from rounds.attempts import submit
from tests.authored_round import NUMBER, FixedAnswer, answer_of, clock_at, making, other_than, say, sent


def note(file: Path, *words: object) -> None:
    """Append a line in one write, so that lines of several processes stay apart and outlive a kill."""
    line = os.open(file, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(line, (" ".join(map(str, words)) + "\n").encode())
    os.close(line)


def send_once(url: str, folder: Path, worker: int, token: str, text: str, at: str, go: str) -> None:
    """Wait for the file `go`, then send one text under one token; note the calls of the model and the attempt."""
    engine, now = open_engine(url), clock_at(datetime.fromisoformat(at))
    made = making(engine, worker, at=now())

    def ask(asked: str) -> FixedAnswer:
        note(folder / "calls", token)
        time.sleep(0.2)
        return answer_of(made.target_label)

    note(folder / "ready", token)
    while not (folder / go).exists():
        time.sleep(0.001)
    attempt = submit(engine, ask, NUMBER, worker, sent(made.id, text, token), now=now)
    note(folder / "answered", token, attempt.id)


def work(url: str, folder: Path, worker: int, seed: int, at: str) -> None:
    """Send text after text and say a word on every fool, noting before what is sent and afterwards what came back."""
    engine, now, random = open_engine(url), clock_at(datetime.fromisoformat(at)), Random(seed)
    for number in range(10_000):
        made = making(engine, worker, seed=seed, at=now())
        wrong = random.random() < 0.5
        answer = answer_of(other_than(made.target_label) if wrong else made.target_label)
        token, text = f"token-{seed:06d}-{number:06d}", f"Text {number} of run {seed}."

        def ask(asked: str, token: str = token, answer: FixedAnswer = answer) -> FixedAnswer:
            note(folder / "calls", token)
            time.sleep(random.random() * 0.004)
            return answer

        note(folder / "sent", token, made.id, text)
        attempt = submit(engine, ask, NUMBER, worker, sent(made.id, text, token), now=now)
        note(folder / "answered", token, attempt.id)
        if attempt.fooled:
            try:
                say(engine, attempt, random.choice([CONFIRMED, TAKEN_BACK]), at=now())
            except DynaroundError:
                # The take-backs are used up.
                say(engine, attempt, CONFIRMED, at=now())


JOBS = {"send_once": send_once, "work": work}


def main() -> None:
    """Fork a process for every line."""
    url, folder = sys.argv[1], Path(sys.argv[2])
    for line in sys.stdin:
        job = json.loads(line)
        child = os.fork()
        if child == 0:
            os.close(0)
            JOBS[job.pop("job")](url, folder, **job)
            os._exit(0)
        print(child, flush=True)
    while True:
        try:
            os.wait()
        except ChildProcessError:
            return


if __name__ == "__main__":
    main()
