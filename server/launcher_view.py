"""What the launcher's page shows beside the figures of a round: what may be done, and bars with their objections."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from sqlmodel import Session, col, select

from dynaround.labels import RESPONSES
from dynaround.tables import CLOSED, OPEN, Bar, Page, PageComment, Round, public_id
from rounds.labelling import held_examples
from rounds.lifecycle import AUTHORING, VALIDATING, is_on, response_counts
from workers.standing import bars_to_look_at

CLOSE, CLOSE_SHORT, ABANDON = "close", "close-short", "abandon"
WRITING_OFF, WRITING_ON, VALIDATING_OFF, VALIDATING_ON = "writing-off", "writing-on", "validating-off", "validating-on"
HOURS_SHOWN = 12
"""Bars of a chart that a phone has room for."""
MOST_COMMENTS = 20

SWITCHES = {
    WRITING_OFF: (AUTHORING, False),
    WRITING_ON: (AUTHORING, True),
    VALIDATING_OFF: (VALIDATING, False),
    VALIDATING_ON: (VALIDATING, True),
}
"""The moves that switch work on or off: which work, and what it becomes."""


class Move(NamedTuple):
    """Something the launcher may do with a round now: its button, and what it will do, one sentence each.

    `left_out` is how many examples it promises to leave out; where that is no longer so, it is to be confirmed anew.
    """

    key: str
    button: str
    says: Sequence[str]
    left_out: int = 0


class ShownBar(NamedTuple):
    """A bar of a worker under the public id, with the objection; by a removal it ends when the worker is reinstated."""

    bar: Bar
    worker: str
    in_force: bool
    removal: bool


class ShownComment(NamedTuple):
    """What a validator wrote beside a page, under the public id."""

    worker: str
    at: datetime
    text: str


class Bars(NamedTuple):
    """A chart: the height of each bar as a part of 1, with its name and its value in words."""

    name: str
    share: float
    value: str


def moves_of(session: Session, round_: Round) -> list[Move]:
    """Return the moves that are legal now; a round is released by a command alone."""
    if round_.state != OPEN:
        return []
    assert round_.id is not None
    return [*_switches(session, round_), _ending(session, round_)]


def _switches(session: Session, round_: Round) -> list[Move]:
    found = []
    if round_.plan.get("authoring") is not None:
        found.append(
            Move(
                WRITING_OFF,
                "Switch writing off",
                ["Nobody begins another example. Those in the making can be finished."],
            )
            if is_on(session, round_, AUTHORING)
            else Move(WRITING_ON, "Switch writing on", ["Authors can begin examples again."])
        )
    found.append(
        Move(
            VALIDATING_OFF,
            "Switch validating off",
            ["Nobody gets another page. Pages in front of validators can be given in."],
        )
        if is_on(session, round_, VALIDATING)
        else Move(VALIDATING_ON, "Switch validating on", ["Validators get pages again."])
    )
    return found


def _ending(session: Session, round_: Round) -> Move:
    assert round_.id is not None
    counts, held = response_counts(session, round_.id), held_examples(session, round_.id)
    short = sum(count < RESPONSES for example_id, count in counts.items() if example_id not in held)
    left_out = len(held) + short
    ends = "Collecting and validating end for good, and which responses count is frozen. This cannot be taken back."
    if left_out == len(counts):
        none = f"None of its {len(counts):,} examples could get a gold label." if counts else "It has no example."
        return Move(ABANDON, "Abandon the round", [none, ends], left_out)
    has = f"{len(counts) - left_out:,} of {len(counts):,} examples have {RESPONSES} responses and are labelled."
    out = (
        f"Left out, without a gold label: {len(held):,} that are held or were left out before, "
        f"{short:,} with fewer than {RESPONSES} responses."
    )
    if short or None in held.values():
        says = [has, out, ends]
        return Move(CLOSE_SHORT, "Close the round and leave examples out", says, left_out)
    return Move(CLOSE, "Close the round", [has, *([out] if held else []), ends], left_out)


def shown_bars(session: Session, now: datetime) -> list[ShownBar]:
    """Return the bars in force and those that somebody objected to, the newest first."""
    return [
        ShownBar(
            bar,
            public_id(bar.worker_id),
            bar.until > now and bar.lifted_at is None,
            bar.evidence.get("removal") is not None,
        )
        for bar in reversed(bars_to_look_at(session, now))
    ]


def newest_comments(session: Session, round_: Round) -> list[ShownComment]:
    """Return what validators of a round wrote beside their pages, the newest first; it stands in no other figure."""
    rows = session.exec(
        select(Page.worker_id, Page.given_in, PageComment.text)
        .join(PageComment, col(PageComment.page_id) == col(Page.id))
        .where(Page.round_id == round_.id, col(Page.given_in).is_not(None))
        .order_by(col(Page.given_in).desc(), col(Page.id).desc())
        .limit(MOST_COMMENTS)
    )
    return [ShownComment(public_id(worker_id), at, text) for worker_id, at, text in rows if at is not None]


def pace_bars(per_hour: Sequence[Mapping[str, Any]]) -> list[Bars]:
    """Return the last hours of the responses per hour as bars, each a part of the fullest of them."""
    shown = per_hour[-HOURS_SHOWN:]
    most = max((hour["responses"] for hour in shown), default=0)
    return [
        Bars(datetime.fromisoformat(hour["hour"]).strftime("%H"), hour["responses"] / most, f"{hour['responses']:,}")
        for hour in shown
    ]


def next_command(round_: Round) -> str | None:
    """Return the command that comes after this page has done its part."""
    return f"dynaround round release {round_.number}" if round_.state == CLOSED else None
