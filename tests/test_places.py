"""Places and leases: who is served what, when it is whose, and what becomes of those who leave."""

import re
from collections import Counter
from datetime import timedelta
from itertools import cycle

import pytest
from sqlalchemy import Engine, event
from sqlalchemy.exc import IntegrityError

from dynaround.database import reading, writing
from dynaround.errors import NotAllowed
from dynaround.tables import (
    LATE,
    Assignment,
    CheckAnswer,
    Example,
    Page,
    Response,
    Seat,
    Uncounted,
    Worker,
)
from tests.sound_validation import assert_sound
from tests.validators import (
    LEASE,
    MOMENT,
    NO_CHECKS,
    ONE_PLACE,
    SEED,
    TASK,
    WORD,
    add_examples,
    add_round,
    answers_to,
    ask,
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
    the_round,
    work,
)
from workers.giving_in import give_in_page
from workers.places import Nothing, PageSettings, PageView, next_page, page_in_front
from workers.reasons import (
    EVERYTHING_ANSWERED,
    EVERYTHING_SO_FAR,
    HELD_BY_OTHERS,
    IN_REVIEW,
    NOTHING_COLLECTED,
    SWITCHED_OFF,
    YOURS,
)

on_sqlite = pytest.mark.parametrize("back_end", ["sqlite"], indirect=True)
OTHER = TASK.labels[1]
MINUTE = timedelta(minutes=1)


@pytest.fixture
def engine(engine: Engine) -> Engine:
    return hasty(engine)


# Whose, and how often


def test_val_01_own_sentences_are_never_served_and_a_second_answer_changes_nothing(engine: Engine):
    w3, w5 = add_round(engine, examples=1, workers=2, authored_by=[0])
    y1, e1 = 1, 2
    other = page_for(engine, w5)
    assert numbers_on(engine, other) == {y1, e1}
    own = page_for(engine, w3)
    assert numbers_on(engine, own) == {y1}
    with pytest.raises(NotAllowed):
        say(engine, w3, other)
    first = say(engine, w5, other)
    again = say(engine, w5, other, answers_to(other, OTHER))
    assert again == first._replace(filled=())
    say(engine, w3, own)
    assert counted(engine) == {y1: [w5, w3], e1: [w5]}
    assert {response.label for response in rows_of(engine, Response)} == {WORD}
    assert_sound(engine)


def test_the_database_refuses_a_second_response_and_a_sixth_place(engine: Engine):
    ids = add_round(engine, examples=1, workers=6)
    for worker in ids[:5]:
        work(engine, worker)
    [example] = rows_of(engine, Example)
    page = rows_of(engine, Page)[0]
    second = Response(example_id=example.id, worker_id=ids[0], page_id=page.id, task=TASK.name, label=OTHER, at=MOMENT)
    with pytest.raises(IntegrityError), writing(engine) as session:
        session.add(second)
    for place in (1, 6):
        with pytest.raises(IntegrityError), writing(engine) as session:
            extra = Page(round_id=page.round_id, worker_id=ids[5])
            session.add(extra)
            session.flush()
            session.add(Assignment(page_id=extra.id, example_id=example.id, worker_id=ids[5]))
            session.flush()
            session.add(Seat(example_id=example.id, place=place, worker_id=ids[5], page_id=extra.id))


def test_val_02_the_fewest_first_until_nobody_has_anything_left(engine: Engine):
    ids = add_round(engine, examples=10, workers=12)
    done: dict[int, set[int]] = {worker: set() for worker in ids}
    answers = 0
    for worker in cycle(ids):
        if answers == 50:
            break
        before = taken(engine)
        left = {number for number, count in before.items() if count < 5} - done[worker]
        page = ask(engine, worker, settings=ONE_PLACE)
        if isinstance(page, Nothing):
            assert not left and page.reason == YOURS
            continue
        [served] = numbers_on(engine, page)
        assert before[served] == min(before[number] for number in left)
        done[worker].add(served)
        say(engine, worker, page)
        answers += 1
        now = taken(engine)
        assert max(now.values()) - min(now.values()) <= 2
        if answers == 10:
            assert set(now.values()) == {1}
    assert {number: len(workers) for number, workers in counted(engine).items()} == dict.fromkeys(range(1, 11), 5)
    assert {reason_for(engine, worker, settings=ONE_PLACE) for worker in ids} == {EVERYTHING_ANSWERED}


