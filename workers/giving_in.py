"""A page is given in: all its answers are stored or none, and count where their examples have a place for them."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from sqlalchemy import Connection, bindparam, delete, exists, func, insert, select, update
from sqlmodel import Session, col

from dynaround.errors import BadInput, IllegalMove, NotAllowed
from dynaround.tables import (
    LATE,
    OPEN,
    REMOVED,
    Assignment,
    CheckAnswer,
    CheckFlag,
    Flag,
    Lease,
    Page,
    PageComment,
    Removal,
    Response,
    Round,
    Seat,
    Uncounted,
)
from dynaround.task import Task
from dynaround.text_rules import storable
from dynaround.turns import take_turn
from workers.assignment import Answer, checked_form
from workers.batches import fill, fill_batches
from workers.holds import hold_flagged
from workers.page_items import PageItem, items_of
from workers.seats import free_lapsed, free_on_page, free_places, take

LONGEST_COMMENT = 2000
"""Characters of a comment on a page; a line break counts as one."""


class CannotJudge(NamedTuple):
    """A validator cannot judge the sentence of a place; the reason is a key of the guide's `flag_reasons`."""

    reason: str


class GivenIn(NamedTuple):
    """What a page brought: how many responses that count and that do not, and how many flags.

    `filled` are the ids of the batches that it filled; none where it had been given in before.
    """

    page_id: int
    at: datetime
    counted: int
    uncounted: int
    flagged: int
    filled: tuple[int, ...]


class _Said(NamedTuple):
    """What was said of one item, checked: a label with the rest of the form, or why it cannot be judged."""

    item: PageItem
    label: str | None
    form: dict[str, Any] | None
    seconds: float | None
    reason: str | None


_PAGE: Any = bindparam("page")
_IDS: Any = bindparam("ids", expanding=True)
_removed = exists().where(
    col(Removal.round_id) == col(Page.round_id),
    col(Removal.worker_id) == col(Page.worker_id),
    col(Removal.reinstated_at).is_(None),
)
_FACTS = (
    select(col(Page.worker_id), col(Page.given_in), col(Round.state), _removed.label("removed"))
    .join(Round, col(Round.id) == col(Page.round_id))
    .where(col(Page.id) == _PAGE, col(Page.round_id) == bindparam("round"))
)
_response_of_seat = select(col(Response.id)).where(
    col(Response.example_id) == col(Seat.example_id), col(Response.worker_id) == col(Seat.worker_id)
)
_ANSWER = (
    update(Seat)
    .where(col(Seat.page_id) == _PAGE, col(Seat.example_id).in_(_IDS))
    .values(response_id=_response_of_seat.scalar_subquery())
)
_RESPONSES = select(col(Response.example_id), col(Response.id)).where(
    col(Response.worker_id) == bindparam("worker"), col(Response.example_id).in_(_IDS)
)
_RESPOND, _ANSWER_CHECK, _FLAG_CHECK = insert(Response), insert(CheckAnswer), insert(CheckFlag)
_GIVE_IN = update(Page).where(col(Page.id) == _PAGE).values(given_in=bindparam("now"))
_END_LEASE = delete(Lease).where(col(Lease.page_id) == _PAGE)
_STORED = (
    select(func.count(col(Response.id)), func.count(col(Uncounted.response_id)), func.count(col(Flag.id)))
    .select_from(Assignment)
    .join(
        Response,
        (col(Response.example_id) == col(Assignment.example_id))
        & (col(Response.worker_id) == col(Assignment.worker_id)),
        isouter=True,
    )
    .join(Uncounted, col(Uncounted.response_id) == col(Response.id), isouter=True)
    .join(
        Flag,
        (col(Flag.example_id) == col(Assignment.example_id)) & (col(Flag.worker_id) == col(Assignment.worker_id)),
        isouter=True,
    )
    .where(col(Assignment.page_id) == _PAGE)
)


