"""The pages of validators: a page of sentences, giving it in, and where a worker finds work at all."""

import re
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import NamedTuple, TypeVar

from flask import Blueprint, flash, jsonify, redirect, render_template, request, url_for
from sqlmodel import Session, col, select
from werkzeug.wrappers import Response as AnyResponse

from dynaround.database import reading, writing
from dynaround.errors import BadInput, DynaroundError, NotAllowed
from dynaround.tables import OPEN, Example, Round, Worker
from rounds.lifecycle import AUTHORING, VALIDATING, is_on
from rounds.sittings import open_sitting
from server.access import current_engine, current_time, current_worker_id, workers_only
from server.asking import sentence_of
from server.error_pages import status_of
from server.page_turns import page_turn
from server.screenings import screen_if_due
from server.validate_view import (
    OwnPages,
    ValidationOffer,
    is_collecting,
    own_pages,
    read_answers,
    sent_positions,
    sheet_of,
    validation_offer,
)
from server.validator_onboarding_pages import page_before
from workers.assignment import Answer
from workers.giving_in import CannotJudge, give_in_page
from workers.onboarding import READY
from workers.places import Nothing, PageView, next_page, page_in_front, put_in_front
from workers.screening import is_due
from workers.validator_onboarding import validator_step

_NUMBER = "<int(max=2147483647):number>"
_SECONDS = re.compile(r"[0-9]{1,6}(\.[0-9]{1,3})?", re.ASCII)

Asked = TypeVar("Asked")

validate_pages = Blueprint("validate", __name__)


class Work(NamedTuple):
    """The numbers of the rounds that a worker may write for and validate in; None: there is none."""

    write: int | None
    validate: int | None


def work_for(session: Session, worker: Worker) -> Work:
    """Return what work there is for a worker: the open round, where its plan and its switches let people in."""
    round_ = session.exec(select(Round).where(Round.state == OPEN)).one_or_none()
    if round_ is None:
        return Work(None, None)
    unfinished = round_.plan.get("authoring") is not None and open_sitting(session, round_, worker, current_time())
    writes = unfinished or is_on(session, round_, AUTHORING)
    return Work(round_.number if writes else None, round_.number if is_on(session, round_, VALIDATING) else None)


@validate_pages.get("/work")
@workers_only
def work() -> str | AnyResponse:
    """Offer the work there is; where there is one kind alone, or nothing to validate yet, go to the other."""
    with reading(current_engine()) as session:
        found = work_for(session, _me(session))
        if found.write is not None and not _has_examples(session, found.write):
            found = found._replace(validate=None)
        offer = None if found.validate is None else validation_offer(session, found.validate)
    if found.write is not None and found.validate is None:
        return redirect(url_for("author.choose"), 303)
    if found.validate is not None and found.write is None:
        return redirect(url_for("validate.choose"), 303)
    return render_template("validate/work.html", work=found, offer=offer)


def _has_examples(session: Session, number: int) -> bool:
    mine = select(Example.id).join(Round, col(Round.id) == col(Example.round_id)).where(Round.number == number)
    return session.exec(mine.limit(1)).first() is not None


@validate_pages.get("/validate")
@workers_only
def choose() -> str | AnyResponse:
    """Open the round that is validated; where there is none, tell what was given in before."""
    with reading(current_engine()) as session:
        found = work_for(session, _me(session))
        if found.validate is not None:
            return redirect(url_for("validate.page", number=found.validate), 303)
        rounds = session.exec(select(Round).order_by(col(Round.number))).all()
        past = [(round_.number, own_pages(session, round_, current_worker_id())) for round_ in rounds]
    return render_template("validate/choose.html", past=[(number, own) for number, own in past if own.pages])


@validate_pages.get(f"/rounds/{_NUMBER}/validate")
@workers_only
def page(number: int) -> str | AnyResponse | tuple[str, int]:
    """Show the page in front of a validator, else the next one; before the first, what comes before the work."""
    with page_turn():
        return _page(number)


def _page(number: int) -> str | AnyResponse | tuple[str, int]:
    with reading(current_engine()) as session:
        offer = validation_offer(session, number)
        if offer.round.state != OPEN:
            own = own_pages(session, offer.round, current_worker_id())
            reason = f"Round {number} is {offer.round.state}; nobody validates in it any more."
            return _nothing_page(offer, own, reason), 409
        me = _me(session)
        step = validator_step(session, offer.round, me, offer.entry, current_time())
        desk = _desk(session, offer, me) if step.name == READY else None
    return page_before(offer, step) if desk is None else _desk_page(offer, desk)


class _Desk(NamedTuple):
    """Who validates, what they did so far, and the page in front of them, where nothing needs to be written for it."""

    me: Worker
    own: OwnPages
    page: PageView | None


def _desk(session: Session, offer: ValidationOffer, me: Worker) -> _Desk:
    own = own_pages(session, offer.round, current_worker_id())
    return _Desk(me, own, page_in_front(session, offer.round, me, offer.settings, current_time()))


def _desk_page(offer: ValidationOffer, desk: _Desk, error: DynaroundError | None = None) -> str:
    """Return the page in front of a validator, else the next one; with an `error` in what was sent, it is told."""
    found: PageView | Nothing
    if desk.page is not None:
        found = desk.page
    else:
        with writing(current_engine()) as session:
            found = _asking(next_page, session, offer, desk.me)()
    if isinstance(found, Nothing):
        return _nothing_page(offer, desk.own, found.reason)
    return _sheet_page(offer, desk.own, found, error)


