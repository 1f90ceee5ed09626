"""How validating goes in a round, as plain data from stored facts: examples by state, pace, agreement, holds.

The live page and `dynaround round status --json` show these same figures.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from sqlalchemy import select as select_columns
from sqlmodel import Session, col

from dynaround.agreement import CountTable, fleiss_kappa
from dynaround.labels import RESPONSES, label_distribution
from dynaround.scoring import winning_votes
from dynaround.tables import (
    LEFT_OUT,
    OPEN,
    RELEASED,
    Batch,
    BatchExample,
    Example,
    Flag,
    Hold,
    Round,
)
from dynaround.task import Task
from dynaround.tasks import get_task
from rounds.validation_workers import given_responses, removal_rows, worker_rows

WAITING, IN_BATCH, FULL, HELD = "waiting", "in an open batch", "full", "held"
STATES = (WAITING, IN_BATCH, FULL, HELD, LEFT_OUT)
"""The states of an example for validators; each is in exactly one, and in a round that is not open full or left out."""

HOURS = 24
"""Hours of the pace that is told, the last of them that of the newest response."""
MOST_TO_READ = 20
"""Examples with disagreement that are listed for reading."""


class _Example(NamedTuple):
    number: int
    text: str
    batch: int | None
    filled: bool
    held_at: datetime | None
    decision: str | None


def validation_figures(session: Session, round_: Round) -> dict[str, Any]:
    """Return how validating goes in a round; workers stand under their public ids, with what kind they are.

    The sentences of a released round are not listed any more: those of its test split are nobody's to read.
    """
    assert round_.id is not None
    session.flush()
    task = get_task(round_.task)
    examples, given = _examples(session, round_.id), given_responses(session, round_.id)
    labels: dict[int, list[str]] = defaultdict(list)
    for one in given:
        if one.counts:
            labels[one.example_id].append(one.label)
    states = {id_: _state(example, len(labels[id_]), is_open=round_.state == OPEN) for id_, example in examples.items()}
    counts = Counter(states.values())
    # Nothing is wanted of an example that is kept from validators; beyond five it takes no more places.
    served = [id_ for id_, state in states.items() if state not in (HELD, LEFT_OUT)]
    wanted = RESPONSES * len(served)
    covered = sum(min(RESPONSES, len(labels[id_])) for id_ in served)
    full = {id_: labels[id_] for id_, state in states.items() if state == FULL and len(labels[id_]) >= RESPONSES}
    listed = round_.state != RELEASED
    return {
        "examples": {state: counts[state] for state in STATES},
        "coverage": {"responses": covered, "wanted": wanted, "share": covered / wanted if wanted else None},
        "uncounted": sum(not one.counts for one in given),
        "per_hour": _pace([one.at for one in given]),
        "batches": _batches(session, round_.id, examples, full, task),
        "workers": worker_rows(session, round_.id, given),
        "held": _held(session, round_.id, examples) if listed else [],
        "disagreement": _disagreement(examples, full, task) if listed else [],
        "removals": removal_rows(session, round_.id),
    }


def _examples(session: Session, round_id: int) -> dict[int, _Example]:
    # Columns, not rows of tables, here and below: a round has thousands of examples.
    query = (
        select_columns(
            col(Example.id),
            col(Example.number),
            col(Example.text),
            col(BatchExample.batch_id),
            col(BatchExample.filled_at).is_not(None),
            col(Hold.held_at),
            col(Hold.decision),
        )
        .join(BatchExample, col(BatchExample.example_id) == col(Example.id), isouter=True)
        .join(Hold, col(Hold.example_id) == col(Example.id), isouter=True)
        .where(col(Example.round_id) == round_id)
        .order_by(col(Example.number))
    )
    rows: Iterator[Any] = iter(session.connection().execute(query))
    return {row[0]: _Example(*row[1:]) for row in rows}


def _state(example: _Example, responses: int, *, is_open: bool) -> str:
    if example.decision == LEFT_OUT:
        return LEFT_OUT
    if example.held_at is not None and example.decision is None:
        return HELD if is_open else LEFT_OUT
    # Responses of an import count before any batch has them.
    if example.filled or responses >= RESPONSES:
        return FULL
    if not is_open:
        return LEFT_OUT
    return WAITING if example.batch is None else IN_BATCH


def _pace(moments: Sequence[datetime]) -> list[dict[str, Any]]:
    if not moments:
        return []
    hours = Counter(at.replace(minute=0, second=0, microsecond=0) for at in moments)
    newest = max(hours)
    shown = [newest - timedelta(hours=back) for back in reversed(range(HOURS))]
    return [{"hour": hour.isoformat(), "responses": hours[hour]} for hour in shown]


def _batches(
    session: Session, round_id: int, examples: Mapping[int, _Example], full: Mapping[int, Sequence[str]], task: Task
) -> list[dict[str, Any]]:
    members: dict[int | None, list[int]] = defaultdict(list)
    for id_, example in examples.items():
        members[example.batch].append(id_)
    query = (
        select_columns(
            col(Batch.id), col(Batch.number), col(Batch.opened_at), col(Batch.filled_at), col(Batch.screened_at)
        )
        .where(col(Batch.round_id) == round_id)
        .order_by(col(Batch.number))
    )
    found = []
    for batch_id, number, opened_at, filled_at, screened_at in session.connection().execute(query):
        answered = [label_distribution(full[one], task.labels) for one in members[batch_id] if one in full]
        exact = [one for one in answered if sum(one.values()) == RESPONSES]
        kappa = fleiss_kappa(CountTable.from_distributions(exact, task.labels)).value if exact else None
        found.append(
            {
                "batch": number,
                "examples": len(members[batch_id]),
                "full": len(answered),
                "opened_at": opened_at.isoformat(),
                "filled_at": None if filled_at is None else filled_at.isoformat(),
                "screened_at": None if screened_at is None else screened_at.isoformat(),
                "fleiss_kappa": kappa,
                "vote_accuracy": winning_votes(exact).accuracy if exact else None,
            }
        )
    return found


def _held(session: Session, round_id: int, examples: Mapping[int, _Example]) -> list[dict[str, Any]]:
    flags: dict[int, Counter[str]] = defaultdict(Counter)
    query = (
        select_columns(col(Flag.example_id), col(Flag.reason))
        .join(Example, col(Example.id) == col(Flag.example_id))
        .where(col(Example.round_id) == round_id)
        .order_by(col(Flag.reason))
    )
    for example_id, reason in session.connection().execute(query):
        flags[example_id][reason] += 1
    return [
        {
            "example": example.number,
            "sentence": example.text,
            "held_at": example.held_at.isoformat(),
            "flags": dict(flags[id_]),
            "decision": example.decision,
        }
        for id_, example in examples.items()
        if example.held_at is not None
    ]


def _disagreement(
    examples: Mapping[int, _Example], full: Mapping[int, Sequence[str]], task: Task
) -> list[dict[str, Any]]:
    """Return the full examples on which people differ most, the smallest winning vote first; not who said what."""
    found = []
    for id_, labels in full.items():
        distribution = label_distribution(labels, task.labels)
        if len([count for count in distribution.values() if count]) > 1:
            row = {
                "example": examples[id_].number,
                "sentence": examples[id_].text,
                "labels": distribution,
                "gold": task.gold(labels).label,
            }
            found.append((max(distribution.values()) / len(labels), examples[id_].number, row))
    return [row for _, _, row in sorted(found, key=lambda one: one[:2])[:MOST_TO_READ]]
