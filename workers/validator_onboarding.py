"""Before a validator's first page: consent and questions as for every work, then sentences whose answers are known."""

import hashlib
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import chain, zip_longest
from typing import Any, NamedTuple

from sqlalchemy import bindparam, exists, func
from sqlalchemy import select as select_columns
from sqlmodel import Session, col, select

from dynaround.database import columns
from dynaround.errors import BadInput, NotAllowed
from dynaround.tables import SCREENING, Bar, CheckAnswer, CheckItem, Page, Removal, Round, Worker
from dynaround.tasks import get_task
from workers.assignment import Answer
from workers.checks import check_answer
from workers.onboarding import BARRED, CONSENT, QUIZ, READY, Quiz, Step, step_of
from workers.standing import KNOWN_ANSWERS_MISSED, bar, lock_worker


@dataclass(frozen=True)
class Entry:
    """What stands before the first page of a round: the questions, then `items` known answers, `right` of them right.

    A worker who has fewer right is barred for the quiz's `bar_days`. A round with fewer `items` is without this step.
    """

    quiz: Quiz
    items: int
    right: int


class ScreeningResult(NamedTuple):
    """One try at the screening items: how many of how many were right, and whether these are enough."""

    number: int
    right: int
    of: int
    passed: bool


class ScreeningPlace(NamedTuple):
    """One screening item as a page may show it; nothing here tells its answer, or the item."""

    position: int
    text: str


class ScreeningPage(NamedTuple):
    """The screening items of a worker's next try; `number` goes into the form, so that a form counts as one try."""

    number: int
    places: tuple[ScreeningPlace, ...]


_round: Any = bindparam("round")
_worker: Any = bindparam("worker")
_removed = exists().where(
    col(Removal.round_id) == _round, col(Removal.worker_id) == _worker, col(Removal.reinstated_at).is_(None)
)
_items = select_columns(col(CheckItem.id)).where(col(CheckItem.round_id) == _round, col(CheckItem.use) == SCREENING)
_IN_ROUND: Any = select_columns(
    _removed.label("removed"),
    exists().where(col(Page.round_id) == _round, col(Page.worker_id) == _worker).label("begun"),
    select_columns(func.count())
    .select_from(_items.limit(bindparam("items")).subquery())
    .scalar_subquery()
    .label("items"),
)


def validator_step(session: Session, round_: Round, worker: Worker, entry: Entry, now: datetime) -> Step:
    """Return where a worker stands on the way to the pages of a round: CONSENT, QUIZ, SCREENING, BARRED or READY.

    Who was removed from the round, or failed its screening items, stays barred from it when the bar itself is over; it
    is the bar that is returned. A lifted bar lets those in who failed the items; the removed are let in by
    reinstating them.
    """
    step = step_of(session, worker, entry.quiz, now)
    if step.name == BARRED:
        return step
    found = columns(session, _IN_ROUND, round=round_.id, worker=worker.id, items=entry.items).one()
    if found.removed:
        return Step(BARRED, _last_bar(session, round_, worker, entry))
    # Whoever has begun goes on, and a round with too few items has no such step.
    if step.name != READY or found.begun or found.items < entry.items or not entry.items:
        return step
    tries = _tries(session, round_, worker, entry)
    if not tries:
        return Step(SCREENING)
    if tries[-1].passed:
        return step
    held = _last_bar(session, round_, worker, entry)
    if held is not None and held.lifted_at is not None:
        return step
    return Step(SCREENING) if len(_drawn(session, round_, worker, entry)) == entry.items else Step(BARRED, held)


def require_admitted(session: Session, round_: Round, worker: Worker, entry: Entry, now: datetime) -> None:
    """Raise NotAllowed unless a worker may be given pages of the round, and give them in."""
    step = validator_step(session, round_, worker, entry, now)
    if step.name == BARRED:
        raise NotAllowed(f"you may not validate in round {round_.number}; open the round to read why")
    if step.name != READY:
        missing = {CONSENT: "your consent", QUIZ: "the questions about the work", SCREENING: "the first sentences"}
        raise NotAllowed(f"the pages of round {round_.number} come after {missing[step.name]}; open the round again")


