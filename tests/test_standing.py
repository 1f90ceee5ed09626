"""Bars: how long they hold, objections that are never lost, lifting, and claims that people refute."""

import json
import threading
from datetime import datetime, timedelta

import pytest
from click.testing import CliRunner
from sqlalchemy import Engine
from sqlmodel import Session, col, select

from dynaround.database import reading, writing
from dynaround.errors import BadInput, NotAllowed, NotFound
from dynaround.settings import Workspace
from dynaround.tables import Bar, Event, Worker
from tests.small_round import MOMENT
from workers.commands import bars as bars_command
from workers.commands import lift as lift_command
from workers.roster import PERSON, enlist
from workers.standing import (
    CLAIMS_REFUTED,
    DecidedClaim,
    bar,
    bar_for_refuted,
    bar_line,
    bars_to_look_at,
    current_bar,
    find_bar,
    lift,
    object_to,
)

SECRET = "PLATFORM-SECRET"
DAY = timedelta(days=1)

on_sqlite = pytest.mark.parametrize("back_end", ["sqlite"], indirect=True)


def a_worker(session: Session) -> Worker:
    return enlist(session, SECRET, PERSON)


def barred(session: Session, at: datetime = MOMENT, work: str = "author") -> Bar:
    return bar(session, a_worker(session), work, "Because.", {"quiz": "one"}, at, at + 7 * DAY)


def test_a_bar_holds_for_its_work_and_its_time(engine: Engine):
    with writing(engine) as session:
        held, worker = barred(session), a_worker(session)
        moments = [MOMENT - DAY / 24, MOMENT, MOMENT + 6 * DAY, MOMENT + 7 * DAY]
        assert [current_bar(session, worker, "author", moment) for moment in moments] == [None, held, held, None]
        assert current_bar(session, worker, "validate", MOMENT) is None


@on_sqlite
def test_whoever_is_barred_is_not_barred_again(engine: Engine):
    with writing(engine) as session:
        first = barred(session)
        assert barred(session, MOMENT + DAY) is first
        assert barred(session, MOMENT + 8 * DAY) is not first
        assert len(session.exec(select(Event).where(Event.what == "barred")).all()) == 2


