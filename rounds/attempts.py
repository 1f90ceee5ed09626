"""Submitting a text to the live model: claimed once, predicted outside any transaction, stored whole."""

import time
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from typing import Any, NamedTuple, Protocol, TypeVar

from sqlalchemy import Engine, bindparam, insert, select, update
from sqlmodel import Session, col

from dynaround.database import columns, reading, writing
from dynaround.errors import BadInput, Busy, DynaroundError, NotAllowed, Unavailable
from dynaround.tables import Attempt, AuthorSession, Submission
from dynaround.task import Prediction
from dynaround.text import text_key
from rounds.decisions import attempts_left, attempts_so_far, complete, own_writing
from rounds.refusals import TRIED, refusal_of, require_within_limits
from rounds.sittings import authoring_of, keep_draft, lock_authored_round, touch

# Longer than any deadline of the model: while it lasts, nobody else may take up the same submission.
LEASE = timedelta(seconds=30)
# How often whoever came second looks whether the first is done.
_LOOK_AGAIN = 0.05
# More than anybody types or pastes in a sitting, and less than any database's numbers end at.
_MOST_COUNTED = 1_000_000

Number = TypeVar("Number", int, float)


class ModelAnswer(Protocol):
    """What the live model said of one text, and which model it was; `latency` in seconds."""

    @property
    def prediction(self) -> Prediction:
        """Label and probabilities."""

    @property
    def model_hash(self) -> str:
        """The hash of the model that answered."""

    @property
    def precision(self) -> str:
        """Its arithmetic."""

    @property
    def back_end(self) -> str:
        """What ran it."""

    @property
    def latency(self) -> float:
        """Seconds from the call to the answer."""


class Typing(NamedTuple):
    """What the browser counted while a text was written, where script was on: advice, never proof."""

    pasted: int | None = None
    keystrokes: int | None = None
    seconds: float | None = None

    def plausible(self) -> "Typing":
        """Return it without what no browser counts: below zero, endless, or no number."""
        return Typing(_counted(self.pasted), _counted(self.keystrokes), _counted(self.seconds))


def _counted(number: Number | None) -> Number | None:
    return number if number is not None and 0 <= number <= _MOST_COUNTED else None


class Submitted(NamedTuple):
    """What an author sends: the form's token, the example in the making, the text and the rest of the form."""

    token: str
    writing_id: int
    text: str
    form: Mapping[str, Any] | None = None
    typing: Typing = Typing()


class Known(NamedTuple):
    """What is known of a token: whose it is, until when somebody works on it, and the attempt that it stands for."""

    worker_id: int
    leased_until: datetime
    attempt_id: int | None


_TOKEN: Any = bindparam("form")
_KNOWN = select(col(Submission.worker_id), col(Submission.leased_until), col(Submission.attempt_id)).where(
    col(Submission.token) == _TOKEN
)
_ENTER = insert(Submission)
_LEASE_AGAIN = update(Submission).where(col(Submission.token) == _TOKEN).values(leased_until=bindparam("until"))
_FINISH = update(Submission).where(col(Submission.token) == _TOKEN).values(attempt_id=bindparam("attempt"))
_SITTING: Any = select(col(AuthorSession.round_id), col(AuthorSession.arm)).where(
    col(AuthorSession.id) == bindparam("sitting")
)


class Claim(NamedTuple):
    """That this request may ask the model, until when, for which prompt, and which model is to answer."""

    lease: datetime
    prompt_id: int | None
    model_hash: str


def submit(
    engine: Engine,
    ask: Callable[[str], ModelAnswer],
    number: int,
    worker_id: int,
    sent: Submitted,
    *,
    now: Callable[[], datetime],
    patience: float = 10.0,
) -> Attempt:
    """Store one attempt for one form token, however often and wherever it arrives, and return it.

    `ask` is called once, outside any transaction; its Unavailable is passed on, the attempt is not used up and the text
    is kept as the draft. Whoever comes with a token that is being worked on waits up to `patience` seconds for the same
    attempt, then gets Busy. Raises BadInput for a text that is refused, and for another text than the one that the
    token stands for; IllegalMove where nothing is left, a fooling attempt waits for its author's word, or writing is
    switched off: the text is kept all the same. Raises NotAllowed for another author's token or example in the making,
    IllegalMove where the round or the making has ended.
    """
    if not 16 <= len(sent.token) <= 64:
        raise BadInput("the form carries no usable token; load the page again")
    sent = sent._replace(text=sent.text.strip(), typing=sent.typing.plausible())
    until = time.monotonic() + patience
    while True:
        at = now()
        known = _known(engine, worker_id, sent.token)
        if known is not None and known.attempt_id is not None:
            return _stored(engine, known.attempt_id, number, sent)
        if known is None or known.leased_until <= at:
            claim = _claim(engine, number, worker_id, sent, at)
            if claim is not None:
                break
        if time.monotonic() > until:
            raise Busy("this text is being sent already; load the page again in a moment")
        time.sleep(_LOOK_AGAIN)
    try:
        answer = ask(sent.text)
        _require_target_model(answer, claim)
        return _store(engine, number, worker_id, sent, claim, answer, now())
    except DynaroundError:
        _release(engine, sent.token, claim.lease, now())
        raise


