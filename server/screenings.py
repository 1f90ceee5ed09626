"""Screening what pages have finished: one request of a process at a time does it, the others go on."""

from contextlib import suppress
from threading import Lock

from flask import current_app
from sqlalchemy import Engine

from dynaround.database import reading
from dynaround.errors import IllegalMove
from dynaround.screening_measures import ScreeningRule
from dynaround.tables import Round
from server.access import current_engine, current_time
from workers.screening import is_due, screen_round

SCREENINGS = "dynaround screenings"
"""Where an application keeps the `Screenings` of its process."""


class Screenings:
    """Keeps the requests of one process from screening the same round at once.

    While a round is judged, every page that is given in finds it due still; under load dozens judged the same answers
    and slowed all pages down.
    """

    def __init__(self) -> None:
        self._rounds: dict[int, _UnderWay] = {}

    def screen(self, engine: Engine, round_: Round, rule: ScreeningRule) -> None:
        """Screen a round where it is due; where another thread does so, return at once: that one looks again."""
        one = self._rounds.setdefault(round_.number, _UnderWay())
        one.asked = True
        # Whoever asks after the last look at `asked` finds the lock free.
        while one.asked and one.lock.acquire(blocking=False):
            try:
                one.asked = False
                _screen_once(engine, round_, rule)
            finally:
                one.lock.release()


class _UnderWay:
    def __init__(self) -> None:
        self.lock, self.asked = Lock(), False


def _screen_once(engine: Engine, round_: Round, rule: ScreeningRule) -> None:
    with reading(engine) as session:
        due = is_due(session, round_)
    if due:
        # Closed in this moment, it is screened no more.
        with suppress(IllegalMove):
            screen_round(engine, round_.number, rule, current_time())


def screen_if_due(round_: Round, rule: ScreeningRule) -> None:
    """Screen a round in which a batch became full; after the answers are stored, which nothing here can undo."""
    screenings: Screenings = current_app.extensions[SCREENINGS]
    screenings.screen(current_engine(), round_, rule)