def test_two_bars_at_once_are_one(engine: Engine):
    with writing(engine) as session:
        a_worker(session)
    ready = threading.Barrier(4)

    def one() -> None:
        ready.wait()
        with writing(engine) as session:
            barred(session)

    threads = [threading.Thread(target=one) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    with reading(engine) as session:
        assert len(session.exec(select(Bar)).all()) == len(session.exec(select(Event)).all()) == 1


def test_an_objection_is_kept_once_and_to_the_letter(engine: Engine):
    said = "I did <b>answer</b> right.\r\nAsk \u201cA\u201d \U0001f600. " + "x" * 1962
    with writing(engine) as session:
        object_to(session, barred(session), said, MOMENT + DAY)
    with writing(engine) as session:
        held = session.exec(select(Bar)).one()
        assert held.objection == said.replace("\r\n", "\n") and len(held.objection) == 2000
        assert held.objected_at == MOMENT + DAY
        with pytest.raises(NotAllowed, match="have objected to this bar already"):
            object_to(session, held, "And another thing.", MOMENT + 2 * DAY)
        session.refresh(held)
        assert held.objection.startswith("I did")


@on_sqlite
@pytest.mark.parametrize(
    ("text", "reason"),
    [(" \n ", "is empty"), ("x" * 2001, "has 2001 characters; shorten it to 2000"), ("a\0b", "NUL character")],
)
def test_an_objection_that_cannot_be_kept_is_refused(engine: Engine, text: str, reason: str):
    with writing(engine) as session:
        held = barred(session)
        with pytest.raises(BadInput, match=reason):
            object_to(session, held, text, MOMENT)
        object_to(session, held, "The next one is kept.", MOMENT)


@on_sqlite
def test_one_may_object_to_a_bar_that_is_over(engine: Engine):
    with writing(engine) as session:
        held = barred(session)
        assert bars_to_look_at(session, MOMENT + 8 * DAY) == []
        object_to(session, held, "My pay depends on it.", MOMENT + 8 * DAY)
        assert bars_to_look_at(session, MOMENT + 9 * DAY) == [held]


def test_a_lifted_bar_is_over_and_is_lifted_once(engine: Engine):
    with writing(engine) as session:
        held = barred(session)
        lift(session, held, "launcher", MOMENT + DAY)
        assert current_bar(session, a_worker(session), "author", MOMENT + DAY) is None
        with pytest.raises(NotAllowed, match="was lifted at 2026-01-03 03:04 UTC"):
            lift(session, held, "launcher", MOMENT + 2 * DAY)
        assert held.lifted_by == "launcher" and held.lifted_at == MOMENT + DAY


@on_sqlite
def test_a_bar_that_ended_cannot_be_lifted(engine: Engine):
    with writing(engine) as session:
        held = barred(session)
        with pytest.raises(NotAllowed, match="ended by itself at 2026-01-09"):
            lift(session, held, "launcher", MOMENT + 7 * DAY)
        with pytest.raises(NotFound, match="no bar 99; see: dynaround workers bars"):
            find_bar(session, 99)


@on_sqlite
def test_every_step_is_an_event_without_a_private_word(engine: Engine):
    with writing(engine) as session:
        held = barred(session)
        object_to(session, held, "These are my private words.", MOMENT)
        lift(session, held, "launcher", MOMENT)
        events = session.exec(select(Event).order_by(col(Event.id))).all()
        told = [(event.who, event.what, event.detail["worker"], event.detail["bar"]) for event in events]
        name = a_worker(session).public_id
        assert told == [
            ("dynaround", "barred", name, held.id),
            (name, "objected", name, held.id),
            ("launcher", "bar lifted", name, held.id),
        ]
        everything = json.dumps([event.detail for event in events])
        assert SECRET not in everything and "private words" not in everything


def claims(pattern: str, at: datetime = MOMENT) -> list[DecidedClaim]:
    """Newest last; r: refuted, v: verified."""
    return [
        DecidedClaim(f"r2-{number:07d}", letter == "r", at + number * DAY / 24) for number, letter in enumerate(pattern)
    ]


def refuted(
    session: Session, decided: list[DecidedClaim], at: datetime = MOMENT + 2 * DAY, name: str = SECRET
) -> Bar | None:
    worker = enlist(session, name, PERSON)
    return bar_for_refuted(session, worker, "author", decided, refuted_claims=5, of_last_claims=10, bar_days=7, at=at)


@on_sqlite
def test_five_refuted_of_the_last_ten_claims_bar_an_author(engine: Engine):
    barring = ["rrrrr", "vvvvvrrrrr", "rvrvrvrvr", "rrrrrrvvvvv"]
    others = ["", "rrrr", "rrrrrvvvvvv", "v" * 30]
    with writing(engine) as session:
        for pattern in barring + others:
            in_order = refuted(session, claims(pattern), name=f"A{pattern}")
            backwards = refuted(session, claims(pattern)[::-1], name=f"B{pattern}")
            assert (in_order is not None, backwards is not None) == (pattern in barring,) * 2, pattern


def test_the_bar_says_why_and_for_how_long(engine: Engine):
    with writing(engine) as session:
        held = refuted(session, claims("rrrrrvr"))
        assert held is not None and (held.reason, held.work) == (CLAIMS_REFUTED, "author")
        assert held.until == MOMENT + 9 * DAY
        names = [f"r2-000000{number}" for number in (0, 1, 2, 3, 4, 6)]
        assert held.evidence == {"refuted": names, "of_last": 7}


@on_sqlite
@pytest.mark.parametrize("lifted", [False, True])
def test_claims_before_the_end_of_a_bar_do_not_count_again(engine: Engine, lifted: bool):
    with writing(engine) as session:
        old = claims("rrrrr")
        held = refuted(session, old)
        assert held is not None and refuted(session, old) is None
        after = held.until
        if lifted:
            after = MOMENT + 3 * DAY
            lift(session, held, "launcher", after)
        more = claims("rrrr", after + DAY)
        assert refuted(session, old + more, after + 2 * DAY) is None
        assert refuted(session, old + claims("rrrrr", after + DAY), after + 2 * DAY) is not None


@on_sqlite
def test_the_launcher_sees_bars_and_objections_and_lifts_them(workspace: Workspace):
    at = ["-w", str(workspace.root)]
    run = CliRunner().invoke
    assert run(bars_command, at).output == "nobody is barred\n"
    with writing(workspace.engine()) as session:
        held = bar(session, a_worker(session), "author", "Because.", {"tries": 5}, MOMENT, MOMENT + 9999 * DAY)
        object_to(session, held, "Red: \x1b[31m", MOMENT)
        worker = a_worker(session).public_id
    told = run(bars_command, at).output
    assert told.startswith(
        f"bar {held.id}: {worker} from work 'author', until 2053-05-19 03:04 UTC; tries: 5; objects:"
    )
    assert "\\x1b[31m" in told and "\x1b" not in told and SECRET not in told
    assert json.loads(run(bars_command, [*at, "--json"]).output)[0]["objection"] == "Red: \x1b[31m"
    assert run(lift_command, [str(held.id), *at]).output == f"bar {held.id} is lifted\n"
    assert "lifted by launcher" in run(bars_command, at).output
    assert isinstance(run(lift_command, ["7", *at]).exception, NotFound)


@on_sqlite
def test_a_bar_that_is_over_is_called_so(engine: Engine):
    with writing(engine) as session:
        assert "ended 2026-01-09 03:04 UTC" in bar_line(barred(session), MOMENT + 8 * DAY)
