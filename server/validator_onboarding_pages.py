"""What comes before validating: consent, instructions, questions, first sentences, and a bar to object to."""

from collections.abc import Mapping
from contextlib import suppress

from flask import Blueprint, flash, redirect, render_template, request, url_for
from sqlmodel import Session
from werkzeug.wrappers import Response as AnyResponse

from dynaround.database import reading, writing
from dynaround.errors import BadInput, NotAllowed
from dynaround.tables import SCREENING, Worker
from server.access import current_engine, current_time, current_worker_id, workers_only
from server.asking import sentence_of
from server.validate_view import ValidationOffer, own_pages, read_answers, sheet_of, validation_offer
from workers import onboarding
from workers.assignment import Answer
from workers.onboarding import BARRED, CONSENT, QUIZ, Step, grade, quiz_state
from workers.standing import LONGEST_OBJECTION, object_to
from workers.validator_onboarding import give_in_screening, screening_page, validator_step

_VALIDATE = "/rounds/<int(max=2147483647):number>/validate"
# Which page stands for which step.
_PAGES = {QUIZ: "quiz", SCREENING: "screening", BARRED: "barred"}

validator_onboarding_pages = Blueprint("validator_onboarding", __name__)


def page_before(offer: ValidationOffer, step: Step) -> str | AnyResponse:
    """Return the page of a step that stands between a worker and the sentences."""
    if step.name == CONSENT:
        return _consent_page(offer)
    return redirect(url_for(f"validator_onboarding.{_PAGES[step.name]}", number=offer.round.number), 303)


def _where(number: int) -> tuple[ValidationOffer, Step]:
    with reading(current_engine()) as session:
        offer = validation_offer(session, number)
        return offer, _step(session, offer)


def _step(session: Session, offer: ValidationOffer) -> Step:
    return validator_step(session, offer.round, _me(session), offer.entry, current_time())


def _me(session: Session) -> Worker:
    return session.get_one(Worker, current_worker_id())


def _onward(number: int) -> AnyResponse:
    return redirect(url_for("validate.page", number=number), 303)


@validator_onboarding_pages.post(f"{_VALIDATE}/consent")
@workers_only
def agree(number: int) -> AnyResponse | tuple[str, int]:
    """Keep that a worker agrees to take part."""
    offer, _ = _where(number)
    if request.form.get("agreed") != "yes":
        return _consent_page(offer, "Tick the box to take part; without it nothing can be stored."), 400
    with writing(current_engine()) as session:
        onboarding.consent(session, _me(session), offer.entry.quiz.consent_version, current_time())
    return redirect(url_for("validator_onboarding.instructions", number=number), 303)


def _consent_page(offer: ValidationOffer, complaint: str | None = None) -> str:
    return render_template("validate/consent.html", offer=offer, complaint=complaint)


@validator_onboarding_pages.get(f"{_VALIDATE}/instructions")
@workers_only
def instructions(number: int) -> str:
    """Show what the labels mean, the rules and the worked examples."""
    offer, step = _where(number)
    return render_template("validate/instructions.html", offer=offer, step=step.name)


@validator_onboarding_pages.get(f"{_VALIDATE}/quiz")
@workers_only
def quiz(number: int) -> str | AnyResponse:
    """Show the comprehension questions, with what was wrong in the last try."""
    offer, step = _where(number)
    return _quiz_page(offer) if step.name == QUIZ else _onward(number)


@validator_onboarding_pages.post(f"{_VALIDATE}/quiz")
@workers_only
def answer_quiz(number: int) -> AnyResponse | tuple[str, int]:
    """Grade one try; all right leads on, else the page says what was wrong."""
    sent = request.form
    offer, _ = _where(number)
    # Barred, passed or without consent, from another window: the next page tells.
    with suppress(NotAllowed):
        try:
            with writing(current_engine()) as session:
                try_number = sent.get("try", default=0, type=int)
                result = grade(session, _me(session), offer.entry.quiz, try_number, sent, current_time())
        except BadInput as error:
            return _quiz_page(offer, sentence_of(error), sent), 400
        if result.passed:
            flash("All answers are right.")
    return _onward(number)