@on_sqlite
def test_nobody_is_shown_an_example_again_whatever_became_of_it(engine: Engine):
    ids = add_round(engine, examples=4, workers=6)
    first = page_for(engine, ids[0])
    say(engine, ids[0], first, flag_at(first, 0, 1))
    assert reason_for(engine, ids[0]) == YOURS
    late = page_for(engine, ids[1])
    for worker in ids[2:]:
        page_for(engine, worker, at=MOMENT + LEASE)
    remove(engine, ids[2], at=MOMENT + LEASE)
    take_back(engine, ids[2], at=MOMENT + LEASE)
    assert reason_for(engine, ids[2], at=MOMENT + 3 * LEASE) == YOURS
    again = page_for(engine, ids[1], at=MOMENT + 3 * LEASE)
    assert again.page_id == late.page_id
    assert_sound(engine)


@on_sqlite
def test_validators_spread_over_examples_of_equal_count(engine: Engine):
    ids = add_round(engine, examples=200, workers=60)
    served = [numbers_on(engine, page_for(engine, worker)) for worker in ids]
    # Three times all examples in turn; two random tens of 200 share none or one, and more than five in one of 10^5.
    assert set(taken(engine).values()) == {3}
    assert max(len(a & b) for place, a in enumerate(served) for b in served[:place]) <= 5


# A page


@on_sqlite
def test_a_page_mixes_everything_and_shows_positions_and_sentences_alone(engine: Engine):
    ids = add_round(engine, examples=300, workers=30, authored_by=[0] * 300, checks=40)
    always = PageSettings(silent_share=1)
    where: dict[str, list[int]] = {"check": [], "authored": [], "harvested": []}
    for worker in ids[1:]:
        page = page_for(engine, worker, settings=always)
        assert (PageView._fields, page.places[0]._fields) == (("page_id", "until", "places"), ("position", "sentence"))
        assert [place.position for place in page.places] == list(range(1, 11))
        assert page_for(engine, worker, settings=always) == page
        for place in page.places:
            kind = "check" if "is known" in place.sentence else "authored" if "wrote" in place.sentence else "harvested"
            where[kind].append(place.position)
    assert len(where["check"]) == 29
    # In every kind the mean position is that of chance, 5.5, within what so few pages allow.
    assert all(4 < sum(places) / len(places) < 7 for places in where.values())


@on_sqlite
def test_a_page_is_shorter_only_where_nothing_else_is_left(engine: Engine):
    ids = add_round(engine, examples=13, workers=1)
    sizes = [len(page_for(engine, ids[0]).places), work(engine, ids[0]), len(page_for(engine, ids[0]).places)]
    assert (sizes[0], sizes[2]) == (10, 3)


def test_a_page_in_front_is_found_by_reading_while_its_lease_is_new(engine: Engine):
    [worker] = add_round(engine, examples=3, workers=1)

    def found(minutes: int) -> PageView | None:
        with reading(engine) as session:
            who = session.get_one(Worker, worker)
            return page_in_front(session, the_round(session), who, NO_CHECKS, MOMENT + minutes * MINUTE)

    assert found(0) is None
    page = page_for(engine, worker)
    assert found(0) == found(1) == page
    assert found(2) is None
    say(engine, worker, page)
    assert found(0) is None


@on_sqlite
@pytest.mark.parametrize(("share", "pages"), [(0.0, 0), (0.3, 30), (1.0, 100)])
def test_silent_check_items_take_a_place_of_the_share_of_pages(engine: Engine, share: float, pages: int):
    ids = add_round(engine, examples=250, workers=20, checks=12)
    settings = PageSettings(silent_share=share)
    sizes, with_check, met = set(), 0, Counter[tuple[int, str]]()
    for _ in range(5):
        for worker in ids:
            page = page_for(engine, worker, settings=settings)
            checks = [place.sentence for place in page.places if "is known" in place.sentence]
            sizes.add(len(page.places))
            with_check += len(checks)
            met.update((worker, item) for item in checks)
            say(engine, worker, page)
    assert sizes == {10} and max(met.values(), default=1) == 1
    # Three standard deviations of 100 draws.
    assert abs(with_check - pages) <= 3 * (100 * share * (1 - share)) ** 0.5
    assert len(rows_of(engine, CheckAnswer)) == with_check
    assert_sound(engine)


@on_sqlite
def test_check_items_end_when_a_worker_has_met_all_and_never_make_a_page_alone(engine: Engine):
    [worker] = add_round(engine, examples=30, workers=1, checks=2)
    always = PageSettings(silent_share=1)
    sizes = []
    while (page := ask(engine, worker, settings=always)) and isinstance(page, PageView):
        sizes.append((len(page.places), sum("is known" in place.sentence for place in page.places)))
        say(engine, worker, page)
    assert sizes == [(10, 1), (10, 1), (10, 0), (2, 0)]


