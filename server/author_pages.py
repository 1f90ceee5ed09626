"""The pages of authors: writing against the live model, and what may be done with an attempt."""

import re
import secrets
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import timedelta
from random import SystemRandom
from typing import NamedTuple

from flask import Blueprint, Response, flash, redirect, render_template, request, url_for
from sqlmodel import Session, col, select
from werkzeug.wrappers import Response as AnyResponse

from dynaround.database import reading, writing
from dynaround.errors import BadInput, Busy, DynaroundError, IllegalMove, NotAllowed, Unavailable
from dynaround.tables import CONFIRMED, OPEN, TAKEN_BACK, Round, Worker, Writing
from dynaround.tasks import get_task
from rounds import sittings
from rounds.attempts import Submitted, Typing, submit
from rounds.authored_facts import Outcome, outcomes_of
from rounds.decisions import WAITING, decide, give_up, own_writing, waiting_attempt
from rounds.lifecycle import AUTHORING, find_round, is_on
from rounds.sittings import (
    authoring_of,
    current_writing,
    end_sitting,
    lock_authored_round,
    open_sitting,
    require_writing_on,
    show_prompt,
    touch,
    writing_in_use,
)
from server.access import current_engine, current_time, current_worker_id, workers_only
from server.asking import live_model, sentence_of, told_of
from server.author_view import AuthorView, author_view, finished_in, last_sitting, own_work
from server.error_pages import status_of
from server.form_fields import asked_form, form_fields
from server.onboarding_pages import page_before, standing_in
from workers.assignment import checked_form

# What an author may mend at once is told on the page itself, with the text kept; all else is an error page.
_ON_THE_PAGE = (BadInput, Unavailable, Busy, IllegalMove)
_NOT_SENT = {Unavailable: "The model cannot answer now", Busy: "Not sent yet"}
# What the page makes, and nothing that a database could not store.
_TOKEN = re.compile(r"[A-Za-z0-9_-]{16,64}")
# How long ago a sitting may have been noted as in use before looking at the page notes it again.
_A_WHILE = timedelta(minutes=1)

_NUMBER = "<int(max=2147483647):number>"
_ATTEMPT = "<int(max=2147483647):attempt>"

author_pages = Blueprint("author", __name__)


class Refused(NamedTuple):
    """Why something was not sent: told on the page, beside what was sent, which is kept.

    `about_text` says whether the text itself is to be mended.
    """

    title: str
    sentence: str
    status: int
    text: str
    form: Mapping[str, str]
    about_text: bool


def _refused(error: DynaroundError, about_text: bool) -> Refused:
    title, form = _NOT_SENT.get(type(error), "Not sent"), request.form
    return Refused(title, told_of(error), status_of(error), form.get("text", ""), form, about_text)


@author_pages.get("/write")
@workers_only
def choose() -> str | AnyResponse:
    """Open the round that people write for; where there is none, tell what was written and earned before."""
    with reading(current_engine()) as session:
        me = _me(session)
        rounds = session.exec(select(Round).order_by(col(Round.number))).all()
        authored = [round_ for round_ in rounds if round_.plan.get("authoring") is not None]
        for round_ in authored:
            unfinished = round_.state == OPEN and open_sitting(session, round_, me, current_time()) is not None
            if unfinished or is_on(session, round_, AUTHORING):
                return redirect(url_for("author.write", number=round_.number), 303)
        past = [(round_.number, own_work(session, round_, current_worker_id())) for round_ in authored]
    return render_template("author/choose.html", past=[(number, own) for number, own in past if own.counts.attempts])


@author_pages.get(f"/rounds/{_NUMBER}/write")
@workers_only
def write(number: int) -> str | AnyResponse | tuple[str, int]:
    """Show the example in the making, a new one where there is none; before the first, what comes before the work."""
    with reading(current_engine()) as session:
        round_ = find_round(session, number)
        standing = standing_in(session, round_) if round_.state == OPEN else None
        view = None
        if standing is not None and standing.may_write:
            view = _view_in_use(session, round_, standing.outcomes)
    if view is not None:
        return _view_page(view), 200
    first = None if standing is None else page_before(standing)
    return first if first is not None else author_page(number)


