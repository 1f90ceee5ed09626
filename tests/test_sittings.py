"""Sittings: arms that are balanced and stay, target labels that are even, prompts that reach few authors each."""

from collections import Counter
from datetime import timedelta
from random import Random

import pytest
from sqlalchemy import Engine
from sqlmodel import Session, col, select

from dynaround.database import reading, writing
from dynaround.errors import BadInput, IllegalMove, NotFound
from dynaround.tables import (
    LEFT,
    NO_PROMPT_ARM,
    PROMPT_ARM,
    AuthorSession,
    Prompt,
    PromptShowing,
    Round,
    Worker,
    Writing,
)
from rounds.attempts import submit
from rounds.lifecycle import AUTHORING, find_round, switch
from rounds.sittings import (
    begin_sitting,
    current_writing,
    end_sitting,
    end_sittings,
    lock_authored_round,
    open_sitting,
    show_prompt,
    shown_prompt,
)
from tests.authored_round import (
    LABELS,
    MOMENT,
    NUMBER,
    FixedModel,
    add_authored_round,
    attempts,
    begin_in_arm,
    clock_at,
    close,
    examples,
    making,
    next_example,
    prompt_text,
    send,
    sent,
)

HOUR = timedelta(hours=1)

on_sqlite = pytest.mark.parametrize("back_end", ["sqlite"], indirect=True)


def begun(session: Session, worker_id: int, seed: int = 0) -> AuthorSession:
    round_ = lock_authored_round(session, NUMBER)
    return begin_sitting(session, round_, session.get_one(Worker, worker_id), Random(seed), MOMENT)


def another_prompt(engine: Engine, worker_id: int, seed: int = 0) -> Prompt:
    made = making(engine, worker_id)
    with writing(engine) as session:
        round_ = lock_authored_round(session, NUMBER)
        worker, mine = session.get_one(Worker, worker_id), session.get_one(Writing, made.id)
        return show_prompt(session, round_, worker, mine, Random(seed), MOMENT)


def showings(engine: Engine) -> dict[int, list[int]]:
    """Return by prompt the authors it was shown to, in the order of the showings."""
    with reading(engine) as session:
        rows = session.exec(select(PromptShowing).order_by(col(PromptShowing.showing))).all()
        shown: dict[int, list[int]] = {}
        for row in rows:
            shown.setdefault(row.prompt_id, []).append(row.worker_id)
            assert row.showing == len(shown[row.prompt_id])
        return shown


def test_after_every_two_sittings_the_arms_are_even(engine: Engine):
    authors = add_authored_round(engine, authors=5)
    random, arms = Random(3), []
    for place in range(40):
        with writing(engine) as session:
            sitting = begun(session, authors[place % 5], random.randrange(1000))
            arms.append(sitting.arm)
            end_sitting(session, sitting, MOMENT)
    pairs = Counter(tuple(arms[place : place + 2]) for place in range(0, 40, 2))
    assert set(pairs) == {(PROMPT_ARM, NO_PROMPT_ARM), (NO_PROMPT_ARM, PROMPT_ARM)}
    assert min(pairs.values()) >= 5


@on_sqlite
def test_a_sitting_keeps_its_arm_and_is_one(engine: Engine):
    [author] = add_authored_round(engine, authors=1)
    with writing(engine) as session:
        first = begun(session, author)
        assert all(begun(session, author, seed) is first for seed in range(10))
    for number in range(6):
        send(engine, author, f"Sentence {number} is written.")
        next_example(engine, author)
    assert {attempt.arm for attempt in attempts(engine)} == {first.arm}
    with reading(engine) as session:
        assert len(session.exec(select(AuthorSession)).all()) == 1


def test_a_sitting_ends_after_an_hour_without_a_request(engine: Engine):
    [author] = add_authored_round(engine, authors=1, idle_minutes=60)
    first = making(engine, author, at=MOMENT)
    assert making(engine, author, at=MOMENT + HOUR).id == first.id
    late = MOMENT + 2 * HOUR + timedelta(seconds=1)
    with reading(engine) as session:
        round_, worker = find_round(session, NUMBER), session.get_one(Worker, author)
        assert open_sitting(session, round_, worker, MOMENT + 2 * HOUR) is not None
        assert open_sitting(session, round_, worker, late) is None
    assert making(engine, author, at=late).id != first.id
    with reading(engine) as session:
        left = session.get_one(Writing, first.id)
        assert (left.outcome, left.ended_at) == (LEFT, late)
        assert [sitting.ended_at for sitting in session.exec(select(AuthorSession))] == [late, None]


