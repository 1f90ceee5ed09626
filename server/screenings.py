"""Screening what pages have finished: one request of a process at a time does it, the others go on."""

from collections.abc import Callable, Hashable
from contextlib import suppress
from threading import Lock

from flask import current_app

from dynaround.errors import IllegalMove
from dynaround.screening_measures import ScreeningRule
from dynaround.tables import Round
from server.access import current_engine, current_time
from workers.screening import screen_due

SCREENINGS = "dynaround screenings"
"""Where an application keeps the `OneAtATime` of its process."""


class OneAtATime:
    """Does work that many threads want done once for all of them, and once more for those who came meanwhile."""

    def __init__(self) -> None:
        self._wanted: dict[Hashable, _Wanted] = {}

    def do(self, key: Hashable, work: Callable[[], None]) -> None:
        """Do what `key` names; where another thread does it, return at once: that one then does it once more.

        Raises what the work raised last, after all that is wanted was done.
        """
        one, failure = self._wanted.setdefault(key, _Wanted()), None
        one.again = True
        # Whoever comes after the last look at `again` finds the lock free.
        while one.again and one.lock.acquire(blocking=False):
            try:
                one.again = False
                work()
            except Exception as error:
                # Not raised yet: whoever came meanwhile counts on it being done once more.
                failure = error
            finally:
                one.lock.release()
        if failure is not None:
            raise failure


class _Wanted:
    def __init__(self) -> None:
        self.lock, self.again = Lock(), False


def screen_if_due(round_: Round, rule: ScreeningRule) -> None:
    """Screen a round in which a batch became full, or leave it to a request that does so already.

    After the answers are stored, which nothing here can undo. As long as a round is judged, every page that is given in
    finds it due; dozens that all judge slow all pages down.
    """
    engine = current_engine()

    def screen() -> None:
        # Closed in this moment, it is screened no more.
        with suppress(IllegalMove):
            screen_due(engine, round_.number, rule, current_time())

    screenings: OneAtATime = current_app.extensions[SCREENINGS]
    screenings.do(round_.number, screen)
