"""Pages that only compute take turns within a process."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from flask import current_app

TURN = "dynaround turn"
"""Where an application keeps the lock of its process."""


@contextmanager
def page_turn() -> Iterator[None]:
    """Let one thread of a process at a time make a page; the others read requests and send answers meanwhile.

    Threads that compute at once hand the interpreter to and fro at every statement to the database, and whoever writes
    keeps all other writers waiting for as long: under load a page cost twice the processor time (docs/log.md). Not for
    pages that wait for a model or for another request, nor for long work: nobody could go on meanwhile. What was sent
    has been read before, since the token of the form is looked at first.
    """
    turn: threading.Lock = current_app.extensions[TURN]
    with turn:
        yield