def _view_in_use(session: Session, round_: Round, outcomes: Sequence[Outcome]) -> AuthorView | None:
    """Return what the page shows of an example in the making that was just noted as in use; None: there is none."""
    now = current_time()
    making = writing_in_use(session, round_, current_worker_id(), now - _A_WHILE)
    return None if making is None else author_view(session, round_, making, outcomes, now)


def author_page(number: int, refused: Refused | None = None) -> tuple[str, int]:
    """Return the writing page with its status; where something was `refused` it says why, and keeps what was typed."""
    try:
        view = _view(number)
    except IllegalMove as reason:
        return _pause_page(number, reason, refused), status_of(reason)
    return _view_page(view, refused), 200 if refused is None else refused.status


def _view_page(view: AuthorView, refused: Refused | None = None) -> str:
    # Loaded while the author writes, not while the first one waits for the answer.
    live_model(view.round, view.task).warm()
    return render_template(
        "author/write.html",
        view=view,
        refused=refused,
        fields=form_fields(view.task.form),
        # At least as long as `rounds.attempts.submit` wants it; 32 characters of 192 random bits.
        token=secrets.token_urlsafe(24),
    )


def _view(number: int) -> AuthorView:
    """Return what the writing page shows, of a new example where there is none in the making.

    Raises IllegalMove where there is none and none can be begun.
    """
    with reading(current_engine()) as session:
        round_ = find_round(session, number)
        if round_.state != OPEN:
            raise IllegalMove(f"round {number} is {round_.state}; nobody writes in it any more")
        outcomes = outcomes_of(session, round_, current_worker_id())
        view = _view_in_use(session, round_, outcomes)
    if view is not None:
        return view
    with writing(current_engine()) as session:
        round_ = lock_authored_round(session, number)
        making_id = current_writing(session, round_, _me(session), SystemRandom(), current_time()).id
    with reading(current_engine()) as session:
        return author_view(session, round_, session.get_one(Writing, making_id), outcomes, current_time())


def _pause_page(number: int, reason: IllegalMove, refused: Refused | None) -> str:
    """Return the page of a round in which this author cannot write now; a text that was sent is shown for keeping."""
    with reading(current_engine()) as session:
        round_ = find_round(session, number)
        sitting_id = last_sitting(session, round_, current_worker_id())
        return render_template(
            "author/pause.html",
            number=number,
            round=round_,
            reason=sentence_of(reason),
            refused=refused,
            finished=finished_in(session, get_task(round_.task), authoring_of(round_), sitting_id),
            own=own_work(session, round_, current_worker_id()),
        )


@author_pages.post(f"/rounds/{_NUMBER}/attempts")
@workers_only
def submit_text(number: int) -> AnyResponse | tuple[str, int]:
    """Send a text to the live model and store the attempt; the page then tells how it went."""
    form = request.form
    with reading(current_engine()) as session:
        standing = standing_in(session, find_round(session, number))
    if page_before(standing) is not None:
        with suppress(IllegalMove, NotAllowed):
            keep_draft(number)
        return redirect(url_for("author.write", number=number), 303)
    token = form.get("token", "")
    round_, task = standing.offer.round, standing.offer.task
    try:
        extra = checked_form(task, asked_form(task.form, form))
    except BadInput as error:
        return author_page(number, _refused(error, about_text=False))
    sent = Submitted(
        token=token if _TOKEN.fullmatch(token) else "",
        writing_id=_whole(form.get("writing")) or 0,
        text=form.get("text", ""),
        form=extra,
        typing=Typing(_whole(form.get("pasted")), _whole(form.get("keystrokes")), _seconds(form.get("seconds"))),
    )
    ask = live_model(round_, task).ask
    try:
        submit(current_engine(), ask, number, current_worker_id(), sent, now=current_time)
    except _ON_THE_PAGE as error:
        return author_page(number, _refused(error, about_text=isinstance(error, BadInput)))
    return redirect(url_for("author.write", number=number), 303)