def give_in_page(
    session: Session,
    round_: Round,
    page_id: int,
    worker_id: int,
    answers: Mapping[int, Answer | CannotJudge],
    *,
    comment: str = "",
    flags_that_hold: int,
    task: Task,
    now: datetime,
) -> GivenIn:
    """Store what a worker says of a page, by position; where it was given in before, return what is stored.

    Something must be said of every place that the page holds or could hold; what is said of another one is kept too. A
    response counts where the page holds its place or another is free; else, and always for a worker who was removed, it
    is kept as uncounted. A flag frees the place, and `flags_that_hold` of them hold the example. What is said
    of check items stands apart.

    Raises NotAllowed for a page that is not this worker's in this round, IllegalMove where the round is not open, and
    BadInput for sentences of which nothing is said, foreign positions, words that are no label, malformed forms, all
    with their positions, and for a comment that is too long. Nothing is stored then.
    """
    assert round_.id is not None
    session.flush()
    take_turn(session, round_.id)
    connection = session.connection()
    page = connection.execute(_FACTS, {"page": page_id, "round": round_.id}).one_or_none()
    if page is None or page.worker_id != worker_id:
        raise NotAllowed("this page is not yours; ask for your next page")
    if page.given_in is not None:
        responses, uncounted, flags = connection.execute(_STORED, {"page": page_id}).one()
        return GivenIn(page_id, page.given_in, responses - uncounted, uncounted, flags, ())
    if page.state != OPEN:
        raise IllegalMove(
            f"round {round_.number} is {page.state}, and this page came too late to be kept; "
            "what you gave in before stands"
        )
    items = items_of(connection, page_id)
    if not page.removed and not all(item.seated for item in items):
        # A place that somebody else left alone is as free for a late answer as any other.
        free_lapsed(connection, round_.id, now)
        items = items_of(connection, page_id)
    said = _checked(items, answers, task, removed=page.removed)
    text = _checked_comment(comment)
    _store(connection, page_id, worker_id, said, task, now)
    if text:
        connection.execute(insert(PageComment).values(page_id=page_id, text=text))
    connection.execute(_GIVE_IN, {"page": page_id, "now": now})
    connection.execute(_END_LEASE, {"page": page_id})
    examples = [one for one in said if one.item.is_example]
    counting = _seat(connection, page_id, worker_id, [one.item for one in examples if one.label], page.removed, now)
    flagged = _flag(connection, page_id, worker_id, [one for one in examples if one.reason], flags_that_hold, now)
    full = [item.id for item in counting if len(free_places(item.taken)) <= (0 if item.seated else 1)]
    filled = fill(connection, full, now) if full else ()
    if flagged:
        filled += fill_batches(connection, flagged, now)
    answered = len(examples) - len(flagged)
    return GivenIn(page_id, now, len(counting), answered - len(counting), len(flagged), filled)


def _checked(
    items: Sequence[PageItem], answers: Mapping[int, Answer | CannotJudge], task: Task, *, removed: bool
) -> list[_Said]:
    """Check what was said by position; raise BadInput."""
    foreign = sorted(set(answers) - {item.position for item in items})
    if foreign:
        raise BadInput(f"the page has no {_sentences(foreign)}; load it again")
    wanted = [item for item in items if not _is_lost(item, removed)]
    if not any(item.is_example for item in wanted):
        # A check item that is asked for alone would stand out.
        wanted = []
    missing = [item.position for item in wanted if item.position not in answers]
    if missing:
        raise BadInput(f"nothing is said of {_sentences(missing)}; answer each, or say that you cannot judge it")
    said = []
    for item in items:
        answer = answers.get(item.position)
        if isinstance(answer, CannotJudge):
            if answer.reason not in task.guide.flag_reasons:
                known = ", ".join(task.guide.flag_reasons)
                raise BadInput(f"sentence {item.position}: {answer.reason!r} is no reason; take one of {known}")
            said.append(_Said(item, None, None, None, answer.reason))
        elif answer is not None:
            try:
                label, form = task.label_of(answer.word), checked_form(task, answer.form)
            except BadInput as error:
                raise BadInput(f"sentence {item.position}: {error}") from error
            said.append(_Said(item, label, form, answer.seconds, None))
    return said


