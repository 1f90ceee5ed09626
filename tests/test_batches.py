"""Batches: when they open, what is in them, and when they are filled; and that anything in any order stays sound."""

import random
from collections import Counter
from datetime import timedelta
from pathlib import Path

import pytest
from sqlalchemy import Engine
from sqlmodel import col, select

from dynaround.database import open_engine, reading, writing
from dynaround.errors import IllegalMove, NotAllowed
from dynaround.tables import (
    LATE,
    RELEASED_HOLD,
    REMOVED,
    Batch,
    BatchExample,
    Example,
    Hold,
    Response,
    Retention,
    Seat,
    Uncounted,
    Worker,
)
from rounds.lifecycle import close_round, response_counts
from tests.sound_validation import Walk, assert_sound
from tests.validators import (
    LEASE,
    MOMENT,
    NO_CHECKS,
    TASK,
    WORD,
    add_examples,
    add_round,
    ask,
    batches,
    counted,
    flag_at,
    hasty,
    numbers_on,
    page_for,
    reason_for,
    remove,
    rows_of,
    say,
    take_back,
    taken,
    text_of,
    the_round,
    work,
)
from workers.assignment import Answer, give_in, hand_out
from workers.reasons import (
    YOURS,
)

on_sqlite = pytest.mark.parametrize("back_end", ["sqlite"], indirect=True)
OTHER = TASK.labels[1]
MINUTE = timedelta(minutes=1)


@pytest.fixture
def engine(engine: Engine) -> Engine:
    return hasty(engine)


# Batches


@on_sqlite
def test_batches_are_drawn_by_lot_from_what_waits_and_open_when_needed(engine: Engine):
    ids = add_round(engine, examples=60, workers=8, authored_by=[0] * 40)
    settings = NO_CHECKS._replace(batch=20)
    page_for(engine, ids[1], settings=settings, collecting=True)
    [first] = batches(engine)
    # Twelve of twenty are harvested on average; none or all would be no draw.
    assert len(first) == 20 and 4 < len([number for number in first if number <= 60]) < 19
    for worker in ids[2:]:
        for _ in range(2):
            work(engine, worker, settings=settings, collecting=True)
    assert len(batches(engine)) == 2
    assert_sound(engine)


def test_the_next_batch_opens_while_the_last_places_of_the_former_are_held(engine: Engine):
    ids = add_round(engine, examples=40, workers=12)
    settings = NO_CHECKS._replace(batch=20)
    for worker in ids[:10]:
        page_for(engine, worker, settings=settings)
    assert len(batches(engine)) == 1 and set(taken(engine).values()) == {0, 5}
    eleventh = page_for(engine, ids[10], settings=settings)
    assert len(batches(engine)) == 2 and numbers_on(engine, eleventh) <= batches(engine)[1]
    filled = [row.filled_at for row in rows_of(engine, Batch)]
    assert filled == [None, None]
    later = MOMENT + MINUTE
    results = [say(engine, worker, page_for(engine, worker, settings=settings), at=later).filled for worker in ids[:10]]
    assert [len(batch_ids) for batch_ids in results] == [0] * 9 + [1]
    assert [row.filled_at for row in rows_of(engine, Batch)] == [later, None]


@on_sqlite
def test_what_is_too_little_for_a_batch_waits_while_collecting_goes_on(engine: Engine):
    ids = add_round(engine, examples=25, workers=3)
    settings = NO_CHECKS._replace(batch=20)

    def sizes() -> list[int]:
        return [len(members) for members in batches(engine)]

    def work_once(worker: int, collecting: bool) -> int:
        page = page_for(engine, worker, settings=settings, collecting=collecting)
        say(engine, worker, page)
        return len(page.places)

    assert [work_once(ids[0], True) for _ in range(2)] == [10, 10] and sizes() == [20]
    # Otherwise there would be nothing for this worker.
    assert work_once(ids[0], True) == 5 and sizes() == [20, 5]
    with writing(engine) as session:
        add_examples(session, the_round(session), [f"Later {place}." for place in range(30)])
    assert [work_once(ids[1], True) for _ in range(4)] == [10, 10, 10, 10] and sizes() == [20, 5, 20]
    assert work_once(ids[1], True) == 5 and sizes() == [20, 5, 20]
    assert work_once(ids[2], False) == 10 and sizes() == [20, 5, 20]
    assert [work_once(ids[2], False) for _ in range(4)] == [10, 10, 10, 10]
    assert work_once(ids[2], False) == 5 and sizes() == [20, 5, 20, 10]
    assert reason_for(engine, ids[2], settings=settings) == YOURS


