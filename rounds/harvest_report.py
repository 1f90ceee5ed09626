"""What a harvest found, as its event keeps it; readable without loading a model."""

from pathlib import Path
from typing import NamedTuple

from sqlalchemy import bindparam, exists
from sqlalchemy import select as select_columns
from sqlmodel import Session, col, select

from dynaround.corpus.rejects import ReadSummary
from dynaround.database import columns
from dynaround.harvest import PoolSummary, Selection
from dynaround.tables import Event
from rounds.plan import RoundPlan

HARVESTED = "harvested"


class HarvestReport(NamedTuple):
    """What a harvest read, found and drew; `examples` by the share that drew them."""

    read: dict[str, int]
    pool: PoolSummary
    wanted: int
    disagreeing_wanted: int
    disagreeing_drawn: int
    examples: dict[str, int]
    rejects_file: str | None
    already_done: bool


_IS_HARVESTED = select_columns(exists().where(col(Event.round_id) == bindparam("round"), col(Event.what) == HARVESTED))


def is_harvested(session: Session, round_id: int) -> bool:
    """Whether this round already had its harvest."""
    return bool(columns(session, _IS_HARVESTED, round=round_id).scalar())


def earlier_harvest(session: Session, round_id: int) -> HarvestReport | None:
    """Return the report of the harvest that this round already had."""
    event = session.exec(select(Event).where(Event.round_id == round_id, Event.what == HARVESTED)).one_or_none()
    if event is None:
        return None
    detail = dict(event.detail)
    return HarvestReport(**{**detail, "pool": PoolSummary(**detail["pool"]), "already_done": True})


def harvest_report(
    plan: RoundPlan, read: ReadSummary, pool: PoolSummary, selection: Selection, rejects_file: Path | None
) -> HarvestReport:
    """Put the counts of a finished harvest together."""
    by_share: dict[str, int] = {}
    for drawn in selection.drawn:
        by_share[drawn.drawn_by] = by_share.get(drawn.drawn_by, 0) + 1
    return HarvestReport(
        read=vars(read).copy(),
        pool=pool,
        wanted=plan.size,
        disagreeing_wanted=selection.disagreeing_wanted,
        disagreeing_drawn=selection.disagreeing_drawn,
        examples=dict(sorted(by_share.items())),
        rejects_file=rejects_file.name if rejects_file else None,
        already_done=False,
    )