@on_sqlite
def test_a_page_of_one_place_has_none_for_a_check_item(engine: Engine):
    [worker] = add_round(engine, examples=3, workers=1, checks=2)
    page = page_for(engine, worker, settings=ONE_PLACE._replace(silent_share=1))
    assert len(page.places) == len(numbers_on(engine, page)) == 1


# Why there is nothing


def test_every_reason_is_true(engine: Engine):
    ids = add_round(engine, examples=0, workers=8)
    assert reason_for(engine, ids[0], collecting=True) == NOTHING_COLLECTED
    with writing(engine) as session:
        add_examples(session, the_round(session), ["One."])
        add_examples(session, the_round(session), ["Mine."], author=ids[0])
    assert reason_for(engine, ids[0], validating=False) == SWITCHED_OFF
    work(engine, ids[0])
    assert reason_for(engine, ids[0]) == YOURS
    for worker in ids[1:5]:
        page_for(engine, worker)
    page_for(engine, ids[5])
    assert reason_for(engine, ids[6]) == HELD_BY_OTHERS
    for worker in ids[1:6]:
        work(engine, worker)
    assert reason_for(engine, ids[6], collecting=True) == EVERYTHING_SO_FAR
    assert reason_for(engine, ids[6]) == EVERYTHING_ANSWERED
    with writing(engine) as session:
        add_examples(session, the_round(session), ["Flagged."])
    for worker in ids[:2]:
        page = page_for(engine, worker)
        say(engine, worker, page, flag_at(page, 0))
    assert reason_for(engine, ids[6]) == IN_REVIEW
    assert_sound(engine)


@on_sqlite
def test_while_validating_is_off_only_the_page_in_front_is_there(engine: Engine):
    [worker] = add_round(engine, examples=20, workers=1)
    page = page_for(engine, worker)
    assert page_for(engine, worker, validating=False) == page
    say(engine, worker, page)
    assert reason_for(engine, worker, validating=False) == SWITCHED_OFF


# Leases


def test_who_leaves_frees_the_places_when_the_lease_ends(engine: Engine):
    ids = add_round(engine, examples=10, workers=11)
    for worker in ids[:5]:
        page_for(engine, worker)
    assert reason_for(engine, ids[5], at=MOMENT + LEASE - MINUTE) == HELD_BY_OTHERS
    for worker in ids[5:10]:
        assert work(engine, worker, at=MOMENT + LEASE) is not None
    assert reason_for(engine, ids[10], at=MOMENT + LEASE) == EVERYTHING_ANSWERED
    assert_sound(engine)


def test_a_late_answer_counts_where_a_place_is_free_and_is_kept_where_none_is(engine: Engine):
    ids = add_round(engine, examples=10, workers=7)
    pages = {worker: page_for(engine, worker) for worker in ids[:2]}
    for worker in ids[2:6]:
        work(engine, worker, at=MOMENT + LEASE)
    late = say(engine, ids[0], pages[ids[0]], at=MOMENT + 2 * LEASE)
    too_late = say(engine, ids[1], pages[ids[1]], at=MOMENT + 2 * LEASE)
    assert (late.counted, late.uncounted, len(late.filled)) == (10, 0, 1)
    assert (too_late.counted, too_late.uncounted, too_late.filled) == (0, 10, ())
    assert {row.reason for row in rows_of(engine, Uncounted)} == {LATE}
    assert len(rows_of(engine, Response)) == 60 and {len(who) for who in counted(engine).values()} == {5}
    assert say(engine, ids[1], pages[ids[1]]) == too_late
    assert_sound(engine)


@on_sqlite
def test_what_others_left_alone_is_free_for_a_late_answer(engine: Engine):
    ids = add_round(engine, examples=10, workers=6)
    page = page_for(engine, ids[0])
    for worker in ids[1:]:
        page_for(engine, worker, at=MOMENT + LEASE)
    assert say(engine, ids[0], page, at=MOMENT + 2 * LEASE).counted == 10
    assert_sound(engine)


@on_sqlite
def test_a_late_answer_keeps_its_own_place_where_nobody_took_it(engine: Engine):
    ids = add_round(engine, examples=3, workers=2)
    page = page_for(engine, ids[0])
    assert say(engine, ids[0], page, at=MOMENT + 9 * LEASE).counted == 3
    assert_sound(engine)