def screening_page(session: Session, round_: Round, worker: Worker, entry: Entry) -> ScreeningPage:
    """Return the items of a worker's next try, the same ones until it is given in."""
    drawn = _drawn(session, round_, worker, entry)
    number = len(_tries(session, round_, worker, entry)) + 1
    return ScreeningPage(number, tuple(ScreeningPlace(place, item.text) for place, item in enumerate(drawn, 1)))


def give_in_screening(
    session: Session,
    round_: Round,
    worker: Worker,
    entry: Entry,
    number: int,
    answers: Mapping[int, Answer],
    at: datetime,
) -> ScreeningResult:
    """Keep a worker's answers to the screening items, by position, and bar the worker where too few are right.

    A form that comes again is not judged again: what was kept is returned. Raises BadInput for positions without an
    answer, no label of the task, and a form that is not of the next try; NotAllowed for whoever is not at this step.
    """
    lock_worker(session, worker)
    tries = _tries(session, round_, worker, entry)
    known = next((one for one in tries if one.number == number), None)
    if known is not None:
        return known
    if validator_step(session, round_, worker, entry, at).name != SCREENING:
        raise NotAllowed(f"there are no first sentences for you to answer in round {round_.number}; open it again")
    if number != len(tries) + 1:
        raise BadInput(f"this form is of try {number}, and the next one is {len(tries) + 1}; load the page again")
    drawn = _drawn(session, round_, worker, entry)
    missing = [str(place) for place in range(1, len(drawn) + 1) if place not in answers]
    if missing:
        which = f"sentence {missing[0]} has" if len(missing) == 1 else f"sentences {', '.join(missing)} have"
        raise BadInput(f"{which} no answer; answer every one")
    task = get_task(round_.task)
    for place, item in enumerate(drawn, 1):
        assert item.id is not None and worker.id is not None
        session.add(check_answer(task, item.id, worker.id, answers[place], at))
    session.flush()
    result = _tries(session, round_, worker, entry)[-1]
    if not result.passed:
        evidence = {"round": round_.number, "right": result.right, "of": result.of, "wanted": entry.right}
        until = at + timedelta(days=entry.quiz.bar_days)
        bar(session, worker, entry.quiz.work, KNOWN_ANSWERS_MISSED, evidence, at, until)
    return result


def _tries(session: Session, round_: Round, worker: Worker, entry: Entry) -> list[ScreeningResult]:
    rows = session.exec(
        select(CheckAnswer.label, CheckItem.label)
        .join(CheckItem, col(CheckItem.id) == col(CheckAnswer.check_item_id))
        .where(CheckItem.round_id == round_.id, CheckItem.use == SCREENING, CheckAnswer.worker_id == worker.id)
        .order_by(col(CheckAnswer.id))
    ).all()
    tries: list[ScreeningResult] = []
    # A try is kept whole or not at all, so the answers in their order are one try after the other.
    for start in range(0, len(rows), entry.items):
        mine = rows[start : start + entry.items]
        right = sum(said == label for said, label in mine)
        tries.append(ScreeningResult(len(tries) + 1, right, len(mine), right >= entry.right))
    return tries


def _drawn(session: Session, round_: Round, worker: Worker, entry: Entry) -> Sequence[CheckItem]:
    """Return the items of the next try: by lot, and the labels in turn, so that no one answer is right for many."""
    met = select(CheckAnswer.check_item_id).where(CheckAnswer.worker_id == worker.id)
    items = session.exec(
        select(CheckItem).where(
            CheckItem.round_id == round_.id, CheckItem.use == SCREENING, col(CheckItem.id).not_in(met)
        )
    ).all()

    def lot(item: CheckItem) -> bytes:
        return hashlib.blake2b(repr((round_.plan["seed"], worker.platform_id, item.text_key)).encode()).digest()

    by_label: dict[str, list[CheckItem]] = defaultdict(list)
    for item in sorted(items, key=lot):
        by_label[item.label].append(item)
    in_turn = chain.from_iterable(zip_longest(*(by_label[label] for label in sorted(by_label))))
    return sorted([item for item in in_turn if item is not None][: entry.items], key=lot)


def _last_bar(session: Session, round_: Round, worker: Worker, entry: Entry) -> Bar | None:
    """Return the last bar that began with something in this round."""
    bars = session.exec(
        select(Bar).where(Bar.worker_id == worker.id, Bar.work == entry.quiz.work).order_by(col(Bar.id).desc())
    )
    return next((held for held in bars if held.evidence.get("round") == round_.number), None)
