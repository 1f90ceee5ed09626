"""Check items that somebody says cannot be judged: they are counted, and nothing on a page tells that they are."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import Engine
from sqlmodel import select

from dynaround.database import reading, writing
from dynaround.known_answers import check_rates
from dynaround.screening_measures import CHECK_ITEMS, CheckRate, ScreeningRule
from dynaround.settings import Workspace, create_workspace
from dynaround.tables import LEFT_OUT, CheckAnswer, CheckFlag, CheckPlace, Hold, Removal, Response
from rounds.lifecycle import find_round
from rounds.status import status_figures
from tests.author_site import serve
from tests.site import SECRET
from tests.sound_validation import assert_sound
from tests.validate_site import Validator, add_validated_round, admit
from tests.validators import (
    LEASE,
    MOMENT,
    NO_CHECKS,
    NUMBER,
    add_round,
    ask,
    flag_at,
    hasty,
    numbers_on,
    page_for,
    remove,
    rows_of,
    say,
    text_of,
    the_round,
    work,
)
from workers.holds import decide_hold
from workers.places import PageSettings, PageView
from workers.screening import reinstate, screen_round

ALWAYS_CHECKED = PageSettings(places=4, silent_share=1)


@pytest.fixture
def engine(engine: Engine) -> Engine:
    return hasty(engine)


def flag_everything(engine: Engine, worker_id: int) -> int:
    """Let a worker flag all sentences of all pages there are; return how many pages there were."""
    pages = 0
    while isinstance(page := ask(engine, worker_id, settings=ALWAYS_CHECKED), PageView):
        say(engine, worker_id, page, flag_at(page, *range(len(page.places))))
        pages += 1
    return pages


def test_who_flags_everything_is_measured_by_check_items_and_removed(engine: Engine):
    idler, *ids = add_round(engine, examples=18, workers=6, checks=6)
    assert flag_everything(engine, idler) == 6
    for worker in ids:
        while work(engine, worker, settings=ALWAYS_CHECKED):
            pass
    with reading(engine) as session:
        rates = check_rates(session, the_round(session).id)
    assert rates == {idler: CheckRate(6, 0, 6), **dict.fromkeys(ids, CheckRate(6, 6))}
    assert not [row for row in rows_of(engine, Response) if row.worker_id == idler] and not rows_of(engine, Hold)
    screen_round(engine, NUMBER, ScreeningRule(), MOMENT)
    [removal] = rows_of(engine, Removal)
    assert (removal.worker_id, removal.rule) == (idler, CHECK_ITEMS)
    assert removal.evidence["measures"][CHECK_ITEMS] == {"wrong": 6, "of": 6, "flagged": 6}
    assert_sound(engine)


def test_what_only_removed_workers_flagged_is_held_no_more_until_they_are_reinstated(engine: Engine):
    one, other, honest, *ids = add_round(engine, examples=18, workers=8, checks=6)
    page = page_for(engine, honest, settings=NO_CHECKS)
    twice, *_ = sorted(numbers_on(engine, page))
    flagged = [place.sentence for place in page.places].index(text_of(twice))
    say(engine, honest, page, flag_at(page, flagged))
    for worker in (one, other):
        flag_everything(engine, worker)
    assert len(rows_of(engine, Hold)) == 18
    decide_on(engine, twice + 1, LEFT_OUT)
    screen_round(engine, NUMBER, ScreeningRule(), MOMENT)
    assert {row.worker_id for row in rows_of(engine, Removal)} == {one, other}
    assert [row.decision for row in rows_of(engine, Hold)] == [LEFT_OUT]
    assert_sound(engine)
    assert len(page_for(engine, ids[0], settings=PageSettings(places=20, silent_share=0)).places) == 17
    for worker in (one, other):
        with writing(engine) as session:
            reinstate(session, the_round(session), f"w{worker}", "launcher", MOMENT)
    assert len(rows_of(engine, Hold)) == 18
    assert_sound(engine)


def decide_on(engine: Engine, number: int, decision: str) -> None:
    with writing(engine) as session:
        decide_hold(session, the_round(session), number, decision, "launcher", MOMENT)


def test_the_launcher_sees_flags_of_who_never_answered(engine: Engine):
    idler, other, *_ = add_round(engine, examples=6, workers=6, checks=2)
    flag_everything(engine, idler)
    work(engine, other, settings=ALWAYS_CHECKED)
    with reading(engine) as session:
        rows = status_figures(session, find_round(session, NUMBER))["validation"]["workers"]
    assert [(row["worker"], row["responses"], row["flags"]) for row in rows] == [
        (f"w{other}", 3, 0),
        (f"w{idler}", 0, 6),
    ]
    assert (rows[1]["checks"], rows[1]["checks_flagged"], rows[1]["check_rate"]) == (2, 2, 0.0)


def test_a_page_that_comes_again_flags_its_check_item_once(engine: Engine):
    [worker] = add_round(engine, examples=3, workers=1, checks=1)
    page = page_for(engine, worker, settings=ALWAYS_CHECKED)
    assert len(page.places) == 4
    said = flag_at(page, *range(4))
    first = say(engine, worker, page, said)
    assert say(engine, worker, page, said) == first and first.flagged == 3
    assert len(rows_of(engine, CheckFlag)) == 1 and not rows_of(engine, CheckAnswer)


@pytest.mark.parametrize("by", ["a removal", "others who were faster"])
def test_a_page_that_lost_its_examples_does_not_ask_for_its_check_item(engine: Engine, by: str):
    late, *others = add_round(engine, examples=3, workers=6, checks=1)
    page = page_for(engine, late, settings=ALWAYS_CHECKED)
    assert len(rows_of(engine, CheckPlace)) == 1
    if by == "a removal":
        remove(engine, late)
    else:
        for worker in others:
            work(engine, worker, at=MOMENT + LEASE)
    given = say(engine, late, page, {}, at=MOMENT + LEASE)
    assert given.counted == given.uncounted == given.flagged == 0
    assert not rows_of(engine, CheckFlag) and not rows_of(engine, CheckAnswer)


@pytest.fixture
def local(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Workspace]:
    monkeypatch.setenv("DYNAROUND_SECRET", SECRET)
    made = create_workspace(tmp_path / "bench")
    yield made
    made.close()


def test_own_figures_do_not_tell_that_a_page_had_a_check_item(local: Workspace):
    engine = local.engine()
    worker_id, *_ = add_validated_round(engine, examples=30, checks=3, silent_share=1)
    app = serve(local, None)
    admit(app, engine, worker_id)
    one = Validator(app, worker_id)
    one.page_of()
    one.give_in()
    assert "<dt>sentences</dt><dd>10</dd>" in one.page.text
    one.give_in({name: "cannot.language" for name in one.answers()})
    assert "<dt>sentences</dt><dd>10</dd>" in one.page.text
    with reading(engine) as session:
        assert len(session.exec(select(Response)).all()) == 9 and len(session.exec(select(CheckFlag)).all()) == 1
