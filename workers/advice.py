"""What stands out in the responses of a round's workers, for the launcher to read; nothing acts on it."""

from sqlalchemy import select as select_columns
from sqlmodel import Session, col

from dynaround.signals import TimedResponse, WorkerSignals, worker_signals
from dynaround.tables import Example, Removal, Response, Round, public_id


def signals_of_round(session: Session, round_: Round) -> list[WorkerSignals]:
    """Return the signals of every worker who is not removed, from all that they answered, in natural order."""
    removed = select_columns(col(Removal.worker_id)).where(
        col(Removal.round_id) == round_.id, col(Removal.reinstated_at).is_(None)
    )
    query = (
        select_columns(
            col(Response.example_id),
            col(Response.worker_id),
            col(Response.label),
            col(Response.page_id),
            col(Response.seconds),
        )
        .join(Example, col(Example.id) == col(Response.example_id))
        .where(col(Example.round_id) == round_.id, col(Response.worker_id).not_in(removed))
        .order_by(col(Response.id))
    )
    session.flush()
    rows = session.connection().execute(query)
    return worker_signals(
        [
            TimedResponse(str(example_id), public_id(worker_id), label, page_id, seconds)
            for example_id, worker_id, label, page_id, seconds in rows
        ]
    )