def _submission(session: Session, token: str) -> Known | None:
    found = columns(session, _KNOWN, form=token).one_or_none()
    return None if found is None else Known._make(found)


def _known(engine: Engine, worker_id: int, token: str) -> Known | None:
    """Return what is known of a token; raise NotAllowed where it is another author's."""
    with reading(engine) as session:
        known = _submission(session, token)
    if known is not None and known.worker_id != worker_id:
        raise NotAllowed("this form belongs to another author; load the page again")
    return known


def _stored(engine: Engine, attempt_id: int, number: int, sent: Submitted) -> Attempt:
    """Return the attempt that a token stands for; whoever went back and changed the text is told, and loses nothing."""
    with reading(engine) as session:
        attempt = session.get_one(Attempt, attempt_id)
    if attempt.text == sent.text:
        return attempt
    with writing(engine) as session:
        round_ = lock_authored_round(session, number)
        keep_draft(session, own_writing(session, round_, attempt.worker_id, attempt.writing_id), sent.text)
    raise BadInput("This form was sent before, with another text; send the new text once more.")


def _claim(engine: Engine, number: int, worker_id: int, sent: Submitted, at: datetime) -> Claim | None:
    """Claim a submission, or return None where another request holds or has finished it."""
    with writing(engine) as session:
        # Whoever has the round alone sees whether the token was claimed in the same moment.
        round_ = lock_authored_round(session, number)
        known = _submission(session, sent.token)
        if known is not None and (known.attempt_id is not None or known.leased_until > at):
            return None
        making = own_writing(session, round_, worker_id, sent.writing_id)
        touch(session, making, at)
        # What is too long to send is kept for shortening, within reason.
        keep_draft(session, making, sent.text[: 4 * authoring_of(round_).max_characters])
        refusal = refusal_of(session, round_, making, sent.text, at)
        lease = at + LEASE
        if refusal is None and known is not None:
            columns(session, _LEASE_AGAIN, form=sent.token, until=lease)
        elif refusal is None:
            mine = {"writing_id": sent.writing_id, "worker_id": worker_id}
            columns(session, _ENTER, token=sent.token, **mine, claimed_at=at, leased_until=lease)
    # Not before the draft is stored.
    if refusal is not None:
        raise refusal
    return Claim(lease, making.prompt_id, round_.target_model_hash)


def _require_target_model(answer: ModelAnswer, claim: Claim) -> None:
    if answer.model_hash != claim.model_hash:
        raise Unavailable(
            f"the model that answered ({answer.model_hash[:12]}) is not the one that this round plays against "
            f"({claim.model_hash[:12]}); nothing is used up, try again later"
        )


def _release(engine: Engine, token: str, lease: datetime, at: datetime) -> None:
    with writing(engine) as session:
        # Unless somebody else has claimed it since.
        columns(session, _LEASE_AGAIN.where(col(Submission.leased_until) == lease), form=token, until=at)


def _store(
    engine: Engine, number: int, worker_id: int, sent: Submitted, claim: Claim, answer: ModelAnswer, at: datetime
) -> Attempt:
    with writing(engine) as session:
        round_ = lock_authored_round(session, number)
        claimed = _submission(session, sent.token)
        # After the lease another text may have taken the place of this one, even if the token is as it was.
        if (
            claimed is None
            or claimed.attempt_id is not None
            or claimed.leased_until != claim.lease
            or at >= claim.lease
        ):
            raise Busy("the model took too long for this text, and nothing is used up; load the page and send it again")
        making = own_writing(session, round_, worker_id, sent.writing_id)
        so_far = attempts_so_far(session, making)
        if text_key(sent.text) in {made.key for made in so_far}:
            raise BadInput(TRIED)
        # A claim counts what is under way by its machine's clock: where that is ahead, it may have left this text out.
        require_within_limits(session, round_, making, so_far, at)
        sitting = columns(session, _SITTING, sitting=making.session_id).one()
        attempt = Attempt(
            writing_id=sent.writing_id,
            round_id=sitting.round_id,
            worker_id=worker_id,
            task=round_.task,
            number=len(so_far) + 1,
            text=sent.text,
            text_key=text_key(sent.text),
            target_label=making.target_label,
            arm=sitting.arm,
            prompt_id=claim.prompt_id,
            form=dict(sent.form) if sent.form else None,
            prediction=answer.prediction.label,
            probs=dict(answer.prediction.probs),
            truncated=answer.prediction.truncated,
            model_hash=answer.model_hash,
            precision=answer.precision,
            back_end=answer.back_end,
            latency=answer.latency,
            pasted=sent.typing.pasted,
            keystrokes=sent.typing.keystrokes,
            seconds=sent.typing.seconds,
            at=at,
        )
        session.add(attempt)
        session.flush()
        columns(session, _FINISH, form=sent.token, attempt=attempt.id)
        touch(session, making, at)
        waits = attempt.fooled or any(made.waits for made in so_far)
        if not waits and attempts_left(round_, so_far) == 1:
            # This was the last one.
            complete(session, round_, making, at)
        return attempt