@on_sqlite
def test_a_text_from_a_page_that_lay_open_is_still_taken(engine: Engine):
    [author] = add_authored_round(engine, authors=1, idle_minutes=60)
    made = making(engine, author)
    late = MOMENT + 3 * HOUR
    model = FixedModel(otherwise=made.target_label)
    submit(engine, model.ask, NUMBER, author, sent(made.id, "It took me long."), now=clock_at(late))
    assert making(engine, author, at=late).id == made.id


@on_sqlite
def test_a_refused_text_from_a_page_that_lay_open_keeps_the_example_too(engine: Engine):
    [author] = add_authored_round(engine, authors=1, idle_minutes=60)
    made = making(engine, author)
    late = MOMENT + 3 * HOUR
    with pytest.raises(BadInput, match="no letters"):
        submit(engine, FixedModel().ask, NUMBER, author, sent(made.id, "1 2 3"), now=clock_at(late))
    again = making(engine, author, at=late)
    assert (again.id, again.draft) == (made.id, "1 2 3")


@on_sqlite
def test_an_attempt_keeps_a_sitting_alive(engine: Engine):
    [author] = add_authored_round(engine, authors=1)
    first = send(engine, author, "It was as it was.", at=MOMENT + HOUR / 2)
    assert making(engine, author, at=MOMENT + 1.4 * HOUR).id == first.writing_id


@on_sqlite
def test_logging_out_ends_the_sitting_and_leaves_other_authors_alone(engine: Engine):
    first, second = add_authored_round(engine)
    made, other = making(engine, first), making(engine, second)
    with writing(engine) as session:
        end_sittings(session, first, MOMENT)
    with reading(engine) as session:
        assert session.get_one(Writing, made.id).outcome == LEFT
        assert session.get_one(AuthorSession, made.session_id).ended_at == MOMENT
        assert session.get_one(AuthorSession, other.session_id).ended_at is None
    assert making(engine, first).session_id != made.session_id


def test_what_is_left_becomes_no_example_and_its_attempts_stay(engine: Engine):
    [author] = add_authored_round(engine, authors=1)
    send(engine, author, "It was fine.")
    with writing(engine) as session:
        end_sitting(session, begun(session, author), MOMENT)
    assert examples(engine) == [] and len(attempts(engine)) == 1


@on_sqlite
def test_without_a_prompt_for_this_author_the_arm_is_the_other(engine: Engine):
    first, second = add_authored_round(engine, prompts=2, authors=2, authors_per_prompt=1)
    begin_in_arm(engine, first, PROMPT_ARM)
    making(engine, first)
    another_prompt(engine, first)
    with pytest.raises(IllegalMove, match="no other prompt is left for you in this round"):
        another_prompt(engine, first)
    with writing(engine) as session:
        arms = []
        for seed in range(6):
            sitting = begun(session, second, seed)
            arms.append(sitting.arm)
            end_sitting(session, sitting, MOMENT)
    assert arms == [NO_PROMPT_ARM] * 6


@on_sqlite
def test_the_last_prompt_ends_a_sitting_in_the_prompt_arm(engine: Engine):
    [author] = add_authored_round(engine, prompts=1, authors=1)
    begin_in_arm(engine, author, PROMPT_ARM)
    assert making(engine, author).prompt_id is not None
    send(engine, author, "The soup of day 0 was cold.")
    next_example(engine, author)
    made = making(engine, author)
    assert (made.prompt_id, made.draft) == (None, "")
    with reading(engine) as session:
        sittings = session.exec(select(AuthorSession).order_by(col(AuthorSession.id))).all()
        assert [sitting.arm for sitting in sittings][-1] == NO_PROMPT_ARM
        assert [sitting.ended_at is None for sitting in sittings][-2:] == [False, True]


def test_target_labels_are_even_for_every_author(engine: Engine):
    authors = add_authored_round(engine, prompts=60, authors=3)
    drawn: dict[int, list[str]] = {author: [] for author in authors}
    for number in range(7):
        for author in authors:
            made = making(engine, author, seed=number * 17 + author)
            drawn[author].append(made.target_label)
            next_example(engine, author)
    for labels in drawn.values():
        assert sorted(labels[:3]) == sorted(labels[3:6]) == sorted(LABELS)
    assert len({labels[0] for labels in drawn.values()}) + len({tuple(labels) for labels in drawn.values()}) > 2


def test_prompts_go_to_few_authors_each_and_evenly_to_the_last(engine: Engine):
    authors = add_authored_round(engine, prompts=10, authors=4, authors_per_prompt=2)
    for author in authors:
        begin_in_arm(engine, author, PROMPT_ARM)
    draws = Random(5)
    for drawn in range(1, 21):
        left = [author for author in authors if _may_draw(engine, author, 2)]
        author = draws.choice(left)
        _draw(engine, author, drawn)
        by_prompt = showings(engine)
        assert all(len(set(shown)) == len(shown) <= 2 for shown in by_prompt.values())
        if drawn <= 10:
            assert len(by_prompt) == drawn
    assert sorted(map(len, by_prompt.values())) == [2] * 10