@author_pages.post(f"/rounds/{_NUMBER}/attempts/{_ATTEMPT}/confirm")
@workers_only
def confirm(number: int, attempt: int) -> AnyResponse:
    """Keep that other people would agree: the attempt is the example."""
    return _decided(number, attempt, CONFIRMED)


@author_pages.post(f"/rounds/{_NUMBER}/attempts/{_ATTEMPT}/take-back")
@workers_only
def take_back(number: int, attempt: int) -> AnyResponse:
    """Take a fooling attempt back: it is returned, and its text is never an example."""
    return _decided(number, attempt, TAKEN_BACK)


def _decided(number: int, attempt: int, decision: str) -> AnyResponse:
    with writing(current_engine()) as session:
        decide(session, number, current_worker_id(), attempt, decision, current_time())
    return redirect(url_for("author.write", number=number), 303)


@author_pages.post(f"/rounds/{_NUMBER}/next")
@workers_only
def next_example(number: int) -> AnyResponse:
    """Give up and go on: the last attempt is the example, without one there is none."""
    with writing(current_engine()) as session:
        give_up(session, number, current_worker_id(), _whole(request.form.get("writing")) or 0, current_time())
    return redirect(url_for("author.write", number=number), 303)


@author_pages.post(f"/rounds/{_NUMBER}/prompt")
@workers_only
def another_prompt(number: int) -> AnyResponse:
    """Show another prompt for the example in the making; it costs nothing and is counted.

    The form names the prompt that it replaces, so that a form that comes again replaces nothing more.
    """
    with reading(current_engine()) as session:
        standing = standing_in(session, find_round(session, number))
    if page_before(standing) is not None:
        return redirect(url_for("author.write", number=number), 303)
    with writing(current_engine()) as session:
        round_ = lock_authored_round(session, number)
        require_writing_on(session, round_)
        making = own_writing(session, round_, current_worker_id(), _whole(request.form.get("writing")) or 0)
        touch(session, making, current_time())
        if waiting_attempt(session, making) is not None:
            raise IllegalMove(WAITING)
        if making.prompt_id is None or making.prompt_id == _whole(request.form.get("prompt")):
            try:
                show_prompt(session, round_, _me(session), making, SystemRandom(), current_time())
            except IllegalMove as none_left:
                flash(sentence_of(none_left))
    # The fragment puts the box into focus: there the new sentence stands.
    return redirect(url_for("author.write", number=number, _anchor="text"), 303)


@author_pages.post(f"/rounds/{_NUMBER}/draft")
@workers_only
def keep_draft(number: int) -> Response:
    """Keep what stands in the writing box, so that it survives a reload on any device."""
    with writing(current_engine()) as session:
        round_ = lock_authored_round(session, number)
        making = own_writing(session, round_, current_worker_id(), _whole(request.form.get("writing")) or 0)
        # What is too long to send is kept for shortening, within reason.
        sittings.keep_draft(session, making, request.form.get("text", "")[: 4 * authoring_of(round_).max_characters])
        touch(session, making, current_time())
    return Response(status=204)


@author_pages.post(f"/rounds/{_NUMBER}/end")
@workers_only
def end(number: int) -> AnyResponse:
    """End the sitting; an example in the making becomes none."""
    with writing(current_engine()) as session:
        round_ = lock_authored_round(session, number)
        sitting = open_sitting(session, round_, _me(session), current_time())
        if sitting is not None:
            end_sitting(session, sitting, current_time())
    flash("The sitting is over. Thank you.")
    return redirect(url_for("accounts.account"), 303)


def _me(session: Session) -> Worker:
    return session.get_one(Worker, current_worker_id())


def _whole(sent: str | None) -> int | None:
    """Return a whole number that a database takes, or None."""
    return int(sent) if sent is not None and sent.isascii() and sent.isdigit() and len(sent) < 10 else None


def _seconds(sent: str | None) -> float | None:
    try:
        return float(sent or "")
    except ValueError:
        return None
