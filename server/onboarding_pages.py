"""What comes before writing: consent, instructions with practice, comprehension questions, and bars to object to."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import NamedTuple

from flask import Blueprint, flash, redirect, render_template, request, url_for
from sqlmodel import Session
from werkzeug.wrappers import Response as AnyResponse

from dynaround.database import reading, writing
from dynaround.errors import BadInput, NotAllowed, Unavailable
from dynaround.tables import Round, Worker
from dynaround.task import Task
from dynaround.tasks import get_task
from dynaround.text_rules import complaint_about
from rounds.authored_facts import Outcome, outcomes_of
from rounds.lifecycle import AUTHORING, find_round
from rounds.plan import AuthoringPlan, RoundPlan
from rounds.sittings import authoring_of
from server.access import current_engine, current_time, current_worker_id, workers_only
from server.asking import live_model, sentence_of, told_of
from server.author_view import Rates, in_order, own_work, rates_of
from server.error_pages import status_of
from workers import onboarding
from workers.onboarding import BARRED, CONSENT, QUIZ, READY, Quiz, Step, grade, quiz_state, step_of
from workers.standing import LONGEST_OBJECTION, DecidedClaim, bar_for_refuted, current_bar, object_to

_NUMBER = "<int(max=2147483647):number>"

onboarding_pages = Blueprint("onboarding", __name__)


class Offer(NamedTuple):
    """What a round offers its authors, as the pages before the work tell of it."""

    round: Round
    task: Task
    plan: AuthoringPlan
    rates: Rates
    prompts: int

    @property
    def quiz(self) -> Quiz:
        """The comprehension questions of this round's kind of task."""
        guide = self.task.guide
        return Quiz(AUTHORING, guide.version, guide.author_quiz, self.plan.quiz_attempts, self.plan.bar_days)


class Practice(NamedTuple):
    """A practice text with what the model says of it, or with why it says nothing."""

    text: str
    complaint: str | None
    about_text: bool
    said: str | None
    probs: Sequence[tuple[str, float]]


def offer_of(session: Session, number: int) -> Offer:
    """Return what a round offers; raise NotFound or IllegalMove where nobody writes in it."""
    return _offer_of(find_round(session, number))


def _offer_of(round_: Round) -> Offer:
    plan = RoundPlan.model_validate(round_.plan)
    return Offer(round_, get_task(round_.task), authoring_of(round_), rates_of(plan.pay), plan.prompts)


class Standing(NamedTuple):
    """Where an author stands in a round before each page: the step, what became of the examples, the claims among
    these where so many were refuted that a bar is due.
    """

    offer: Offer
    step: Step
    outcomes: Sequence[Outcome]
    refuted: Sequence[DecidedClaim]

    @property
    def may_write(self) -> bool:
        """Whether nothing stands between the author and the work."""
        return self.step.name == READY and not self.refuted


def standing_in(session: Session, round_: Round) -> Standing:
    """Return where whoever asks stands in a round; raise IllegalMove where nobody writes in it."""
    offer = _offer_of(round_)
    step = step_of(session, _me(session), offer.quiz, current_time())
    outcomes = outcomes_of(session, offer.round, current_worker_id()) if step.name == READY else []
    return Standing(offer, step, outcomes, _refuted(offer, outcomes))


def page_before(standing: Standing) -> str | AnyResponse | None:
    """Return the page that stands between a worker and the work, or None where nothing does."""
    offer, step, _, refuted = standing
    number = offer.round.number
    if refuted:
        with writing(current_engine()) as session:
            plan = offer.plan
            barred = bar_for_refuted(
                session,
                _me(session),
                AUTHORING,
                refuted,
                refuted_claims=plan.refuted_claims,
                of_last_claims=plan.of_last_claims,
                bar_days=plan.bar_days,
                at=current_time(),
            )
        if barred is not None:
            step = step._replace(name=BARRED)
    if step.name == CONSENT:
        return _consent_page(offer)
    if step.name == QUIZ:
        return redirect(url_for("onboarding.quiz", number=number), 303)
    if step.name == BARRED:
        return redirect(url_for("onboarding.barred", number=number), 303)
    return None


def _me(session: Session) -> Worker:
    return session.get_one(Worker, current_worker_id())


def _refuted(offer: Offer, outcomes: Sequence[Outcome]) -> list[DecidedClaim]:
    """Return the author's decided claims where enough were refuted for a bar to be asked for; else none."""
    claims = [
        DecidedClaim(str(outcome.example_id), not outcome.verified, outcome.at)
        for outcome in outcomes
        if outcome.claimed and outcome.verified is not None
    ]
    return claims if sum(claim.refuted for claim in claims) >= offer.plan.refuted_claims else []


@onboarding_pages.post(f"/rounds/{_NUMBER}/consent")
@workers_only
def agree(number: int) -> AnyResponse | tuple[str, int]:
    """Keep that a worker agrees to take part."""
    with reading(current_engine()) as session:
        offer = offer_of(session, number)
    if request.form.get("agreed") != "yes":
        return _consent_page(offer, "Tick the box to take part; without it nothing can be stored."), 400
    with writing(current_engine()) as session:
        onboarding.consent(session, _me(session), offer.quiz.version, current_time())
    return redirect(url_for("onboarding.instructions", number=number), 303)


