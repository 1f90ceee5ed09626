"""Consent and comprehension questions: what is a try, how many there are, and what a version of the guide means."""

import threading
from dataclasses import replace
from datetime import datetime, timedelta

import pytest
from sqlalchemy import Engine
from sqlmodel import Session, select

from dynaround.database import reading, writing
from dynaround.errors import BadInput, NotAllowed
from dynaround.tables import Bar, Consent, Event, QuizAttempt, Worker
from dynaround.task import Question
from tests.small_round import MOMENT
from workers.onboarding import (
    BARRED,
    CONSENT,
    QUIZ,
    READY,
    Quiz,
    QuizResult,
    consent,
    grade,
    has_consented,
    quiz_state,
    step_of,
)
from workers.roster import PERSON, enlist
from workers.standing import lift

DAY = timedelta(days=1)
QUESTIONS = (
    Question("sky", "The sky is green.", ("true", "false"), "false", "Look up."),
    Question("two", "One and one?", ("one", "two", "three"), "two", "Count."),
    Question("sea", "The sea is wet.", ("true", "false"), "true", "Dip in."),
)
WRITING = Quiz("author", "2026-11-30", QUESTIONS, limit=5, bar_days=7)
RIGHT = {question.key: question.right for question in QUESTIONS}
WRONG = RIGHT | {"sky": "true", "two": "three"}

on_sqlite = pytest.mark.parametrize("back_end", ["sqlite"], indirect=True)


def a_worker(session: Session) -> Worker:
    """Return a worker who has consented."""
    worker = enlist(session, "P1", PERSON)
    consent(session, worker, WRITING.version, MOMENT)
    return worker


def tried(session: Session, *answers: dict[str, str], quiz: Quiz = WRITING, at: datetime = MOMENT) -> list[QuizResult]:
    worker = a_worker(session)
    results = []
    for given in answers:
        number = quiz_state(session, worker, quiz, at).next_number
        results.append(grade(session, worker, quiz, number, given, at))
    return results


def test_a_worker_goes_from_consent_to_the_questions_to_the_work(engine: Engine):
    with writing(engine) as session:
        worker = enlist(session, "P1", PERSON)
        steps = [step_of(session, worker, WRITING, MOMENT).name]
        consent(session, worker, WRITING.version, MOMENT)
        steps.append(step_of(session, worker, WRITING, MOMENT).name)
        tried(session, WRONG)
        steps.append(step_of(session, worker, WRITING, MOMENT).name)
        tried(session, RIGHT)
        steps.append(step_of(session, worker, WRITING, MOMENT).name)
    assert steps == [CONSENT, QUIZ, QUIZ, READY]


def test_consent_is_of_a_version_and_its_first_moment_stays(engine: Engine):
    with writing(engine) as session:
        worker = a_worker(session)
        consent(session, worker, WRITING.version, MOMENT + DAY)
        assert session.exec(select(Consent.at)).all() == [MOMENT]
        assert has_consented(session, worker, WRITING.version) and not has_consented(session, worker, "2027-01-01")


@on_sqlite
def test_answers_are_graded_on_the_server_and_kept(engine: Engine):
    with writing(engine) as session:
        results = tried(session, WRONG, RIGHT)
        assert results == [
            QuizResult(1, False, WRONG, 1, ("sky", "two")),
            QuizResult(2, True, RIGHT, 3, ()),
        ]
        kept = session.exec(select(QuizAttempt).order_by(QuizAttempt.number)).all()
        assert [(k.quiz, k.number, k.right, k.questions, k.passed) for k in kept] == [
            ("author 2026-11-30", 1, 1, 3, False),
            ("author 2026-11-30", 2, 3, 3, True),
        ]
        assert kept[0].answers == WRONG


@on_sqlite
def test_the_state_tells_the_last_try_and_what_is_left(engine: Engine):
    with writing(engine) as session:
        worker = a_worker(session)
        before = quiz_state(session, worker, WRITING, MOMENT)
        assert (before.passed, before.next_number, before.tries_left, before.last) == (False, 1, 5, None)
        (result,) = tried(session, WRONG)
        assert quiz_state(session, worker, WRITING, MOMENT) == (False, 2, 4, result)


@on_sqlite
@pytest.mark.parametrize(
    ("answers", "named"),
    [
        ({"sky": "false", "sea": "true"}, "question 2 has no answer"),
        ({"two": "two"}, "questions 1, 3 have no answer"),
        (RIGHT | {"two": "four"}, "question 2 has no answer"),
        ({}, "questions 1, 2, 3 have no answer"),
    ],
)
def test_unanswered_questions_are_named_and_are_no_try(engine: Engine, answers: dict[str, str], named: str):
    with writing(engine) as session:
        with pytest.raises(BadInput, match=named):
            tried(session, answers)
        assert session.exec(select(QuizAttempt)).all() == []


