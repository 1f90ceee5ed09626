"""What is known of those who validate in a round, as plain data under public ids: their figures, and removals."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from datetime import datetime
from statistics import median
from typing import Any, NamedTuple

from sqlalchemy import func
from sqlalchemy import select as select_columns
from sqlmodel import Session, col

from dynaround.agreement import WorkerResponse
from dynaround.known_answers import check_rates
from dynaround.screening_measures import disagreement, worker_measures
from dynaround.tables import Example, Flag, Removal, Response, Uncounted, Worker, public_id


class GivenResponse(NamedTuple):
    """One response; `counts` is whether it does."""

    example_id: int
    worker_id: int
    label: str
    at: datetime
    seconds: float | None
    counts: bool


def given_responses(session: Session, round_id: int) -> list[GivenResponse]:
    """Return all responses of a round in the order in which they came."""
    # Columns, not rows of tables: a round has thousands of examples, and five times as many responses.
    query = (
        select_columns(
            col(Response.example_id),
            col(Response.worker_id),
            col(Response.label),
            col(Response.at),
            col(Response.seconds),
            col(Uncounted.response_id).is_(None),
        )
        .join(Example, col(Example.id) == col(Response.example_id))
        .join(Uncounted, col(Uncounted.response_id) == col(Response.id), isouter=True)
        .where(col(Example.round_id) == round_id)
        .order_by(col(Response.id))
    )
    rows: Iterator[Any] = iter(session.connection().execute(query))
    return [GivenResponse(*row) for row in rows]


def worker_rows(session: Session, round_id: int, given: Sequence[GivenResponse]) -> list[dict[str, Any]]:
    """Return the figures of everybody who answered or flagged anything in a round, the busiest first."""
    by_worker: dict[int, list[GivenResponse]] = defaultdict(list)
    for one in given:
        by_worker[one.worker_id].append(one)
    counted = [WorkerResponse(str(o.example_id), public_id(o.worker_id), o.label) for o in given if o.counts]
    checks, flags = check_rates(session, round_id), _flags(session, round_id)
    measured = {
        one.worker: one
        for one in worker_measures(counted, {public_id(worker_id): rate for worker_id, rate in checks.items()})
    }
    removed = set(session.connection().scalars(_removed_from(round_id)))
    everybody = {*by_worker, *checks, *flags}
    found = []
    for worker_id, kind in session.connection().execute(select_columns(col(Worker.id), col(Worker.kind))):
        if worker_id not in everybody:
            continue
        mine, measures = by_worker[worker_id], measured.get(public_id(worker_id))
        seconds = [one.seconds for one in mine if one.seconds is not None]
        rate = checks.get(worker_id)
        found.append(
            {
                "worker": public_id(worker_id),
                "kind": kind,
                "responses": len(mine),
                "uncounted": sum(not one.counts for one in mine),
                "flags": flags[worker_id],
                "comparable": 0 if measures is None else measures.leave_one_out.comparable,
                "leave_one_out_disagreement": None if measures is None else disagreement(measures.leave_one_out),
                "published_disagreement": None if measures is None else disagreement(measures.published),
                "checks": 0 if rate is None else rate.met,
                "checks_flagged": 0 if rate is None else rate.flagged,
                "check_rate": None if rate is None else rate.rate,
                "median_seconds": median(seconds) if seconds else None,
                "removed": worker_id in removed,
            }
        )
    return sorted(found, key=lambda row: (-row["responses"], int(row["worker"][1:])))


def _flags(session: Session, round_id: int) -> Counter[int]:
    query = (
        select_columns(col(Flag.worker_id), func.count())
        .join(Example, col(Example.id) == col(Flag.example_id))
        .where(col(Example.round_id) == round_id)
        .group_by(col(Flag.worker_id))
    )
    return Counter(dict(iter(session.connection().execute(query))))


def _removed_from(round_id: int) -> Any:
    return select_columns(col(Removal.worker_id)).where(
        col(Removal.round_id) == round_id, col(Removal.reinstated_at).is_(None)
    )


def removal_rows(session: Session, round_id: int) -> list[dict[str, Any]]:
    """Return the removals of a round with their evidence, also those that were taken back, as they were made."""
    query = (
        select_columns(
            col(Removal.worker_id),
            col(Removal.rule),
            col(Removal.evidence),
            col(Removal.at),
            col(Removal.reinstated_at),
            col(Removal.reinstated_by),
        )
        .where(col(Removal.round_id) == round_id)
        .order_by(col(Removal.id))
    )
    return [
        {
            "worker": public_id(worker_id),
            "rule": rule,
            "evidence": evidence,
            "at": at.isoformat(),
            "reinstated_at": None if back_at is None else back_at.isoformat(),
            "reinstated_by": back_by,
        }
        for worker_id, rule, evidence, at, back_at, back_by in session.connection().execute(query)
    ]
