"""Giving a page in: once, whole, and only by whom it was shown to; flags, and what they hold."""

from collections import Counter
from datetime import timedelta

import pytest
from sqlalchemy import Engine

from dynaround.database import writing
from dynaround.errors import BadInput, IllegalMove, NotAllowed, NotFound
from dynaround.tables import (
    LEFT_OUT,
    RELEASED_HOLD,
    Batch,
    Event,
    Example,
    Flag,
    Hold,
    PageComment,
    Response,
    Retention,
)
from rounds.lifecycle import close_round
from tests.sound_validation import assert_sound
from tests.validators import (
    FLAG,
    MOMENT,
    TASK,
    WORD,
    add_round,
    answers_to,
    ask,
    counted,
    flag_at,
    hasty,
    numbers_on,
    page_for,
    rows_of,
    say,
    taken,
    text_of,
    the_round,
    work,
)
from workers.assignment import Answer
from workers.giving_in import CannotJudge, give_in_page
from workers.holds import HOLD_DECIDED, decide_hold

on_sqlite = pytest.mark.parametrize("back_end", ["sqlite"], indirect=True)
OTHER = TASK.labels[1]
MINUTE = timedelta(minutes=1)


@pytest.fixture
def engine(engine: Engine) -> Engine:
    return hasty(engine)


# Giving in


@on_sqlite
def test_a_page_sent_five_times_is_stored_once(engine: Engine):
    [worker] = add_round(engine, examples=10, workers=1)
    page = page_for(engine, worker)
    results = [say(engine, worker, page, comment="A word.", at=MOMENT + place * MINUTE) for place in range(5)]
    assert results == [results[0]] * 5 and results[0].counted == 10
    assert len(rows_of(engine, Response)) == 10 and [row.text for row in rows_of(engine, PageComment)] == ["A word."]


@on_sqlite
@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        (lambda answers: answers.pop(3), "nothing is said of sentence 3; answer each"),
        (lambda answers: (answers.pop(3), answers.pop(7)), "nothing is said of sentences 3, 7; "),
        (lambda answers: answers.update({11: Answer(WORD)}), "the page has no sentence 11; load it again"),
        (lambda answers: answers.update({4: Answer("perhaps")}), "sentence 4: .*perhaps"),
        (lambda answers: answers.update({4: Answer(WORD, {"stars": 5})}), "sentence 4: form field 'stars'"),
        (lambda answers: answers.update({4: CannotJudge("tired")}), "sentence 4: 'tired' is no reason; take one of"),
    ],
)
def test_what_is_not_a_whole_page_of_answers_is_refused_and_nothing_is_stored(
    engine: Engine, change: object, complaint: str
):
    [worker] = add_round(engine, examples=10, workers=1)
    page = page_for(engine, worker)
    answers = answers_to(page)
    change(answers)  # type: ignore[operator]
    with pytest.raises(BadInput, match=complaint):
        say(engine, worker, page, answers)
    with pytest.raises(BadInput, match="the comment has 2001 characters"):
        say(engine, worker, page, comment="x" * 2001)
    assert rows_of(engine, Response) == []
    assert say(engine, worker, page, comment=" \0 ").counted == 10
    assert [row.text for row in rows_of(engine, PageComment)] == ["\ufffd"]


@on_sqlite
def test_a_page_of_nobody_or_of_another_round_is_not_given_in(engine: Engine):
    [worker] = add_round(engine, examples=1, workers=1)
    page = page_for(engine, worker)
    with pytest.raises(NotAllowed, match="not yours"):
        say(engine, worker, page._replace(page_id=page.page_id + 1))
    with writing(engine) as session:
        other = the_round(session).model_copy(update={"id": 99})
        session.expunge_all()
    assert other.id == 99
    with pytest.raises(NotAllowed, match="not yours"), writing(engine) as session:
        give_in_page(session, other, page.page_id, worker, answers_to(page), flags_that_hold=2, task=TASK, now=MOMENT)


def test_a_closed_round_hands_out_nothing_and_takes_nothing_new(engine: Engine):
    ids = add_round(engine, examples=2, workers=3)
    given, open_page = page_for(engine, ids[0]), page_for(engine, ids[1])
    first = say(engine, ids[0], given)
    with writing(engine) as session:
        assert close_round(session, the_round(session), "launcher", MOMENT, abandon=True) == 2
    with pytest.raises(IllegalMove, match="is closed"):
        say(engine, ids[1], open_page)
    with pytest.raises(IllegalMove, match="is closed"):
        ask(engine, ids[2])
    assert say(engine, ids[0], given) == first


# Flags and holds


