"""Pages that only compute take turns within a process."""

import threading
from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

from flask import current_app

TURN = "dynaround turn"
"""Where an application keeps the lock of its process."""

Given = ParamSpec("Given")
Result = TypeVar("Result")


def in_turn(view: Callable[Given, Result]) -> Callable[Given, Result]:
    """Let one thread of a process at a time make a page; the others read requests and send answers meanwhile.

    Threads that compute at once hand the interpreter to and fro at every statement to the database, and whoever writes
    keeps all other writers waiting for as long: under load a page cost twice the processor time (docs/log.md). Not for
    pages that wait for a model or for another request: nobody could go on meanwhile.
    """

    @wraps(view)
    def alone(*args: Given.args, **kwargs: Given.kwargs) -> Result:
        turn: threading.Lock = current_app.extensions[TURN]
        with turn:
            return view(*args, **kwargs)

    return alone
