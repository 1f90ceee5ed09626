"""Authors at the same moment: sent five times at once, from several tabs, threads and processes, and killed halfway."""

import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from sqlalchemy import Engine
from sqlmodel import select

from dynaround.database import reading, writing
from dynaround.errors import BadInput, DynaroundError, IllegalMove
from dynaround.tables import (
    CONFIRMED,
    DUPLICATE,
    PROMPT_ARM,
    TAKEN_BACK,
    AttemptDecision,
    AuthorSession,
    PromptShowing,
    Worker,
    Writing,
)
from rounds.attempts import LEASE, submit
from rounds.decisions import waiting_attempt
from rounds.sittings import lock_authored_round, show_prompt
from tests.authored_round import (
    MOMENT,
    NUMBER,
    FixedModel,
    add_authored_round,
    attempts,
    begin_in_arm,
    clock_at,
    examples,
    making,
    next_example,
    other_than,
    say,
    send,
    sent,
    submissions,
)
from tests.command import PATIENCE
from tests.sound_authoring import Walk, after, assert_sound

on_sqlite = pytest.mark.parametrize("back_end", ["sqlite"], indirect=True)
TOKEN = "a-token-of-a-form"
TEXT = "It was all right."


class SlowModel(FixedModel):
    """Takes its time, so that others come in between."""

    def ask(self, text: str) -> Any:
        time.sleep(0.1)
        return super().ask(text)