def _is_lost(item: PageItem, removed: bool) -> bool:
    """Whether a page can no longer hold an item's place, so that nothing needs to be said of it."""
    return item.is_example and (removed or not item.seated and (item.held or not free_places(item.taken)))


def _sentences(positions: Sequence[int]) -> str:
    return f"sentence {positions[0]}" if len(positions) == 1 else f"sentences {', '.join(map(str, positions))}"


def _checked_comment(comment: str) -> str:
    text = storable(comment.replace("\r\n", "\n")).strip()
    if len(text) > LONGEST_COMMENT:
        raise BadInput(f"the comment has {len(text)} characters; shorten it to {LONGEST_COMMENT}")
    return text


def _store(
    connection: Connection, page_id: int, worker_id: int, said: Sequence[_Said], task: Task, now: datetime
) -> None:
    """Append the responses, and the answers to check items and flags of them."""
    labelled = [one for one in said if one.label is not None]
    common = {"worker_id": worker_id, "task": task.name, "at": now}
    responses = [
        {
            **common,
            "page_id": page_id,
            "example_id": one.item.id,
            "label": one.label,
            "form": one.form,
            "seconds": one.seconds,
        }
        for one in labelled
        if one.item.is_example
    ]
    checks = [
        {**common, "check_item_id": one.item.id, "label": one.label, "form": one.form}
        for one in labelled
        if not one.item.is_example
    ]
    flags = [
        {"check_item_id": one.item.id, "worker_id": worker_id, "reason": one.reason, "at": now}
        for one in said
        if one.reason is not None and not one.item.is_example
    ]
    for statement, rows in ((_RESPOND, responses), (_ANSWER_CHECK, checks), (_FLAG_CHECK, flags)):
        if rows:
            connection.execute(statement, rows)


def _seat(
    connection: Connection, page_id: int, worker_id: int, items: Sequence[PageItem], removed: bool, now: datetime
) -> list[PageItem]:
    """Let the responses to these items count where they have a place or find one; return those that do."""
    seated = [item for item in items if item.seated]
    if seated:
        connection.execute(_ANSWER, {"page": page_id, "ids": [item.id for item in seated]})
    others = [item for item in items if not item.seated]
    if not others:
        return seated
    rows = connection.execute(_RESPONSES, {"worker": worker_id, "ids": [item.id for item in others]})
    response_ids = {example_id: response_id for example_id, response_id in rows}
    late = [] if removed else [item for item in others if free_places(item.taken)]
    who = {"page_id": page_id, "worker_id": worker_id}
    take(
        connection,
        [
            {**who, "example_id": item.id, "place": free_places(item.taken)[0], "response_id": response_ids[item.id]}
            for item in late
        ],
    )
    reason = REMOVED if removed else LATE
    rest = [{"response_id": response_ids[item.id], "reason": reason, "at": now} for item in others if item not in late]
    if rest:
        connection.execute(insert(Uncounted), rest)
    return seated + late


def _flag(
    connection: Connection,
    page_id: int,
    worker_id: int,
    said: Sequence[_Said],
    flags_that_hold: int,
    now: datetime,
) -> list[int]:
    """Keep flags, free their places, and hold what has enough of them; return the flagged examples."""
    if not said:
        return []
    ids = [one.item.id for one in said]
    common = {"page_id": page_id, "worker_id": worker_id, "at": now}
    connection.execute(insert(Flag), [{**common, "example_id": one.item.id, "reason": one.reason} for one in said])
    free_on_page(connection, page_id, ids)
    hold_flagged(connection, ids, flags_that_hold, now)
    return ids