@on_sqlite
def test_what_else_a_form_sends_is_not_kept(engine: Engine):
    with writing(engine) as session:
        assert tried(session, RIGHT | {"passed": "yes", "number": "7"})[0].answers == RIGHT


def test_the_last_try_that_fails_bars_for_a_while_and_then_the_count_starts_anew(engine: Engine):
    with writing(engine) as session:
        worker = a_worker(session)
        tried(session, *[WRONG] * 5)
        step = step_of(session, worker, WRITING, MOMENT + 6 * DAY)
        assert step.name == BARRED and step.bar is not None and step.bar.until == MOMENT + 7 * DAY
        assert step.bar.evidence == {"quiz": WRITING.name, "tries": 5, "last_try": 5}
        assert quiz_state(session, worker, WRITING, MOMENT).tries_left == 0
        with pytest.raises(NotAllowed, match="until 2026-01-09 03:04 UTC"):
            tried(session, RIGHT)
        after = MOMENT + 7 * DAY
        assert step_of(session, worker, WRITING, after).name == QUIZ
        tried(session, *[WRONG] * 4, at=after)
        assert quiz_state(session, worker, WRITING, after).tries_left == 1
        tried(session, WRONG, at=after)
        assert step_of(session, worker, WRITING, after).name == BARRED
        assert len(session.exec(select(Event).where(Event.what == "barred")).all()) == 2


@on_sqlite
def test_a_lifted_bar_gives_new_tries(engine: Engine):
    with writing(engine) as session:
        worker = a_worker(session)
        tried(session, *[WRONG] * 5)
        lift(session, session.exec(select(Bar)).one(), "launcher", MOMENT + DAY)
        assert quiz_state(session, worker, WRITING, MOMENT + DAY).tries_left == 5
        tried(session, RIGHT, at=MOMENT + DAY)
        assert step_of(session, worker, WRITING, MOMENT + DAY).name == READY


@on_sqlite
def test_the_fifth_try_may_pass(engine: Engine):
    with writing(engine) as session:
        assert tried(session, *[WRONG] * 4, RIGHT)[-1].passed
        assert session.exec(select(Bar)).all() == []


@on_sqlite
def test_where_fewer_tries_are_allowed_later_one_is_left(engine: Engine):
    with writing(engine) as session:
        tried(session, *[WRONG] * 3)
        stricter = replace(WRITING, limit=2)
        assert quiz_state(session, a_worker(session), stricter, MOMENT).tries_left == 1
        tried(session, WRONG, quiz=stricter)
        assert step_of(session, a_worker(session), stricter, MOMENT).name == BARRED


@on_sqlite
def test_a_passed_quiz_stays_passed_until_the_version_changes(engine: Engine):
    with writing(engine) as session:
        worker = a_worker(session)
        tried(session, RIGHT)
        with pytest.raises(NotAllowed, match="right already"):
            tried(session, WRONG)
        assert step_of(session, worker, WRITING, MOMENT + 999 * DAY).name == READY
        newer = replace(WRITING, version="2027-01-01")
        assert step_of(session, worker, newer, MOMENT).name == CONSENT
        consent(session, worker, newer.version, MOMENT)
        assert step_of(session, worker, newer, MOMENT).name == QUIZ
        assert quiz_state(session, worker, newer, MOMENT).next_number == 1


@on_sqlite
def test_nothing_is_graded_without_consent(engine: Engine):
    with writing(engine) as session:
        worker = enlist(session, "P2", PERSON)
        with pytest.raises(NotAllowed, match="consent"):
            grade(session, worker, WRITING, 1, RIGHT, MOMENT)


@on_sqlite
def test_a_form_that_comes_again_is_one_try(engine: Engine):
    with writing(engine) as session:
        worker = a_worker(session)
        first = grade(session, worker, WRITING, 1, WRONG, MOMENT)
        assert grade(session, worker, WRITING, 1, RIGHT, MOMENT) == first
        with pytest.raises(BadInput, match="of try 3, and the next one is 2"):
            grade(session, worker, WRITING, 3, RIGHT, MOMENT)
        assert len(session.exec(select(QuizAttempt)).all()) == 1


@on_sqlite
def test_the_form_of_the_try_that_barred_comes_again(engine: Engine):
    with writing(engine) as session:
        last = tried(session, *[WRONG] * 5)[-1]
        assert grade(session, a_worker(session), WRITING, 5, WRONG, MOMENT) == last


def test_five_posts_at_once_are_one_try(engine: Engine):
    with writing(engine) as session:
        a_worker(session)
    ready, results = threading.Barrier(5), []

    def post(answers: dict[str, str]) -> None:
        ready.wait()
        with writing(engine) as session:
            results.append(grade(session, a_worker(session), WRITING, 1, answers, MOMENT))

    threads = [threading.Thread(target=post, args=(given,)) for given in (RIGHT, WRONG, RIGHT, WRONG, RIGHT)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    with reading(engine) as session:
        kept = session.exec(select(QuizAttempt)).one()
    assert [result.answers for result in results] == [kept.answers] * 5