def at_once(*jobs: Callable[[], Any]) -> list[Any]:
    """Run jobs in threads that start together; return what each returned, or the refusal it met."""
    results: list[Any] = [None] * len(jobs)
    ready = threading.Barrier(len(jobs))

    def run(place: int) -> None:
        ready.wait()
        try:
            results[place] = jobs[place]()
        except DynaroundError as refused:
            results[place] = refused

    threads = [threading.Thread(target=run, args=(place,)) for place in range(len(jobs))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results


def kinds(results: Sequence[Any]) -> Counter[str]:
    return Counter(type(result).__name__ for result in results)


# One form, sent often


def test_aut_03_a_form_sent_five_times_at_once_and_again_is_one_attempt(engine: Engine):
    [author] = add_authored_round(engine, authors=1)
    made = making(engine, author)
    model = SlowModel(otherwise=made.target_label)

    def post() -> Any:
        return submit(engine, model.ask, NUMBER, author, sent(made.id, TEXT, TOKEN), now=clock_at(MOMENT))

    results = [*at_once(*[post] * 5), post()]
    [stored] = attempts(engine)
    assert [result.model_dump() for result in results] == [stored.model_dump()] * 6
    assert model.calls == [TEXT] and len(submissions(engine)) == 1
    next_example(engine, author)
    assert len(examples(engine)) == 1
    assert_sound(engine)


@contextmanager
def processes(engine: Engine, folder: Path) -> Iterator["Processes"]:
    """Run `tests.authors_at_work`; what still works at the end is killed."""
    url = engine.url.set(drivername=engine.url.get_backend_name()).render_as_string(hide_password=False)
    server = subprocess.Popen(
        [sys.executable, "-m", "tests.authors_at_work", url, str(folder)],
        cwd=Path(__file__).parents[1],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    started = Processes(server, folder, [])
    try:
        yield started
    finally:
        for child in started.running:
            os.kill(child, signal.SIGKILL)
        server.communicate(timeout=PATIENCE)


class Processes(NamedTuple):
    """Processes that write, forked one by one; `running` are those that may still be."""

    server: subprocess.Popen[str]
    folder: Path
    running: list[int]

    def start(self, job: str, **arguments: object) -> int:
        """Fork a process for a job and return its number."""
        assert self.server.stdin and self.server.stdout
        self.server.stdin.write(json.dumps({"job": job, **arguments}) + "\n")
        self.server.stdin.flush()
        self.running.append(int(self.server.stdout.readline()))
        return self.running[-1]

    def lines(self, name: str) -> list[list[str]]:
        """Return what the processes noted in a file, one list of words a line."""
        file = self.folder / name
        return [line.split(" ") for line in file.read_text().splitlines()] if file.exists() else []

    def wait_for(self, name: str, lines: int) -> None:
        """Wait until a file has so many lines."""
        deadline = time.monotonic() + PATIENCE
        while len(self.lines(name)) < lines:
            assert self.server.poll() is None and time.monotonic() < deadline, f"{name}: {self.lines(name)}"
            time.sleep(0.002)

    def kill(self, child: int) -> None:
        """Kill a process."""
        self.running.remove(child)
        os.kill(child, signal.SIGKILL)


def test_aut_03_three_processes_with_one_form_store_one_attempt_and_ask_once(engine: Engine, tmp_path: Path):
    [author] = add_authored_round(engine, authors=1)
    engine.dispose()
    with processes(engine, tmp_path) as started:
        for _ in range(3):
            started.start("send_once", worker=author, token=TOKEN, text=TEXT, at=MOMENT.isoformat(), go="go")
        started.wait_for("ready", 3)
        (tmp_path / "go").touch()
        started.wait_for("answered", 3)
        started.running.clear()
        [stored] = attempts(engine)
        assert started.lines("calls") == [[TOKEN]]
        assert started.lines("answered") == [[TOKEN, str(stored.id)]] * 3


# Several forms at once


def test_more_tabs_at_once_do_not_exceed_the_attempts(engine: Engine):
    [author] = add_authored_round(engine, authors=1, attempts=3)
    made = making(engine, author)
    model = SlowModel(otherwise=made.target_label)

    def tab(place: int) -> Callable[[], Any]:
        form = sent(made.id, f"Tab {place} of mine.")
        return lambda: submit(engine, model.ask, NUMBER, author, form, now=clock_at(MOMENT))

    results = at_once(*map(tab, range(8)))
    assert kinds(results) == {"Attempt": 3, "IllegalMove": 5}
    assert len(model.calls) == len(attempts(engine)) == 3
    assert_sound(engine)


@on_sqlite
def test_fools_from_two_tabs_both_wait_for_their_word(engine: Engine):
    [author] = add_authored_round(engine, authors=1, attempts=3)
    made = making(engine, author)
    answers = {"Fool 0.": other_than(made.target_label), "Fool 1.": other_than(made.target_label)}
    model = SlowModel(answers, otherwise=made.target_label)

    def tab(text: str) -> Callable[[], Any]:
        return lambda: submit(engine, model.ask, NUMBER, author, sent(made.id, text), now=clock_at(MOMENT))

    results = at_once(tab("Fool 0."), tab("Fool 1."), tab("Not one."))
    assert kinds(results) == {"Attempt": 3}
    for _ in range(2):
        with pytest.raises(IllegalMove):
            next_example(engine, author)
        with reading(engine) as session:
            waits = waiting_attempt(session, session.get_one(Writing, made.id))
        assert waits is not None and say(engine, waits, TAKEN_BACK) is None
    next_example(engine, author)
    assert [example.text for example in examples(engine)] == ["Not one."]
    assert_sound(engine)


@pytest.mark.parametrize("limit", ["attempts", "attempts_a_day"])
def test_clocks_that_differ_do_not_exceed_the_attempts(engine: Engine, limit: str):
    [author] = add_authored_round(engine, authors=1, **{"attempts": 5, limit: 1})
    made = making(engine, author)
    other = FixedModel(otherwise=other_than(made.target_label))

    class Overtaken(FixedModel):
        """Is at work while a server whose clock is ahead takes another text, which fools the model."""

        def ask(self, text: str) -> Any:
            ahead = clock_at(MOMENT + 2 * LEASE)
            submit(engine, other.ask, NUMBER, author, sent(made.id, "Fool 0."), now=ahead)
            return super().ask(text)

    with pytest.raises(IllegalMove, match=r"^the 1 attempts for|^you have made 1 attempts today"):
        submit(engine, Overtaken().ask, NUMBER, author, sent(made.id, TEXT), now=clock_at(MOMENT))
    assert [attempt.text for attempt in attempts(engine)] == ["Fool 0."]
    assert_sound(engine)


def test_one_text_from_two_tabs_is_one_attempt(engine: Engine):
    [author] = add_authored_round(engine, authors=1)
    made = making(engine, author)
    model = SlowModel(otherwise=made.target_label)

    def tab(place: int) -> Callable[[], Any]:
        form = sent(made.id, TEXT, f"token-of-the-tab-{place}")
        return lambda: submit(engine, model.ask, NUMBER, author, form, now=clock_at(MOMENT))

    results = at_once(tab(0), tab(1))
    assert kinds(results) == {"Attempt": 1, "BadInput": 1}
    [refused] = [result for result in results if isinstance(result, BadInput)]
    assert str(refused).startswith("You have tried this very text for this example")
    assert_sound(engine)


def test_both_words_at_once_are_one(engine: Engine):
    [author] = add_authored_round(engine, authors=1)
    for place in range(5):
        fool = send(engine, author, f"Fool {place} of mine.", fools=True)
        words = [CONFIRMED, TAKEN_BACK] * 2
        results = at_once(*(partial(say, engine, fool, word) for word in words))
        with reading(engine) as session:
            stands = session.get_one(AttemptDecision, fool.id).decision
        assert [isinstance(result, IllegalMove) for result in results] == [word != stands for word in words]
        assert_sound(engine)


def test_the_same_text_of_two_authors_at_once_is_one_example(engine: Engine):
    authors = add_authored_round(engine, authors=4)
    fools = [send(engine, author, "The same words.", fools=True) for author in authors]
    results = at_once(*(partial(say, engine, fool, CONFIRMED) for fool in fools))
    assert Counter(results) == {"completed": 1, DUPLICATE: 3} and len(examples(engine)) == 1
    assert_sound(engine)


def test_authors_who_draw_at_once_never_share_a_prompt_beyond_the_limit(engine: Engine):
    authors = add_authored_round(engine, prompts=8, authors=4, authors_per_prompt=2)
    for author in authors:
        begin_in_arm(engine, author, PROMPT_ARM)

    def draw(author: int) -> None:
        making(engine, author, seed=author)
        for place in range(2):
            with writing(engine) as session:
                round_ = lock_authored_round(session, NUMBER)
                worker = session.get_one(Worker, author)
                mine = session.exec(select(Writing).where(Writing.worker_id == author)).one()
                show_prompt(session, round_, worker, mine, random.Random(place), MOMENT)

    assert kinds(at_once(*(partial(draw, author) for author in authors))) == {"NoneType": 4}
    with reading(engine) as session:
        shown = Counter(session.exec(select(PromptShowing.prompt_id)).all())
    assert sorted(shown.values()) == [1] * 4 + [2] * 4
    assert_sound(engine)


def test_a_page_opened_five_times_at_once_begins_one_example(engine: Engine):
    [author] = add_authored_round(engine, authors=1)
    results = at_once(*(lambda seed=seed: making(engine, author, seed=seed).id for seed in range(5)))
    assert len(set(results)) == 1
    with reading(engine) as session:
        assert len(session.exec(select(AuthorSession)).all()) == len(session.exec(select(Writing)).all()) == 1


# Killed halfway


def killed_again_and_again(engine: Engine, folder: Path, times: int, seed: int) -> None:
    """Kill a process that writes at random moments; after each kill all it was told is there, and no more."""
    [author] = add_authored_round(engine, authors=1, prompts=0, attempts_a_day=100_000, idle_minutes=100_000)
    moments = random.Random(seed)
    with processes(engine, folder) as started:
        for run in range(times):
            engine.dispose()
            before = len(started.lines("sent"))
            child = started.start("work", worker=author, seed=run, at=after(run).isoformat())
            started.wait_for("sent", before + 1)
            time.sleep(moments.random() * 0.12)
            started.kill(child)
            _assert_nothing_lost(engine, started, author, after(run) + LEASE)
            assert_sound(engine)
    assert len(attempts(engine)) >= times


def _assert_nothing_lost(engine: Engine, started: Processes, author: int, later: datetime) -> None:
    stored = {s.token: s.attempt_id for s in submissions(engine) if s.attempt_id is not None}
    by_token = {line[0]: line for line in started.lines("sent")}
    answered = {token: int(attempt) for token, attempt in started.lines("answered")}
    assert answered.items() <= stored.items() and len(stored) == len(attempts(engine))
    assert set(Counter(token for [token] in started.lines("calls")).values()) <= {1}
    # Whatever had happened to the last text, its token is good: for the stored attempt, or for a new call of the model.
    token, making_id, *words = list(by_token.values())[-1]
    model = FixedModel()
    form = sent(int(making_id), " ".join(words), token)
    attempt = submit(engine, model.ask, NUMBER, author, form, now=clock_at(later))
    assert (attempt.id == stored.get(token)) is (model.calls == [])
    with reading(engine) as session:
        waits = waiting_attempt(session, session.get_one(Writing, int(making_id)))
    if waits is not None:
        say(engine, waits, CONFIRMED, at=later)


def test_a_server_killed_at_any_moment_loses_and_doubles_nothing(engine: Engine, tmp_path: Path):
    killed_again_and_again(engine, tmp_path, times=12, seed=1)


@pytest.mark.long
def test_a_server_killed_very_often_loses_and_doubles_nothing(engine: Engine, tmp_path: Path):
    killed_again_and_again(engine, tmp_path, times=200, seed=2)


# Anything, in any order


@on_sqlite
def test_whatever_authors_do_the_round_is_sound(engine: Engine):
    settings = {"attempts": 3, "take_backs": 2, "attempts_a_day": 25, "authors_per_prompt": 2}
    authors = add_authored_round(engine, prompts=6, authors=3, **settings)
    walks = [Walk(engine, author, seed=author) for author in authors]
    for step in range(360):
        walks[step % 3].step()
        if step % 6 == 0:
            assert_sound(engine)
    done = sum((walk.done for walk in walks), Counter())
    assert min(done[name] for name in ("_send", "_say", "_next", "_again", "died")) > 3, done
    assert min(done[f"refused: {name}"] for name in ("BadInput", "IllegalMove", "Unavailable")) > 3, done


@pytest.mark.long
@pytest.mark.parametrize("seed", range(3))
def test_whatever_many_authors_do_at_once_the_round_is_sound(engine: Engine, seed: int):
    settings = {"attempts": 4, "take_backs": 2, "attempts_a_day": 60, "authors_per_prompt": 2}
    authors = add_authored_round(engine, prompts=40, authors=3, **settings)
    # Two tabs each: the same author at the same time.
    walks = [Walk(engine, author, seed=100 * seed + place) for place, author in enumerate(authors * 2)]
    for _ in range(10):
        at_once(*(lambda walk=walk: [walk.step() for _ in range(40)] for walk in walks))
        assert_sound(engine)


def test_whatever_a_few_authors_do_at_once_the_round_is_sound(engine: Engine):
    authors = add_authored_round(engine, prompts=6, authors=2, attempts=3, take_backs=2, attempts_a_day=40)
    walks = [Walk(engine, author, seed=place) for place, author in enumerate(authors * 2)]
    assert kinds(at_once(*(lambda walk=walk: [walk.step() for _ in range(40)] for walk in walks))) == {"list": 4}
    assert_sound(engine)
    assert examples(engine)