@on_sqlite
def test_a_small_batch_does_not_open_for_the_author_of_all_that_waits(engine: Engine):
    ids = add_round(engine, examples=0, workers=2, authored_by=[0, 0, 0])
    assert reason_for(engine, ids[0], collecting=True) == YOURS and batches(engine) == []
    assert len(page_for(engine, ids[1], collecting=True).places) == 3


@on_sqlite
def test_any_order_of_arrival_makes_the_same_batches(engine: Engine, migrated_sqlite: Path, tmp_path: Path):
    texts = [text_of(number) for number in range(100, 160)]
    found = []
    for order in range(2):
        path = tmp_path / f"order-{order}.sqlite"
        path.write_bytes(migrated_sqlite.read_bytes())
        other = open_engine(f"sqlite:///{path}")
        [worker] = add_round(other, examples=0, workers=1)
        with writing(other) as session:
            add_examples(session, the_round(session), random.Random(order).sample(texts, len(texts)))
        while work(other, worker, settings=NO_CHECKS._replace(batch=25)):
            pass
        with reading(other) as session:
            words = dict(session.exec(select(Example.number, Example.text)).all())
        found.append([{words[number] for number in members} for members in batches(other)])
        other.dispose()
    assert found[0] == found[1] and [len(members) for members in found[0]] == [25, 25, 10]


def test_responses_that_were_imported_before_take_places(engine: Engine):
    ids = add_round(engine, examples=3, workers=12)
    by_number = {example.number: example.id for example in rows_of(engine, Example)}
    with writing(engine) as session:
        for place, numbers in enumerate([[1, 2], [1, 2], [1], [1], [1], [1]]):
            worker = session.get_one(Worker, ids[place])
            examples = [by_number[number] for number in numbers]
            page = hand_out(session, the_round(session).id or 0, worker, examples)
            give_in(session, TASK, page, {example: Answer(WORD) for example in examples}, MOMENT)
    assert numbers_on(engine, page_for(engine, ids[0])) == {3}
    for worker in ids[6:]:
        work(engine, worker)
    assert {number: len(workers) for number, workers in counted(engine).items()} == {1: 6, 2: 5, 3: 4}
    work(engine, ids[0])
    [batch] = rows_of(engine, Batch)
    assert batch.filled_at == MOMENT and {row.example_id for row in rows_of(engine, Seat)} == set(by_number.values())


# Removing and counting again


def test_a_removal_reopens_places_which_are_served_first_and_fills_again(engine: Engine):
    ids = add_round(engine, examples=20, workers=9)
    settings = NO_CHECKS._replace(batch=10)
    for worker in ids[:5]:
        work(engine, worker, settings=settings)
    open_page = page_for(engine, ids[0], settings=settings)
    assert [batch.filled_at for batch in rows_of(engine, Batch)] == [MOMENT, None]
    assert remove(engine, ids[0]) == 10
    assert [batch.filled_at for batch in rows_of(engine, Batch)] == [None, None]
    assert {row.reason for row in rows_of(engine, Uncounted)} == {REMOVED} and len(rows_of(engine, Response)) == 50
    with pytest.raises(NotAllowed, match="removed from round 1"):
        ask(engine, ids[0], settings=settings)
    late = say(engine, ids[0], open_page)
    assert (late.counted, late.uncounted) == (0, 10)
    assert Counter(row.reason for row in rows_of(engine, Uncounted)) == {REMOVED: 20}
    [first, second] = batches(engine)
    page = page_for(engine, ids[5], settings=settings)
    assert numbers_on(engine, page) == first
    assert len(say(engine, ids[5], page, at=MOMENT + MINUTE).filled) == 1
    assert [batch.filled_at for batch in rows_of(engine, Batch)] == [MOMENT + MINUTE, None]
    assert numbers_on(engine, page_for(engine, ids[6], settings=settings)) == second
    assert_sound(engine)


