"""All that was answered in a round, also what does not count, and who was removed by which rule: for the report."""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from sqlalchemy import select as select_columns
from sqlmodel import Session, col, select

from dynaround.release_file import text_id
from dynaround.screening_measures import ScreeningRule
from dynaround.tables import Example, Removal, Response, Round, Uncounted, public_id


class RawResponse(NamedTuple):
    """One response under a public id; `uncounted` says why it does not count (LATE, REMOVED), None: it does."""

    worker: str
    label: str
    uncounted: str | None


@dataclass(frozen=True)
class RawResponses:
    """The responses of a round by text id, each example's in the order in which they came, and the plan's rule.

    `removed` are the workers who are removed now, with the rule that did it; `reinstated` those who were let in again.
    """

    rule: ScreeningRule
    by_example: Mapping[str, tuple[RawResponse, ...]]
    removed: Mapping[str, str]
    reinstated: tuple[str, ...]


def raw_responses(session: Session, round_: Round) -> RawResponses:
    """Read what was answered in a round."""
    query = (
        select_columns(col(Example.number), col(Response.worker_id), col(Response.label), col(Uncounted.reason))
        .join(Example, col(Example.id) == col(Response.example_id))
        .join(Uncounted, col(Uncounted.response_id) == col(Response.id), isouter=True)
        .where(col(Example.round_id) == round_.id)
        .order_by(col(Response.id))
    )
    found: dict[str, list[RawResponse]] = defaultdict(list)
    session.flush()
    for number, worker_id, label, uncounted in session.connection().execute(query):
        found[text_id(round_.number, number)].append(RawResponse(public_id(worker_id), label, uncounted))
    removals = session.exec(select(Removal).where(Removal.round_id == round_.id).order_by(col(Removal.id))).all()
    removed = {public_id(one.worker_id): one.rule for one in removals if one.reinstated_at is None}
    back = dict.fromkeys(public_id(one.worker_id) for one in removals if one.reinstated_at is not None)
    return RawResponses(
        rule=ScreeningRule.model_validate(round_.plan.get("validation") or {}),
        by_example={example: tuple(responses) for example, responses in found.items()},
        removed=removed,
        reinstated=tuple(worker for worker in back if worker not in removed),
    )
