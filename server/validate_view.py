"""What the pages of validators are made from: what a round offers, what a form said, own counts and pay.

Of a sentence there is the position on its page and the text; nothing else is read, so nothing else can be told.
"""

import hashlib
import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from sqlalchemy import bindparam, func, select
from sqlmodel import Session, col

from dynaround.database import columns
from dynaround.errors import BadInput
from dynaround.tables import SILENT, CheckAnswer, CheckItem, Page, Response, Round
from dynaround.task import Task
from dynaround.tasks import get_task
from rounds.harvest_report import is_harvested
from rounds.lifecycle import AUTHORING, VALIDATING, find_round, is_on
from rounds.plan import RoundPlan, ValidationPlan
from server.form_fields import FormField, asked_form, form_fields
from workers.assignment import Answer, checked_form
from workers.giving_in import CannotJudge
from workers.onboarding import Quiz
from workers.pay import pay_of, shown
from workers.places import PageSettings, PageView
from workers.validator_onboarding import Entry, ScreeningPage

CANNOT = "cannot."
"""Stands before a reason for not judging, so that none can be taken for a label."""
_ANSWERED = re.compile(r"([1-9][0-9]{0,3})[.]answer", re.ASCII)


_round: Any = bindparam("round")
_worker: Any = bindparam("worker")
# By the keys of one worker: the cost grows with what this worker has done, and not with what all have.
_OWN_PAGES = select(
    select(func.count())
    .where(col(Page.round_id) == _round, col(Page.worker_id) == _worker, col(Page.given_in).is_not(None))
    .scalar_subquery(),
    select(func.count())
    .select_from(Response)
    .join(Page, col(Page.id) == col(Response.page_id))
    .where(col(Response.worker_id) == _worker, col(Page.round_id) == _round)
    .scalar_subquery(),
    select(func.count())
    .select_from(CheckAnswer)
    .join(CheckItem, col(CheckItem.id) == col(CheckAnswer.check_item_id))
    .where(col(CheckAnswer.worker_id) == _worker, col(CheckItem.round_id) == _round, col(CheckItem.use) == SILENT)
    .scalar_subquery(),
)


class ValidationOffer(NamedTuple):
    """What a round offers its validators; `page_pay` is what a page pays, as people read it."""

    round: Round
    task: Task
    plan: ValidationPlan
    page_pay: str

    @property
    def entry(self) -> Entry:
        """What stands before the first page."""
        guide, plan = self.task.guide, self.plan
        quiz = Quiz(
            VALIDATING, guide.version, guide.validator_quiz, plan.quiz_attempts, plan.bar_days, own_consent=True
        )
        return Entry(quiz, plan.screening_items, plan.screening_right)

    @property
    def settings(self) -> PageSettings:
        """How pages are made and what holds an example."""
        return PageSettings(**{name: getattr(self.plan, name) for name in PageSettings._fields})


class OwnPages(NamedTuple):
    """What a validator has given in in a round, and what it pays."""

    pages: int
    sentences: int
    earned: str
    page_pay: str


class Place(NamedTuple):
    """One sentence of a page under its number there, 1 for the first; `position` names it in the form.

    `chosen` is what the form said, `form` the fields beyond it, `missing` whether an answer is asked for once more.
    """

    number: int
    position: int
    sentence: str
    chosen: str
    form: Mapping[str, str]
    missing: bool


class Sheet(NamedTuple):
    """The sentences of a page with what was chosen so far; `flags`: they may be left as not to be judged."""

    number: int
    places: Sequence[Place]
    task: Task
    fields: Sequence[FormField]
    comment: str
    complaint: str | None
    flags: bool

    @property
    def draft_key(self) -> str:
        """A name for what a browser remembers of this page: of these sentences alone, whoever sits there next."""
        of = repr((self.number, [(place.position, place.sentence) for place in self.places]))
        return hashlib.blake2b(of.encode(), digest_size=16).hexdigest()

    @property
    def missing(self) -> list[Place]:
        """The sentences that an answer is asked for once more."""
        return [place for place in self.places if place.missing]


class Answered(NamedTuple):
    """What a form said: answers by position, and what is wrong with others, by position."""

    answers: dict[int, Answer | CannotJudge]
    problems: dict[int, str]