@on_sqlite
def test_reopened_places_come_before_those_with_fewer_answers(engine: Engine):
    ids = add_round(engine, examples=20, workers=3)
    answered = page_for(engine, ids[0])
    say(engine, ids[0], answered)
    # Who cannot judge the other ten, so that they stay without an answer, answers the same ten.
    others = page_for(engine, ids[1])
    say(engine, ids[1], others, flag_at(others, *range(10)))
    say(engine, ids[1], page_for(engine, ids[1]))
    remove(engine, ids[0])
    places = taken(engine)
    reopened = numbers_on(engine, answered)
    assert {places[number] for number in reopened} == {1} and Counter(places.values()) == {0: 10, 1: 10}
    assert numbers_on(engine, page_for(engine, ids[2])) == reopened


def test_a_reinstatement_counts_again_what_finds_a_place(engine: Engine):
    ids = add_round(engine, examples=10, workers=8)
    for worker in ids[:5]:
        work(engine, worker)
    remove(engine, ids[0])
    # Another fills four of the ten places, and holds none of the others.
    page = page_for(engine, ids[5])
    say(engine, ids[5], page, flag_at(page, *range(6)))
    left = page_for(engine, ids[6])
    assert len(left.places) == 6
    assert take_back(engine, ids[0], at=MOMENT) == 0, "what somebody holds is not free"
    remove(engine, ids[0])
    assert take_back(engine, ids[0], at=MOMENT + LEASE) == 6
    assert {len(workers) for workers in counted(engine).values()} == {5}
    assert Counter(row.reason for row in rows_of(engine, Uncounted)) == {REMOVED: 4}
    assert [batch.filled_at for batch in rows_of(engine, Batch)] == [MOMENT + LEASE]
    assert say(engine, ids[6], left, at=MOMENT + LEASE).uncounted == 6
    assert_sound(engine)


@on_sqlite
def test_what_came_too_late_does_not_count_after_a_reinstatement(engine: Engine):
    ids = add_round(engine, examples=10, workers=7)
    page = page_for(engine, ids[0])
    for worker in ids[1:6]:
        work(engine, worker, at=MOMENT + LEASE)
    assert say(engine, ids[0], page, at=MOMENT + LEASE).uncounted == 10
    remove(engine, ids[0])
    remove(engine, ids[1])
    assert take_back(engine, ids[0]) == 0
    assert Counter(row.reason for row in rows_of(engine, Uncounted)) == {LATE: 10, REMOVED: 10}


@on_sqlite
def test_uncounted_responses_do_not_count_when_the_round_closes(engine: Engine):
    ids = add_round(engine, examples=3, workers=7)
    for worker in ids[:5]:
        work(engine, worker)
    remove(engine, ids[0])
    with reading(engine) as session:
        assert set(response_counts(session, the_round(session).id or 0).values()) == {4}
    with pytest.raises(IllegalMove), writing(engine) as session:
        close_round(session, the_round(session), "launcher", MOMENT)
    work(engine, ids[5])
    with writing(engine) as session:
        assert close_round(session, the_round(session), "launcher", MOMENT) == 0
    by = {response.id: response.worker_id for response in rows_of(engine, Response)}
    assert {by[row.response_id] for row in rows_of(engine, Retention)} == set(ids[1:6])


# Anything in any order


@pytest.mark.parametrize("seed", [1, 2, *(pytest.param(seed, marks=pytest.mark.long) for seed in range(3, 33))])
def test_whatever_workers_do_it_stays_sound(engine: Engine, seed: int):
    walk = Walk(engine, seed)
    walk.run()
    # In the end those who remain can fill everything.
    while walk.removed:
        walk.take_back()
    end = walk.now + LEASE
    with writing(engine) as session:
        session.add_all([Worker(platform_id=f"LATER-{place}", kind="person") for place in range(5)])
        session.flush()
        later = session.exec(select(Worker.id).where(col(Worker.platform_id).startswith("LATER"))).all()
    for worker in later:
        while work(engine, worker or 0, settings=walk.settings, at=end):
            pass
    held = {row.example_id for row in rows_of(engine, Hold) if row.decision != RELEASED_HOLD}
    lacking = [row for row in rows_of(engine, BatchExample) if row.filled_at is None]
    assert {row.example_id for row in lacking} <= held
    assert_sound(engine)
