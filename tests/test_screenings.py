"""A round is screened by one request of a process at a time, and by none too few."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from sqlmodel import col, select

from dynaround.database import reading
from dynaround.screening_measures import ScreeningRule
from dynaround.settings import Workspace
from dynaround.tables import Batch, Event
from server.app import create_app
from server.screenings import SCREENINGS, OneAtATime, screen_if_due
from tests.site import SECRET, Clock
from tests.validate_site import Validator, add_validated_round, admit
from workers.judging import SCREENED
from workers.screening import find_round, is_due

MANY = 20


def test_who_comes_meanwhile_returns_and_it_is_done_once_more() -> None:
    one, begun, go_on, done = OneAtATime(), threading.Event(), threading.Event(), []

    def work() -> None:
        begun.set()
        assert go_on.wait(10)
        done.append(threading.get_ident())

    with ThreadPoolExecutor(MANY) as threads:
        first = threads.submit(one.do, "round", work)
        assert begun.wait(10)
        for other in [threads.submit(one.do, "round", work) for _ in range(MANY - 1)]:
            other.result(10)
        assert done == [] and not first.done()
        go_on.set()
        first.result(10)
    assert len(done) == 2 and len(set(done)) == 1


def test_other_work_does_not_wait() -> None:
    one, done = OneAtATime(), []
    one.do("round", lambda: one.do("another", lambda: done.append("another")))
    assert done == ["another"]


def test_a_failure_is_raised_after_what_others_wanted_is_done() -> None:
    one, done = OneAtATime(), []

    def work() -> None:
        done.append("begun")
        if len(done) == 1:
            one.do("round", work)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        one.do("round", work)
    assert len(done) == 2
    one.do("round", work)
    assert len(done) == 3


def test_whoever_asks_last_is_heard() -> None:
    one, lock, asked, seen = OneAtATime(), threading.Lock(), [0], []

    def work() -> None:
        seen.append(asked[0])
        time.sleep(0.001)

    def ask() -> None:
        for _ in range(50):
            with lock:
                asked[0] += 1
            one.do("round", work)

    with ThreadPoolExecutor(4) as threads:
        for asking in [threads.submit(ask) for _ in range(4)]:
            asking.result(30)
    assert seen[-1] == asked[0] == 200 and len(seen) < 200


def test_a_page_does_not_wait_for_a_screening_under_way(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DYNAROUND_SECRET", SECRET)
    made = Workspace(workspace.root)
    app, engine = create_app(made, clock=Clock()), made.engine()
    people = [Validator(app, one) for one in add_validated_round(engine, examples=10, workers=6)]
    begun, go_on = threading.Event(), threading.Event()

    def other_screening() -> None:
        begun.set()
        assert go_on.wait(60)

    with ThreadPoolExecutor(1) as threads:
        other = threads.submit(app.extensions[SCREENINGS].do, 1, other_screening)
        assert begun.wait(10)
        for validator in people[:5]:
            admit(app, engine, validator.worker_id)
            validator.page_of()
            assert validator.give_in().status_code == 200
        with reading(engine) as session:
            round_ = find_round(session, 1)
            assert is_due(session, round_)
        go_on.set()
        other.result(10)
    with app.app_context():
        for _ in range(2):
            screen_if_due(round_, ScreeningRule())
    with reading(engine) as session:
        assert session.exec(select(Batch.number).where(col(Batch.screened_at).is_not(None))).all() == [1]
        assert len(session.exec(select(Event).where(Event.what == SCREENED)).all()) == 1
    made.close()