@on_sqlite
def test_a_page_is_found_again_and_its_lease_begins_anew(engine: Engine):
    ids = add_round(engine, examples=10, workers=6)
    page = page_for(engine, ids[0])
    later = page_for(engine, ids[0], at=MOMENT + LEASE - MINUTE)
    assert later == page._replace(until=MOMENT + 2 * LEASE - MINUTE)
    for worker in ids[1:5]:
        work(engine, worker)
    assert reason_for(engine, ids[5], at=MOMENT + LEASE) == HELD_BY_OTHERS
    assert say(engine, ids[0], page, at=MOMENT + LEASE).counted == 10


def test_a_page_left_too_long_keeps_what_is_free_and_loses_what_is_full(engine: Engine):
    ids = add_round(engine, examples=10, workers=8)
    mine = page_for(engine, ids[0])
    # Five others fill six of the ten when the lease is over, four have one place left.
    for place, worker in enumerate(ids[1:6]):
        page = page_for(engine, worker, at=MOMENT + LEASE)
        missing = dict(list(answers_to(page).items()))
        if place == 4:
            missing = flag_at(page, 0, 1, 2, 3)
        say(engine, worker, page, missing, at=MOMENT + LEASE)
    again = page_for(engine, ids[0], at=MOMENT + LEASE)
    assert (again.page_id, len(again.places)) == (mine.page_id, 4)
    # What is left keeps its positions, so that what was typed fits.
    assert set(again.places) <= set(mine.places)
    answered = say(engine, ids[0], mine, answers_to(mine), at=MOMENT + LEASE)
    assert (answered.counted, answered.uncounted) == (4, 6)
    assert_sound(engine)


@on_sqlite
def test_a_page_of_which_nothing_is_left_makes_room_for_another(engine: Engine):
    ids = add_round(engine, examples=10, workers=6)
    lost = page_for(engine, ids[0])
    for worker in ids[1:]:
        work(engine, worker, at=MOMENT + LEASE)
    assert reason_for(engine, ids[0], at=MOMENT + LEASE) == EVERYTHING_ANSWERED
    with writing(engine) as session:
        add_examples(session, the_round(session), ["Another."])
    new = page_for(engine, ids[0], at=MOMENT + LEASE)
    assert new.page_id != lost.page_id and len(new.places) == 1
    assert say(engine, ids[0], lost, at=MOMENT + LEASE).uncounted == 10
    assert say(engine, ids[0], new, at=MOMENT + LEASE).counted == 1
    assert_sound(engine)


@on_sqlite
def test_idle_sessions_starve_nobody(engine: Engine):
    ids = add_round(engine, examples=30, workers=45)
    for hour in range(8):
        # Each hour five more open a page, and leave.
        for worker in ids[5 * hour : 5 * hour + 5]:
            page_for(engine, worker, at=MOMENT + hour * LEASE)
    end = MOMENT + 8 * LEASE
    while any(work(engine, worker, at=end) for worker in ids[40:]):
        pass
    assert {len(workers) for workers in counted(engine).values()} == {5}
    assert_sound(engine)


# What it costs


@on_sqlite
def test_no_page_and_no_giving_in_reads_a_whole_table(engine: Engine):
    ids = add_round(engine, examples=60, workers=12, authored_by=[0, 1], checks=5)
    settings = PageSettings(batch=20, silent_share=1)
    statements: dict[str, object] = {}

    @event.listens_for(engine, "before_cursor_execute")
    def keep(_connection: object, _cursor: object, statement: str, parameters: object, _context: object, many: bool):
        if not many:
            statements[statement] = parameters

    with writing(engine) as session:
        round_, people = the_round(session), [session.get_one(Worker, worker) for worker in ids]
    statements.clear()
    for hour in range(20):
        at = MOMENT + hour * LEASE
        for person in people:
            with writing(engine) as session:
                page = next_page(
                    session, round_, person, settings, validating=True, collecting=False, now=at, seed=SEED
                )
            with reading(engine) as session:
                page_in_front(session, round_, person, settings, at)
            if isinstance(page, PageView) and (hour + (person.id or 0)) % 4:
                with writing(engine) as session:
                    give_in_page(
                        session, round_, page.page_id, person.id or 0, answers_to(page),
                        flags_that_hold=2, task=TASK, now=at,
                    )  # fmt: skip
    event.remove(engine, "before_cursor_execute", keep)
    kinds = Counter(statement.split()[0] for statement in statements)
    assert kinds["SELECT"] > 10 and kinds["UPDATE"] > 5 and kinds["DELETE"] > 1
    with engine.connect() as connection:
        for statement, parameters in statements.items():
            if statement.split()[0] in ("SELECT", "UPDATE", "DELETE"):
                plan = connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {statement}", parameters).all()
                whole = [step[3] for step in plan if re.match(r"SCAN (?!CONSTANT|\(|anon)", step[3])]
                assert not whole, (statement, plan)