def _consent_page(offer: Offer, complaint: str | None = None) -> str:
    return render_template("author/consent.html", offer=offer, complaint=complaint)


@onboarding_pages.get(f"/rounds/{_NUMBER}/instructions")
@workers_only
def instructions(number: int) -> str:
    """Show the rules, the worked examples, and a box to practise in."""
    with reading(current_engine()) as session:
        return _instructions_page(session, offer_of(session, number))


@onboarding_pages.post(f"/rounds/{_NUMBER}/practice")
@workers_only
def practise(number: int) -> str | tuple[str, int]:
    """Ask the model about a practice text, which is predicted and never stored."""
    with reading(current_engine()) as session:
        offer = offer_of(session, number)
        if not onboarding.has_consented(session, _me(session), offer.quiz.version):
            raise NotAllowed("practice comes after your consent; give it first")
        if step_of(session, _me(session), offer.quiz, current_time()).name != QUIZ:
            # Otherwise whoever writes could try a hundred texts here and send only those that fool the model.
            raise NotAllowed("practice ends with the questions; from then on each text is an attempt")
    text = request.form.get("text", "").strip()
    complaint = complaint_about(text, max_characters=offer.plan.max_characters)
    practice, status = Practice(text, complaint, True, None, ()), 400
    if complaint is None:
        try:
            prediction = live_model(offer.round, offer.task).ask(text).prediction
            practice = Practice(text, None, False, prediction.label, in_order(offer.task, prediction.probs))
            status = 200
        except Unavailable as error:
            practice, status = Practice(text, told_of(error), False, None, ()), status_of(error)
    with reading(current_engine()) as session:
        return _instructions_page(session, offer, practice), status


def _instructions_page(session: Session, offer: Offer, practice: Practice | None = None) -> str:
    step = step_of(session, _me(session), offer.quiz, current_time())
    if step.name != CONSENT:
        # Loaded while the author reads.
        live_model(offer.round, offer.task).warm()
    return render_template("author/instructions.html", offer=offer, step=step.name, practice=practice)


@onboarding_pages.get(f"/rounds/{_NUMBER}/quiz")
@workers_only
def quiz(number: int) -> str | AnyResponse:
    """Show the comprehension questions, with what was wrong in the last try."""
    with reading(current_engine()) as session:
        offer = offer_of(session, number)
        if step_of(session, _me(session), offer.quiz, current_time()).name != QUIZ:
            return redirect(url_for("author.write", number=number), 303)
        return _quiz_page(session, offer)


@onboarding_pages.post(f"/rounds/{_NUMBER}/quiz")
@workers_only
def answer_quiz(number: int) -> AnyResponse | tuple[str, int]:
    """Grade one try; all right leads on, else the page says what was wrong."""
    sent = request.form
    next_page = redirect(url_for("author.write", number=number), 303)
    # The try that the form was made for; without one it is none.
    try_number = sent.get("try", default=0, type=int)
    try:
        with writing(current_engine()) as session:
            offer = offer_of(session, number)
            result = grade(session, _me(session), offer.quiz, try_number, sent, current_time())
    except NotAllowed:
        # Barred, passed or without consent, from another window: the next page tells.
        return next_page
    except BadInput as error:
        with reading(current_engine()) as session:
            return _quiz_page(session, offer_of(session, number), sentence_of(error), sent), 400
    if result.passed:
        flash("All answers are right. Here is your first target label.")
    return next_page


def _quiz_page(
    session: Session, offer: Offer, complaint: str | None = None, sent: Mapping[str, str] | None = None
) -> str:
    state = quiz_state(session, _me(session), offer.quiz, current_time())
    return render_template("author/quiz.html", offer=offer, state=state, complaint=complaint, sent=sent)


@onboarding_pages.get(f"/rounds/{_NUMBER}/barred")
@workers_only
def barred(number: int) -> str | AnyResponse:
    """Tell a worker why they cannot write at the moment, until when, and let them object."""
    return _barred_page(number) or redirect(url_for("author.write", number=number), 303)


def _barred_page(number: int, complaint: str | None = None, text: str = "") -> str | None:
    with reading(current_engine()) as session:
        offer = offer_of(session, number)
        bar = current_bar(session, _me(session), AUTHORING, current_time())
        own = own_work(session, offer.round, current_worker_id())
    if bar is None:
        return None
    told = {"complaint": complaint, "text": text, "longest": LONGEST_OBJECTION}
    return render_template("author/barred.html", offer=offer, bar=bar, own=own, **told)


@onboarding_pages.post(f"/rounds/{_NUMBER}/objection")
@workers_only
def object_to_bar(number: int) -> AnyResponse | tuple[str, int]:
    """Keep what a worker says against a bar, for the launcher to read."""
    text = request.form.get("text", "")
    try:
        # Sent twice, the first words stand, and the page shows them.
        with suppress(NotAllowed), writing(current_engine()) as session:
            bar = current_bar(session, _me(session), AUTHORING, current_time())
            if bar is not None:
                object_to(session, bar, text, current_time())
    except BadInput as error:
        page = _barred_page(number, sentence_of(error), text)
        if page is not None:
            return page, 400
    return redirect(url_for("onboarding.barred", number=number), 303)