def _quiz_page(offer: ValidationOffer, complaint: str | None = None, sent: Mapping[str, str] | None = None) -> str:
    with reading(current_engine()) as session:
        state = quiz_state(session, _me(session), offer.entry.quiz, current_time())
    return render_template("validate/quiz.html", offer=offer, state=state, complaint=complaint, sent=sent)


@validator_onboarding_pages.get(f"{_VALIDATE}/first-sentences")
@workers_only
def screening(number: int) -> str | AnyResponse:
    """Show the sentences whose answers are known, all on one page."""
    offer, step = _where(number)
    return _screening_page(offer) if step.name == SCREENING else _onward(number)


@validator_onboarding_pages.post(f"{_VALIDATE}/first-sentences")
@workers_only
def answer_screening(number: int) -> AnyResponse | tuple[str, int]:
    """Judge one try; with enough right the first page comes, else the bar is told."""
    sent = request.form
    offer, _ = _where(number)
    with reading(current_engine()) as session:
        shown = screening_page(session, offer.round, _me(session), offer.entry)
    read = read_answers(offer.task, [place.position for place in shown.places], sent, flags=False)
    # A form that comes again, or that was made before another try, is told of by what it leads to.
    try_number = sent.get("try", default=0, type=int)
    if read.problems and try_number == shown.number:
        return _screening_page(offer, None, read.problems), 400
    answers = {position: answer for position, answer in read.answers.items() if isinstance(answer, Answer)}
    with suppress(NotAllowed):
        try:
            with writing(current_engine()) as session:
                me, now = _me(session), current_time()
                result = give_in_screening(session, offer.round, me, offer.entry, try_number, answers, now)
        except BadInput as error:
            return _screening_page(offer, sentence_of(error)), 400
        if result.passed:
            flash(f"{result.right} of {result.of} are right. Here is your first page.")
    return _onward(number)


def _screening_page(
    offer: ValidationOffer, complaint: str | None = None, problems: Mapping[int, str] | None = None
) -> str:
    with reading(current_engine()) as session:
        shown = screening_page(session, offer.round, _me(session), offer.entry)
    sheet = sheet_of(offer, shown, request.form, problems, complaint)
    return render_template("validate/screening.html", offer=offer, sheet=sheet)


@validator_onboarding_pages.get(f"{_VALIDATE}/barred")
@workers_only
def barred(number: int) -> str | AnyResponse:
    """Tell a worker why they cannot validate, until when, and let them object."""
    offer, step = _where(number)
    return _barred_page(offer, step) if step.name == BARRED else _onward(number)


def _barred_page(offer: ValidationOffer, step: Step, complaint: str | None = None, text: str = "") -> str:
    with reading(current_engine()) as session:
        own = own_pages(session, offer.round, current_worker_id())
    told = {"complaint": complaint, "text": text, "longest": LONGEST_OBJECTION}
    return render_template("validate/barred.html", offer=offer, bar=step.bar, now=current_time(), own=own, **told)


@validator_onboarding_pages.post(f"{_VALIDATE}/objection")
@workers_only
def object_to_bar(number: int) -> AnyResponse | tuple[str, int]:
    """Keep what a worker says against a bar, for the launcher to read."""
    text = request.form.get("text", "")
    offer, step = _where(number)
    try:
        # Sent twice, the first words stand, and the page shows them.
        with suppress(NotAllowed), writing(current_engine()) as session:
            bar = _step(session, offer).bar
            if bar is not None:
                object_to(session, bar, text, current_time())
    except BadInput as error:
        return _barred_page(offer, step, sentence_of(error), text), 400
    return redirect(url_for("validator_onboarding.barred", number=number), 303)
