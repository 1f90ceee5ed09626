"""A round that people validate, for tests: examples, workers, their pages, and what must hold at every moment."""

import threading
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import Engine, event, inspect
from sqlmodel import Session, col, select

from dynaround.database import reading, writing
from dynaround.errors import DynaroundError
from dynaround.tables import (
    NO_PROMPT_ARM,
    SILENT,
    Assignment,
    Batch,
    BatchExample,
    CheckItem,
    Example,
    Removal,
    Response,
    Round,
    Seat,
    TaskLabel,
    Uncounted,
    Worker,
)
from dynaround.tasks import DEFAULT, get_task
from dynaround.text import text_key
from workers.assignment import Answer
from workers.giving_in import CannotJudge, GivenIn, give_in_page
from workers.places import Nothing, PageSettings, PageView, next_page
from workers.removing import count_again, remove_worker

MOMENT = datetime(2026, 1, 2, 3, 4, tzinfo=UTC)
"""The moment at which all happens unless a test says otherwise."""
NUMBER = 1
SEED = 7
LEASE = timedelta(minutes=PageSettings().lease_minutes)
TASK = get_task(DEFAULT)
WORD = TASK.labels[0]
FLAG = next(iter(TASK.guide.flag_reasons))
NO_CHECKS = PageSettings(silent_share=0)
ONE_PLACE = PageSettings(places=1, silent_share=0)


def add_round(
    engine: Engine, *, examples: int, workers: int, authored_by: Sequence[int] = (), checks: int = 0
) -> list[int]:
    """Open a round with examples numbered from 1, then one of each author of `authored_by`; return the workers' ids.

    `authored_by` names workers by their place in the list that is returned.
    """
    with writing(engine) as session:
        if session.get(TaskLabel, (TASK.name, WORD)) is None:
            session.add_all(
                TaskLabel(task=TASK.name, label=label, place=place, for_model=True)
                for place, label in enumerate(TASK.labels)
            )
        round_ = Round(
            number=NUMBER, task=TASK.name, state="open", plan={"seed": SEED}, target_model="m", target_model_hash="h"
        )
        people = [Worker(platform_id=f"PLATFORM-{place}", kind="person") for place in range(workers)]
        session.add_all([round_, *people])
        session.flush()
        ids = [worker.id for worker in people if worker.id is not None]
        add_examples(session, round_, [text_of(number) for number in range(1, examples + 1)])
        for place in authored_by:
            add_examples(session, round_, [f"Worker {place} wrote number {number_after(session)}."], author=ids[place])
        session.add_all(
            CheckItem(
                round_id=round_.id,
                task=TASK.name,
                use=SILENT,
                text=check_text(place),
                text_key=text_key(check_text(place)),
                label=WORD,
            )
            for place in range(checks)
        )
        return ids


def text_of(number: int) -> str:
    """Return the text of a harvested example."""
    return f"The soup of day {number} was cold."


def check_text(place: int) -> str:
    """Return the text of a check item."""
    return f"A text whose answer is known, {place}."


def number_after(session: Session) -> int:
    """Return the next number of an example."""
    return len(session.exec(select(Example.id)).all()) + 1


def add_examples(session: Session, round_: Round, texts: Sequence[str], *, author: int | None = None) -> None:
    """Add examples with the next numbers."""
    first = number_after(session)
    session.add_all(
        Example(
            round_id=round_.id,
            task=TASK.name,
            number=number,
            text=text,
            text_key=text_key(text),
            cell="random",
            prediction=TASK.model_labels[0],
            probs={label: 1 / len(TASK.model_labels) for label in TASK.model_labels},
            truncated=False,
            model_hash="h",
            precision="float32",
            back_end="torch",
            author_id=author,
            arm=None if author is None else NO_PROMPT_ARM,
        )
        for number, text in enumerate(texts, first)
    )
    session.flush()


def the_round(session: Session) -> Round:
    return session.exec(select(Round).where(Round.number == NUMBER)).one()
    """Return the round."""
    return session.exec(select(Round).where(Round.number == NUMBER)).one()


def hasty(engine: Engine) -> Engine:
    """Let SQLite not wait for the disk, where a test is not about power cuts."""
    if engine.dialect.name == "sqlite":
        event.listen(engine, "connect", lambda connection, _: connection.execute("PRAGMA synchronous=OFF"))
    return engine


# What workers do


def ask(
    engine: Engine,
    worker_id: int,
    *,
    settings: PageSettings = NO_CHECKS,
    at: datetime = MOMENT,
    validating: bool = True,
    collecting: bool = False,
) -> PageView | Nothing:
    """Ask for a worker's next page."""
    with writing(engine) as session:
        return next_page(
            session,
            the_round(session),
            session.get_one(Worker, worker_id),
            settings,
            validating=validating,
            collecting=collecting,
            now=at,
            seed=SEED,
        )


