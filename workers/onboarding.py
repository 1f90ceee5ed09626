"""Before the work: consent to a version of the guide, then comprehension questions that are graded on the server."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from sqlalchemy import bindparam, exists
from sqlalchemy import select as select_columns
from sqlmodel import Session, col, select

from dynaround.database import columns
from dynaround.errors import BadInput, NotAllowed
from dynaround.tables import Bar, Consent, QuizAttempt, Worker
from dynaround.task import Question
from workers.standing import IN_FORCE, QUIZ_FAILED, bar, current_bar, lock_worker

CONSENT, QUIZ, BARRED, READY = "consent", "quiz", "barred", "ready"
"""Where a worker stands on the way to the work."""


@dataclass(frozen=True)
class Quiz:
    """The questions before a kind of work, as one version of the guide has them.

    After `limit` tries without all right the worker is barred from the work for `bar_days`. With `own_consent` the work
    has a consent of its own, else the consent is to the version alone.
    """

    work: str
    version: str
    questions: tuple[Question, ...]
    limit: int
    bar_days: int
    own_consent: bool = False

    @property
    def name(self) -> str:
        """The name of the quiz in the table; another version of the guide makes another quiz."""
        return f"{self.work} {self.version}"

    @property
    def consent_version(self) -> str:
        """What a worker agrees to before the questions."""
        return self.name if self.own_consent else self.version


class QuizResult(NamedTuple):
    """One try: the answers by key of question, how many were right, and the keys of those that were not."""

    number: int
    passed: bool
    answers: Mapping[str, str]
    right: int
    wrong: tuple[str, ...]


class QuizState(NamedTuple):
    """Where a worker stands with a quiz; `next_number` goes into the form, so that a form counts as one try."""

    passed: bool
    next_number: int
    tries_left: int
    last: QuizResult | None


class Step(NamedTuple):
    """What a worker has to do next (`CONSENT`, `QUIZ` or nothing: `READY`), or the bar that is in the way."""

    name: str
    bar: Bar | None = None


_worker: Any = bindparam("worker")
_STEP: Any = select_columns(
    exists().where(IN_FORCE).label("barred"),
    exists().where(col(Consent.worker_id) == _worker, col(Consent.version) == bindparam("version")).label("consented"),
    exists()
    .where(col(QuizAttempt.worker_id) == _worker, col(QuizAttempt.quiz) == bindparam("quiz"), col(QuizAttempt.passed))
    .label("passed"),
)


def step_of(session: Session, worker: Worker, quiz: Quiz, now: datetime) -> Step:
    """Return where a worker stands on the way to a kind of work."""
    names = {"worker": worker.id, "work": quiz.work, "version": quiz.consent_version, "quiz": quiz.name}
    found = columns(session, _STEP, **names, now=now).one()
    if found.barred:
        return Step(BARRED, current_bar(session, worker, quiz.work, now))
    if not found.consented:
        return Step(CONSENT)
    return Step(READY if found.passed else QUIZ)


def has_consented(session: Session, worker: Worker, version: str) -> bool:
    """Whether the worker agreed to this version."""
    return session.get(Consent, (worker.id, version)) is not None


def consent(session: Session, worker: Worker, version: str, at: datetime) -> None:
    """Keep that a worker agreed to this version; the first moment stays."""
    lock_worker(session, worker)
    if not has_consented(session, worker, version):
        assert worker.id is not None
        session.add(Consent(worker_id=worker.id, version=version, at=at))
        session.flush()


def quiz_state(session: Session, worker: Worker, quiz: Quiz, now: datetime) -> QuizState:
    """Return where a worker stands with a quiz."""
    tries = _tries(session, worker, quiz)
    barred = current_bar(session, worker, quiz.work, now) is not None
    return QuizState(
        passed=any(attempt.passed for attempt in tries),
        next_number=len(tries) + 1,
        # Where a plan allows fewer tries than are used up already, one is left.
        tries_left=0 if barred else max(1, quiz.limit - len(_since_last_bar(session, worker, quiz, tries))),
        last=_result(quiz, tries[-1]) if tries else None,
    )


def grade(
    session: Session, worker: Worker, quiz: Quiz, number: int, answers: Mapping[str, str], at: datetime
) -> QuizResult:
    """Grade one try, by the number that its form was made with, and keep it; bar the worker where it was the last.

    A form that comes again, in the same moment or later, is not graded again: what was kept is returned. Raises
    BadInput for questions without an answer among their choices, naming them by number, and for a form that is not of
    the next try; NotAllowed without consent, while barred, and after the quiz was passed. None of these is a try.
    """
    lock_worker(session, worker)
    tries = _tries(session, worker, quiz)
    known = next((attempt for attempt in tries if attempt.number == number), None)
    if known is not None:
        return _result(quiz, known)
    _require_try(step_of(session, worker, quiz, at))
    if number != len(tries) + 1:
        raise BadInput(f"this form is of try {number}, and the next one is {len(tries) + 1}; load the page again")
    given = _answered(quiz, answers)
    right = sum(given[question.key] == question.right for question in quiz.questions)
    assert worker.id is not None
    attempt = QuizAttempt(
        worker_id=worker.id,
        quiz=quiz.name,
        number=number,
        answers=given,
        right=right,
        questions=len(quiz.questions),
        passed=right == len(quiz.questions),
        at=at,
    )
    session.add(attempt)
    session.flush()
    if not attempt.passed:
        failed = _since_last_bar(session, worker, quiz, [*tries, attempt])
        if len(failed) >= quiz.limit:
            evidence = {"quiz": quiz.name, "tries": len(failed), "last_try": number}
            bar(session, worker, quiz.work, QUIZ_FAILED, evidence, at, at + timedelta(days=quiz.bar_days))
    return _result(quiz, attempt)


def _require_try(step: Step) -> None:
    if step.bar is not None:
        raise NotAllowed(f"you may not take part in this work until {step.bar.until:%Y-%m-%d %H:%M} UTC")
    if step.name == CONSENT:
        raise NotAllowed("the questions come after your consent; give it first")
    if step.name == READY:
        raise NotAllowed("you have answered these questions right already; go on to the work")


def _answered(quiz: Quiz, answers: Mapping[str, str]) -> dict[str, str]:
    missing = [
        str(place)
        for place, question in enumerate(quiz.questions, 1)
        if answers.get(question.key) not in question.choices
    ]
    if missing:
        which = f"question {missing[0]} has" if len(missing) == 1 else f"questions {', '.join(missing)} have"
        raise BadInput(f"{which} no answer; choose one for every question")
    return {question.key: answers[question.key] for question in quiz.questions}


def _tries(session: Session, worker: Worker, quiz: Quiz) -> Sequence[QuizAttempt]:
    return session.exec(
        select(QuizAttempt)
        .where(QuizAttempt.worker_id == worker.id, QuizAttempt.quiz == quiz.name)
        .order_by(col(QuizAttempt.number))
    ).all()


def _since_last_bar(
    session: Session, worker: Worker, quiz: Quiz, tries: Sequence[QuizAttempt]
) -> Sequence[QuizAttempt]:
    """A bar starts the count anew; so does one that was lifted."""
    bars = session.exec(select(Bar).where(Bar.worker_id == worker.id, Bar.work == quiz.work))
    last = max((int(b.evidence["last_try"]) for b in bars if b.evidence.get("quiz") == quiz.name), default=0)
    return [attempt for attempt in tries if attempt.number > last]


def _result(quiz: Quiz, attempt: QuizAttempt) -> QuizResult:
    wrong = tuple(question.key for question in quiz.questions if attempt.answers.get(question.key) != question.right)
    return QuizResult(attempt.number, attempt.passed, attempt.answers, attempt.right, wrong)