def _asking(
    next_one: Callable[..., Asked], session: Session, offer: ValidationOffer, me: Worker
) -> Callable[[], Asked]:
    """Return what asks for the next page, in the one way or the other; what the round allows is read at once."""
    return partial(
        next_one,
        session,
        offer.round,
        me,
        offer.settings,
        validating=is_on(session, offer.round, VALIDATING),
        collecting=is_collecting(session, offer.round),
        now=current_time(),
        seed=offer.round.plan["seed"],
    )


def _sheet_page(offer: ValidationOffer, own: OwnPages, found: PageView, error: DynaroundError | None) -> str:
    """Return a page of sentences; where what was sent was not taken, with that and with why."""
    problems, complaint = {}, None
    # Another page than the one that was sent has no answers yet.
    same = error is not None and request.form.get("page") == str(found.page_id)
    if same:
        positions = [place.position for place in found.places]
        problems = read_answers(offer.task, positions, request.form, flags=True).problems
    if error is not None:
        complaint = sentence_of(error)
    sheet = sheet_of(offer, found, request.form if same else None, problems, complaint)
    return render_template("validate/page.html", offer=offer, sheet=sheet, until=found.until, own=own)


def _nothing_page(offer: ValidationOffer, own: OwnPages, reason: str) -> str:
    return render_template("validate/nothing.html", offer=offer, reason=reason, own=own)


@validate_pages.post(f"/rounds/{_NUMBER}/validate")
@workers_only
def give_in(number: int) -> AnyResponse | tuple[str | AnyResponse, int]:
    """Store the answers of a whole page, or none of them; a program that asks for JSON is told no more than that.

    Who may give in a page is whoever was handed it out. A browser goes on to the next page, which is put there in the
    same transaction.
    """
    with page_turn():
        answer, to_screen = _given_in(number)
    # Judging takes long in a large round, and nobody else needs to wait for it.
    if to_screen is not None:
        screen_if_due(to_screen.round, to_screen.plan)
    return answer


class _Taken(NamedTuple):
    """What is told of a page that was sent, and the round that is to be screened because of it."""

    answer: AnyResponse | tuple[str | AnyResponse, int]
    to_screen: ValidationOffer | None = None


def _given_in(number: int) -> _Taken:
    as_json = request.accept_mimetypes.best_match(["text/html", "application/json"]) == "application/json"
    with reading(current_engine()) as session:
        offer = validation_offer(session, number)
    try:
        due = _store(offer, goes_on=not as_json)
    except DynaroundError as error:
        if as_json:
            return _Taken((jsonify(error=sentence_of(error)), status_of(error)))
        if not isinstance(error, BadInput):
            raise
        with reading(current_engine()) as session:
            desk = _desk(session, offer, _me(session))
        return _Taken((_desk_page(offer, desk, error), status_of(error)))
    told = (jsonify(given_in=True), 201) if as_json else redirect(url_for("validate.page", number=number), 303)
    return _Taken(told, offer if due else None)


def _store(offer: ValidationOffer, *, goes_on: bool) -> bool:
    """Store what the form says, and say whether the round is to be screened.

    Raises BadInput where the form has something else than answers of the page.
    """
    form, now = request.form, current_time()
    sent = form.get("page", "")
    page_id = int(sent) if sent.isascii() and sent.isdigit() and len(sent) < 10 else 0
    read = read_answers(offer.task, sent_positions(form), form, flags=True)
    if read.problems:
        position, problem = min(read.problems.items())
        raise BadInput(f"sentence {position}: {problem}; choose again")
    seconds = _seconds_each(form.get("seconds", ""), len(read.answers))
    answers: dict[int, Answer | CannotJudge] = {
        position: answer._replace(seconds=seconds) if isinstance(answer, Answer) else answer
        for position, answer in read.answers.items()
    }
    with writing(current_engine()) as session:
        # On PostgreSQL asked before the round's turn is taken, which keeps all others waiting.
        following = _following(session, offer) if goes_on else None
        given = give_in_page(
            session,
            offer.round,
            page_id,
            current_worker_id(),
            answers,
            comment=form.get("comment", ""),
            flags_that_hold=offer.plan.flags_that_hold,
            task=offer.task,
            now=now,
        )
        due = is_due(session, offer.round)
        # Whom the screening of this batch may remove gets no places yet. Who was removed while waiting for the turn has
        # been told READY before; their answers are kept all the same.
        if following is not None and not due:
            with suppress(NotAllowed):
                following()
    if goes_on and given.at != now:
        flash("That page was given in before; the answers that came first stand.")
    return due


def _following(session: Session, offer: ValidationOffer) -> Callable[[], object] | None:
    """Return what puts the next page in front of whoever gives one in, so that loading it need not write.

    None where the worker may have none.
    """
    me = _me(session)
    if validator_step(session, offer.round, me, offer.entry, current_time()).name != READY:
        return None
    return _asking(put_in_front, session, offer, me)


def _seconds_each(sent: str, places: int) -> float | None:
    """Return the seconds that each sentence took on average, where the page measured any."""
    return round(float(sent) / places, 3) if places and _SECONDS.fullmatch(sent) else None


def _me(session: Session) -> Worker:
    return session.get_one(Worker, current_worker_id())
