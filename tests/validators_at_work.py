"""Real processes of validators, for tests: each line of the input forks one that works until it is done or killed.

`python -m tests.validators_at_work DATABASE_URL FOLDER`; every line is a JSON list of worker ids, every answer
the number of their process. Loaded once and forked without an open connection, so that a process starts at once.
"""

import json
import os
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path

from sqlalchemy import Engine

from dynaround.database import open_engine
from tests.validators import ask, say
from workers.places import Nothing
from workers.reasons import HELD_BY_OTHERS


def note(file: Path, *words: object) -> None:
    """Append a line in one write, so that lines of several processes stay apart and outlive a kill."""
    line = os.open(file, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(line, (" ".join(map(str, words)) + "\n").encode())
    os.close(line)


def answer_all(engine: Engine, worker_id: int, folder: Path | None = None) -> str:
    """Let a worker answer page after page, waiting while others hold the rest; return why there is nothing left.

    With a folder every page is noted before it is given in (`sent`) and afterwards (`acknowledged`).
    """
    while True:
        page = ask(engine, worker_id)
        if isinstance(page, Nothing):
            if page.reason != HELD_BY_OTHERS:
                return page.reason
            time.sleep(0.02)
            continue
        if folder is not None:
            note(folder / "sent", page.page_id)
        say(engine, worker_id, page)
        if folder is not None:
            note(folder / "acknowledged", page.page_id)


def work(url: str, folder: Path, workers: Sequence[int]) -> None:
    """Wait for the file `go`, then let workers answer all there is, each in a thread of its own."""
    engine = open_engine(url)
    note(folder / "ready", os.getpid())
    while not (folder / "go").exists():
        time.sleep(0.001)
    threads = [threading.Thread(target=answer_all, args=(engine, worker, folder)) for worker in workers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    note(folder / "done", os.getpid())


def main() -> None:
    """Fork a process for every line."""
    url, folder = sys.argv[1], Path(sys.argv[2])
    for line in sys.stdin:
        workers = json.loads(line)
        child = os.fork()
        if child == 0:
            os.close(0)
            work(url, folder, workers)
            os._exit(0)
        print(child, flush=True)
    while True:
        try:
            os.wait()
        except ChildProcessError:
            return


if __name__ == "__main__":
    main()