def _may_draw(engine: Engine, author: int, limit: int) -> bool:
    by_prompt = showings(engine)
    return any(
        len(by_prompt.get(prompt, [])) < limit and author not in by_prompt.get(prompt, []) for prompt in range(1, 11)
    )


def _draw(engine: Engine, author: int, seed: int) -> None:
    with reading(engine) as session:
        begun_before = session.exec(select(Writing).where(Writing.worker_id == author)).first() is not None
    if begun_before:
        another_prompt(engine, author, seed)
    else:
        assert making(engine, author, seed=seed).prompt_id is not None


def test_another_prompt_begins_the_draft_anew_and_is_counted(engine: Engine):
    [author] = add_authored_round(engine, prompts=5, authors=1)
    begin_in_arm(engine, author, PROMPT_ARM)
    first = making(engine, author)
    send(engine, author, "The soup of this day was cold.")
    second = another_prompt(engine, author)
    send(engine, author, "The soup of that day was cold.")
    assert [attempt.prompt_id for attempt in attempts(engine)] == [first.prompt_id, second.id]
    with reading(engine) as session:
        made = session.get_one(Writing, first.id)
        assert (made.prompt_id, shown_prompt(session, made).seen) == (second.id, 2)
    assert another_prompt(engine, author).text == making(engine, author).draft


@on_sqlite
def test_in_the_no_prompt_arm_there_is_no_other_prompt(engine: Engine):
    [author] = add_authored_round(engine, authors=1)
    begin_in_arm(engine, author, NO_PROMPT_ARM)
    with pytest.raises(IllegalMove, match="this sitting is without prompts"):
        another_prompt(engine, author)
    assert showings(engine) == {}


@on_sqlite
def test_the_text_of_a_prompt_stays_as_it_was_drawn(engine: Engine):
    [author] = add_authored_round(engine, prompts=3, authors=1)
    begin_in_arm(engine, author, PROMPT_ARM)
    for place in range(3):
        made = making(engine, author)
        with reading(engine) as session:
            assert made.draft == session.get_one(Prompt, made.prompt_id).text
        send(engine, author, f"My own words of day {place}.")
        next_example(engine, author)
    with reading(engine) as session:
        assert {prompt.text for prompt in session.exec(select(Prompt))} == set(map(prompt_text, range(3)))


@on_sqlite
def test_the_same_seed_draws_the_same_arm_label_and_prompt(engine: Engine):
    [author] = add_authored_round(engine, prompts=40, authors=1)

    def drawn(seed: int) -> tuple[str, str, int | None]:
        with Session(engine) as session:
            round_ = lock_authored_round(session, NUMBER)
            made = current_writing(session, round_, session.get_one(Worker, author), Random(seed), MOMENT)
            arm = session.get_one(AuthorSession, made.session_id).arm
            session.rollback()
            return arm, made.target_label, made.prompt_id

    assert [drawn(seed) for seed in range(20)] == [drawn(seed) for seed in range(20)]
    assert len({drawn(seed) for seed in range(20)}) > 10


@on_sqlite
def test_nothing_new_begins_while_writing_is_switched_off(engine: Engine):
    first, second = add_authored_round(engine)
    made = making(engine, first)
    with writing(engine) as session:
        switch(session, find_round(session, NUMBER), AUTHORING, False, "launcher", MOMENT)
    assert making(engine, first).id == made.id
    for begin in (lambda: making(engine, second), lambda: send(engine, first, "Nobody reads this.")):
        with pytest.raises(IllegalMove, match="writing in round 1 is switched off for now; come back later"):
            begin()
    assert making(engine, first).draft == "Nobody reads this."
    with writing(engine) as session:
        switch(session, find_round(session, NUMBER), AUTHORING, True, "launcher", MOMENT)
    assert send(engine, first, "Nobody reads this.").number == 1


@on_sqlite
def test_only_an_open_round_with_authors_is_written_for(engine: Engine):
    [author] = add_authored_round(engine, authors=1)
    with writing(engine) as session, pytest.raises(NotFound, match="there is no round 7"):
        lock_authored_round(session, 7)
    close(engine)
    with pytest.raises(IllegalMove, match="round 1 is closed; only an open round is written for"):
        making(engine, author)
    with writing(engine) as session:
        round_ = session.exec(select(Round)).one()
        round_.state, round_.plan = "open", {**round_.plan, "authoring": None}
        session.add(round_)
    with pytest.raises(IllegalMove, match="round 1 is not written for by people"):
        making(engine, author)
