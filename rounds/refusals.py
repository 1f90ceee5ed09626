"""Why a text is not put to the model: what is wrong with it, where it is known from, and what its author has left."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import bindparam, exists, func, select
from sqlmodel import Session, col

from dynaround.database import columns
from dynaround.errors import BadInput, DynaroundError, IllegalMove
from dynaround.tables import (
    TAKEN_BACK,
    Attempt,
    AttemptDecision,
    Example,
    Prompt,
    PromptShowing,
    Round,
    Submission,
    Writing,
)
from dynaround.text import folded, text_key
from dynaround.text_rules import complaint_about
from rounds.decisions import WAITING, SoFar, attempts_left, attempts_so_far, today_left
from rounds.sittings import authoring_of, require_writing_on

TRIED = "You have tried this very text for this example; the model's answer would be the same. Change something."


_round: Any = bindparam("round")
_writing: Any = bindparam("writing")
_key: Any = bindparam("key")
_SHOWN = (
    select(col(Prompt.text))
    .join(PromptShowing, col(PromptShowing.prompt_id) == col(Prompt.id))
    .where(col(PromptShowing.writing_id) == _writing)
)
_KNOWN: Any = select(
    exists().where(col(Example.round_id) == _round, col(Example.text_key) == _key).label("in_round"),
    exists()
    .where(
        col(AttemptDecision.attempt_id) == col(Attempt.id),
        col(AttemptDecision.decision) == TAKEN_BACK,
        col(Attempt.worker_id) == bindparam("worker"),
        col(Attempt.round_id) == _round,
        col(Attempt.text_key) == _key,
    )
    .label("taken_back"),
)
_AT_WORK = (
    select(func.count())
    .select_from(Submission)
    .where(
        col(Submission.writing_id) == _writing,
        col(Submission.attempt_id).is_(None),
        col(Submission.leased_until) > bindparam("at"),
    )
)


def refusal_of(session: Session, round_: Round, making: Writing, text: str, at: datetime) -> DynaroundError | None:
    """Return why a text is not put to the model, as an error that tells its author; None: nothing is against it.

    BadInput is about the text, IllegalMove about what the author has left; the round must be locked.
    """
    so_far = attempts_so_far(session, making)
    complaint = complaint_about(text, max_characters=authoring_of(round_).max_characters)
    complaint = complaint or _known_text(session, round_, making, so_far, text)
    if complaint is not None:
        return BadInput(complaint)
    try:
        require_writing_on(session, round_)
        _require_left(session, round_, making, so_far, at)
    except IllegalMove as nothing_left:
        return nothing_left
    return None


def _known_text(session: Session, round_: Round, making: Writing, so_far: Sequence[SoFar], text: str) -> str | None:
    """Return what is wrong with a text that is there already, in one way or another."""
    if folded(text) in map(folded, columns(session, _SHOWN, writing=making.id).scalars()):
        return "The text is the prompt, unchanged; change something first."
    key = text_key(text)
    if key in {made.key for made in so_far}:
        return TRIED
    known = columns(session, _KNOWN, round=round_.id, key=key, worker=making.worker_id).one()
    if known.in_round:
        return "This very sentence is in the round already; write another one."
    if known.taken_back:
        return "You have taken this very sentence back before; write another one."
    return None


def _require_left(session: Session, round_: Round, making: Writing, so_far: Sequence[SoFar], at: datetime) -> None:
    """Raise IllegalMove unless the author may try once more; claims that are being worked on count as attempts."""
    if any(made.waits for made in so_far):
        raise IllegalMove(WAITING)
    at_work: int = columns(session, _AT_WORK, writing=making.id, at=at).scalar_one()
    require_within_limits(session, round_, making, so_far, at, at_work=at_work)


def require_within_limits(
    session: Session, round_: Round, making: Writing, so_far: Sequence[SoFar], at: datetime, at_work: int = 0
) -> None:
    """Raise IllegalMove where the attempts for an example, or of the day, are used up; `at_work` are under way."""
    plan = authoring_of(round_)
    if attempts_left(round_, so_far) <= at_work:
        raise IllegalMove(f"the {plan.attempts} attempts for this example are used up; go on with the next one")
    if today_left(session, round_, making.worker_id, at) <= at_work:
        raise IllegalMove(
            f"you have made {plan.attempts_a_day} attempts today, which is all for a day; come back tomorrow"
        )
