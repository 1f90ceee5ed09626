"""What is known of the workers of a round when its finished batches are looked at; nobody is removed here."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from sqlalchemy import select as select_columns
from sqlmodel import Session, col, func, select

from dynaround.agreement import WorkerAgreement, WorkerResponse
from dynaround.known_answers import check_rates
from dynaround.screening_measures import (
    CHECK_ITEMS,
    LEAVE_ONE_OUT,
    PUBLISHED,
    ScreeningRule,
    WorkerMeasures,
    broken_rules,
    removing_rule,
    worker_measures,
)
from dynaround.tables import Batch, BatchExample, Event, Example, Removal, Response, Round, Uncounted, public_id

SCREENED, REINSTATED = "batches screened", "worker reinstated"
"""The events that change who is judged by what."""


class Judged(NamedTuple):
    """One worker's measures, the rules that the worker breaks, and by which of them the plan removes the worker."""

    measures: WorkerMeasures
    broken: tuple[str, ...]
    removed_by: str | None


class Screening(NamedTuple):
    """What a screening found: the numbers of the finished batches, and every worker with responses in them or a check
    item anywhere in the round.

    `after` is the last event, of those that change what counts, that was known to it.
    """

    batches: tuple[int, ...]
    workers: tuple[Judged, ...]
    after: int

    @property
    def removed(self) -> tuple[Judged, ...]:
        """The workers who go."""
        return tuple(judged for judged in self.workers if judged.removed_by is not None)


def judge_workers(session: Session, round_: Round, rule: ScreeningRule) -> Screening:
    """Judge the workers of a round by their responses that count on the examples of finished batches; nobody goes.

    A batch that a removal re-opened stays among them, with those of its examples that still have five responses; an
    example that stands in no batch, since its responses were imported, is among them too. What a worker answered before
    a reinstatement helps to make majorities, and is not judged again.
    """
    assert round_.id is not None
    after = last_change(session, round_)
    batches = _finished(session, round_)
    since = _reinstated_at(session, round_)
    responses, excused = _responses(session, round_, [batch.id for batch in batches], since)
    by_worker = {public_id(worker): rate for worker, rate in check_rates(session, round_.id, since).items()}
    measured = worker_measures(responses, by_worker, excused)
    judged = (Judged(one, broken_rules(one, rule), removing_rule(one, rule)) for one in measured)
    return Screening(tuple(batch.number for batch in batches), tuple(judged), after)


def _finished(session: Session, round_: Round) -> Sequence[Batch]:
    """Return the batches that are filled, or were at an earlier screening, by number."""
    earlier = session.exec(select(Event.detail).where(Event.round_id == round_.id, Event.what == SCREENED))
    numbers = {number for detail in earlier for number in detail["batches"]}
    finished = col(Batch.filled_at).is_not(None) | col(Batch.number).in_(numbers)
    return session.exec(select(Batch).where(Batch.round_id == round_.id, finished).order_by(col(Batch.number))).all()


def _responses(
    session: Session, round_: Round, batches: Sequence[int | None], since: Mapping[int, datetime]
) -> tuple[list[WorkerResponse], set[tuple[str, str]]]:
    # Columns, not rows of tables: a round has five times as many responses as examples.
    query = (
        select_columns(col(Response.example_id), col(Response.worker_id), col(Response.label), col(Response.at))
        .join(Example, col(Example.id) == col(Response.example_id))
        .join(Uncounted, col(Uncounted.response_id) == col(Response.id), isouter=True)
        .join(BatchExample, col(BatchExample.example_id) == col(Example.id), isouter=True)
        .where(
            col(Example.round_id) == round_.id,
            col(Uncounted.response_id).is_(None),
            col(BatchExample.batch_id).is_(None) | col(BatchExample.batch_id).in_(batches),
        )
    )
    responses, excused = [], set()
    session.flush()
    for example_id, worker_id, label, at in session.connection().execute(query):
        one = WorkerResponse(str(example_id), public_id(worker_id), label)
        responses.append(one)
        if worker_id in since and at <= since[worker_id]:
            excused.add((one.example, one.worker))
    return responses, excused


def last_change(session: Session, round_: Round) -> int:
    """Return the number of the last event in a round that changes who is judged by what."""
    changes = select(func.max(Event.id)).where(Event.round_id == round_.id, col(Event.what).in_([SCREENED, REINSTATED]))
    return session.exec(changes).one() or 0


def _reinstated_at(session: Session, round_: Round) -> dict[int, datetime]:
    """Return when workers were last reinstated in a round, by worker id."""
    taken_back = session.exec(
        select(Removal.worker_id, Removal.reinstated_at)
        .where(Removal.round_id == round_.id, col(Removal.reinstated_at).is_not(None))
        .order_by(col(Removal.reinstated_at))
    )
    return {worker_id: at for worker_id, at in taken_back if at is not None}


def judged_figures(judged: Judged) -> dict[str, Any]:
    """Return what is known of one worker as plain data."""
    measures = judged.measures
    return {
        "worker": measures.worker,
        "responses": measures.responses,
        "measures": evidence(measures),
        "breaks": list(judged.broken),
        "removed_by": judged.removed_by,
    }


def judged_line(judged: Judged) -> str:
    """Return what is known of one worker as one line of text."""
    measures = judged.measures
    return f"{measures.worker}: {measures.responses} responses; {evidence_words(evidence(measures))}"


def evidence(measures: WorkerMeasures) -> dict[str, dict[str, int]]:
    """Return the counts behind the measures of a worker, by measure, as plain data."""
    checks = measures.checks
    return {
        LEAVE_ONE_OUT: _disagreement_figures(measures.leave_one_out),
        PUBLISHED: _disagreement_figures(measures.published),
        CHECK_ITEMS: {"wrong": checks.met - checks.right, "of": checks.met, "flagged": checks.flagged},
    }


def _disagreement_figures(found: WorkerAgreement) -> dict[str, int]:
    return {"disagreeing": found.comparable - found.agreeing, "of": found.comparable}


def _in_words(name: str, found: Mapping[str, int]) -> str:
    """Say one measure in words, such as "leave-one-out: 31 of 40 otherwise (78 %)"."""
    count = found.get("disagreeing", found.get("wrong", 0))
    share = f" ({count / found['of']:.0%})" if found["of"] else ""
    flagged = f", {found['flagged']} of them said not to be judgeable" if found.get("flagged") else ""
    return f"{name}: {count} of {found['of']} {'wrong' if 'wrong' in found else 'otherwise'}{share}{flagged}"


def evidence_words(found: Mapping[str, Mapping[str, int]]) -> str:
    """Say what `evidence` gave in words."""
    return "; ".join(_in_words(name, counts) for name, counts in found.items())