def page_for(engine: Engine, worker_id: int, **more: Any) -> PageView:
    """Ask for a worker's next page, which there is."""
    page = ask(engine, worker_id, **more)
    assert isinstance(page, PageView), page
    return page


def reason_for(engine: Engine, worker_id: int, **more: Any) -> str:
    """Ask for a worker's next page, which there is not, and return why."""
    nothing = ask(engine, worker_id, **more)
    assert isinstance(nothing, Nothing), nothing
    return nothing.reason


def answers_to(page: PageView, word: str = WORD) -> dict[int, Answer | CannotJudge]:
    """Answer every place of a page with one word."""
    return {place.position: Answer(word) for place in page.places}


def say(
    engine: Engine,
    worker_id: int,
    page: PageView,
    answers: Mapping[int, Answer | CannotJudge] | None = None,
    *,
    at: datetime = MOMENT,
    comment: str = "",
    flags_that_hold: int = 2,
) -> GivenIn:
    """Give a page in, all answered with one word unless `answers` are given."""
    with writing(engine) as session:
        return give_in_page(
            session,
            the_round(session),
            page.page_id,
            worker_id,
            answers_to(page) if answers is None else answers,
            comment=comment,
            flags_that_hold=flags_that_hold,
            task=TASK,
            now=at,
        )


def work(engine: Engine, worker_id: int, **more: Any) -> GivenIn | None:
    """Let a worker answer the next page at once; None where there is none."""
    page = ask(engine, worker_id, **more)
    return say(engine, worker_id, page, at=more.get("at", MOMENT)) if isinstance(page, PageView) else None


def flag_at(page: PageView, *places: int) -> dict[int, Answer | CannotJudge]:
    """Answer a page but for these of its places, counted from 0, which are flagged."""
    flagged = {page.places[place].position: CannotJudge(FLAG) for place in places}
    return {**answers_to(page), **flagged}


def remove(engine: Engine, worker_id: int, *, at: datetime = MOMENT) -> int:
    """Remove a worker from the round."""
    with writing(engine) as session:
        round_ = the_round(session)
        session.add(Removal(round_id=round_.id, worker_id=worker_id, rule="test", evidence={}, at=at))
        return remove_worker(session, round_, session.get_one(Worker, worker_id), at)


def take_back(engine: Engine, worker_id: int, *, at: datetime = MOMENT) -> int:
    """Take a removal back."""
    with writing(engine) as session:
        found = select(Removal).where(Removal.worker_id == worker_id, col(Removal.reinstated_at).is_(None))
        removal = session.exec(found).one()
        removal.reinstated_at, removal.reinstated_by = at, "launcher"
        session.add(removal)
        return count_again(session, the_round(session), session.get_one(Worker, worker_id), at)


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


# What is stored


def rows_of(engine: Engine, table: type[Any]) -> list[Any]:
    """Return all rows of a table, in order of its key."""
    with reading(engine) as session:
        return list(session.exec(select(table).order_by(*inspect(table).primary_key)))


def counted(engine: Engine) -> dict[int, list[int]]:
    """Return who gave the responses that count, by number of example; examples without any are there too."""
    with reading(engine) as session:
        uncounted = set(session.exec(select(Uncounted.response_id)))
        by_example: dict[int, list[int]] = {number: [] for number in session.exec(select(Example.number))}
        numbers = dict(session.exec(select(Example.id, Example.number)).all())
        for response in session.exec(select(Response).order_by(col(Response.id))):
            if response.id not in uncounted:
                by_example[numbers[response.example_id]].append(response.worker_id)
        return by_example


def taken(engine: Engine) -> dict[int, int]:
    """Return how many places are taken, held or answered, by number of example."""
    with reading(engine) as session:
        numbers = dict(session.exec(select(Example.id, Example.number)).all())
        places = Counter(numbers[example_id] for example_id in session.exec(select(Seat.example_id)))
        return {number: places[number] for number in numbers.values()}


def numbers_on(engine: Engine, page: PageView) -> set[int]:
    """Return the numbers of the examples that were ever put on a page."""
    with reading(engine) as session:
        on_page = select(Example.number).join(Assignment, col(Assignment.example_id) == col(Example.id))
        return set(session.exec(on_page.where(Assignment.page_id == page.page_id)))


def batches(engine: Engine) -> list[set[int]]:
    """Return the numbers of the examples of each batch, in the order of the batches."""
    with reading(engine) as session:
        members: dict[int, set[int]] = defaultdict(set)
        rows = session.exec(
            select(Batch.number, Example.number)
            .join(BatchExample, col(BatchExample.batch_id) == col(Batch.id))
            .join(Example, col(Example.id) == col(BatchExample.example_id))
        )
        for batch, number in rows:
            members[batch].add(number)
        return [members[batch] for batch in sorted(members)]