def validation_offer(session: Session, number: int) -> ValidationOffer:
    """Return what a round offers its validators; raise NotFound where there is none of this number."""
    round_ = find_round(session, number)
    plan = RoundPlan.model_validate(round_.plan)
    return ValidationOffer(round_, get_task(round_.task), plan.validation, shown(plan.pay.page, plan.pay.currency))


def is_collecting(session: Session, round_: Round) -> bool:
    """Whether examples may still come: people write, or the harvest that the plan wants is not done."""
    assert round_.id is not None
    wanted = RoundPlan.model_validate(round_.plan).size > 0
    return is_on(session, round_, AUTHORING) or (wanted and not is_harvested(session, round_.id))


def own_pages(session: Session, round_: Round, worker_id: int) -> OwnPages:
    """Count what a validator gave in, and what it pays so far.

    Check items are counted like all sentences: a count without them would tell that a page had one.
    """
    pay = RoundPlan.model_validate(round_.plan).pay
    pages, responses, checks = columns(session, _OWN_PAGES, round=round_.id, worker=worker_id).one()
    earned = pay_of(pay.model_dump(exclude={"currency"}), examples=0, verified=0, pages=pages).total
    return OwnPages(pages, responses + checks, shown(earned, pay.currency), shown(pay.page, pay.currency))


def sheet_of(
    offer: ValidationOffer,
    page: PageView | ScreeningPage,
    sent: Mapping[str, str] | None = None,
    problems: Mapping[int, str] | None = None,
    complaint: str | None = None,
) -> Sheet:
    """Return the sentences of a page, with what a form `sent` that was not taken, and where it had `problems`."""
    sent, problems = sent or {}, problems or {}
    fields = form_fields(offer.task.form)
    places = [
        Place(
            number,
            position,
            sentence,
            _word(sent, position),
            {field.name: sent.get(f"{position}.{field.name}", "") for field in fields},
            position in problems,
        )
        for number, (position, sentence) in enumerate(page.places, 1)
    ]
    return Sheet(
        number=page.page_id if isinstance(page, PageView) else page.number,
        places=places,
        task=offer.task,
        fields=fields,
        comment=sent.get("comment", ""),
        complaint=_told(places, problems) or complaint,
        flags=isinstance(page, PageView),
    )


def _told(places: Sequence[Place], problems: Mapping[int, str]) -> str | None:
    """Say in one sentence each what is wrong with the answers, by the numbers of the sentences; None: nothing is."""
    unanswered = [str(place.number) for place in places if problems.get(place.position) == ""]
    told = []
    if unanswered:
        told.append(
            f"Sentence {unanswered[0]} has no answer."
            if len(unanswered) == 1
            else f"Sentences {', '.join(unanswered[:-1])} and {unanswered[-1]} have no answer."
        )
    told += [f"Sentence {p.number}: {problems[p.position]}." for p in places if problems.get(p.position)]
    return " ".join(told) or None


def sent_positions(sent: Mapping[str, str]) -> list[int]:
    """Return the positions that a form has an answer for."""
    found = (_ANSWERED.fullmatch(name) for name, word in sent.items() if word)
    return sorted({int(match[1]) for match in found if match is not None})


def read_answers(task: Task, positions: Sequence[int], sent: Mapping[str, str], *, flags: bool) -> Answered:
    """Read the answers to the sentences of a page from a form; only the very words that the page offers are taken.

    A position whose problem is empty has no answer.
    """
    answers: dict[int, Answer | CannotJudge] = {}
    problems: dict[int, str] = {}
    for position in positions:
        word = _word(sent, position)
        start = f"{position}."
        mine = {name.removeprefix(start): value for name, value in sent.items() if name.startswith(start)}
        if not word:
            problems[position] = ""
        elif flags and word.removeprefix(CANNOT) in task.guide.flag_reasons and word.startswith(CANNOT):
            answers[position] = CannotJudge(word.removeprefix(CANNOT))
        elif word not in task.labels:
            problems[position] = "this answer is none of those on the page"
        else:
            form = asked_form(task.form, mine)
            try:
                checked_form(task, form)
            except BadInput as error:
                problems[position] = str(error)
            else:
                answers[position] = Answer(word, form)
    return Answered(answers, problems)


def _word(sent: Mapping[str, str], position: int) -> str:
    return sent.get(f"{position}.answer", "")