def test_a_flag_frees_the_place_and_the_second_holds_the_example(engine: Engine):
    ids = add_round(engine, examples=2, workers=9)
    one, two, three = (page_for(engine, worker) for worker in ids[:3])
    flagged = {place.sentence: place.position for place in one.places}[text_of(1)]
    say(engine, ids[0], one, {**answers_to(one), flagged: CannotJudge(FLAG)})
    assert taken(engine) == {1: 2, 2: 3} and rows_of(engine, Hold) == []
    flagged = {place.sentence: place.position for place in two.places}[text_of(1)]
    say(engine, ids[1], two, {**answers_to(two), flagged: CannotJudge(FLAG)})
    assert [hold.decision for hold in rows_of(engine, Hold)] == [None]
    assert numbers_on(engine, page_for(engine, ids[3])) == {2}
    # Who has it in front loses it by loading the page again; who does not may answer it.
    assert [place.sentence for place in page_for(engine, ids[2]).places] == [text_of(2)]
    assert say(engine, ids[2], three).counted == 2
    filled = [work(engine, worker) for worker in ids[3:5]][-1]
    assert filled is not None and len(filled.filled) == 1, "held examples do not keep a batch from being filled"
    assert counted(engine) == {1: [ids[2]], 2: [*ids[:5]]}
    assert [(flag.reason, flag.worker_id) for flag in rows_of(engine, Flag)] == [(FLAG, ids[0]), (FLAG, ids[1])]
    assert_sound(engine)


def decide(engine: Engine, number: int, decision: str) -> None:
    with writing(engine) as session:
        decide_hold(session, the_round(session), number, decision, "launcher", MOMENT)


@on_sqlite
def test_a_released_example_is_served_on_and_never_held_again(engine: Engine):
    ids = add_round(engine, examples=1, workers=9)
    for worker in ids[:2]:
        page = page_for(engine, worker)
        say(engine, worker, page, flag_at(page, 0))
    with pytest.raises(NotFound, match="example 2 of round 1 is not held"):
        decide(engine, 2, RELEASED_HOLD)
    with pytest.raises(BadInput, match="'perhaps' decides nothing"):
        decide(engine, 1, "perhaps")
    assert [batch.filled_at for batch in rows_of(engine, Batch)] == [MOMENT]
    decide(engine, 1, RELEASED_HOLD)
    assert [batch.filled_at for batch in rows_of(engine, Batch)] == [None]
    page = page_for(engine, ids[2])
    say(engine, ids[2], page, flag_at(page, 0))
    for worker in ids[3:8]:
        work(engine, worker)
    assert counted(engine) == {1: ids[3:8]}
    assert [(hold.decision, hold.decided_by) for hold in rows_of(engine, Hold)] == [(RELEASED_HOLD, "launcher")]
    assert [event.what for event in rows_of(engine, Event)] == [HOLD_DECIDED]
    assert_sound(engine)


@on_sqlite
def test_held_examples_get_no_label_and_must_be_decided_on_before_the_round_closes(engine: Engine):
    ids = add_round(engine, examples=3, workers=9)
    for worker in ids[:2]:
        page = page_for(engine, worker)
        say(engine, worker, page, flag_at(page, 0, 1))
    while any(work(engine, worker) for worker in ids):
        pass
    held = {hold.example_id for hold in rows_of(engine, Hold)}
    numbers = sorted(example.number for example in rows_of(engine, Example) if example.id in held)
    assert 1 <= len(numbers) <= 2

    def close(**more: bool) -> int:
        with writing(engine) as session:
            return close_round(session, the_round(session), "launcher", MOMENT, **more)

    with pytest.raises(IllegalMove, match=f"{len(numbers)} of 3 examples of round 1 are held and nothing is decided"):
        close()
    for number in numbers:
        decide(engine, number, LEFT_OUT)
    assert close() == len(numbers)
    retained = {response.id: response.example_id for response in rows_of(engine, Response)}
    labelled = Counter(retained[row.response_id] for row in rows_of(engine, Retention))
    assert set(labelled.values()) == {5} and not set(labelled) & held


@on_sqlite
def test_a_held_example_gets_no_label_from_the_five_who_had_it_in_front(engine: Engine):
    ids = add_round(engine, examples=2, workers=5)
    pages = {worker: page_for(engine, worker) for worker in ids}
    held, other = rows_of(engine, Example)
    with writing(engine) as session:
        session.add(Hold(example_id=held.id, held_at=MOMENT))
    for worker, page in pages.items():
        assert say(engine, worker, page).counted == 2
    with writing(engine) as session:
        assert close_round(session, the_round(session), "launcher", MOMENT, leave_out_short=True) == 1
    by_id = {response.id: response.example_id for response in rows_of(engine, Response)}
    assert {by_id[row.response_id] for row in rows_of(engine, Retention)} == {other.id}
