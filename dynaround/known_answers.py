"""How check items of a round were answered, from stored facts: by worker for screening, by item for the launcher."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, NamedTuple

from sqlalchemy import null, select, union_all
from sqlmodel import Session, col

from dynaround.screening_measures import CheckRate
from dynaround.tables import SILENT, CheckAnswer, CheckFlag, CheckItem

_ANSWERED: Any = select(
    col(CheckAnswer.worker_id).label("worker_id"),
    col(CheckAnswer.label).label("said"),
    col(CheckAnswer.at).label("at"),
    col(CheckAnswer.check_item_id).label("item_id"),
)
_SAID = union_all(
    _ANSWERED, select(col(CheckFlag.worker_id), null(), col(CheckFlag.at), col(CheckFlag.check_item_id))
).subquery()


class ItemRate(NamedTuple):
    """A check item with its known answer, and how those who met it did on it."""

    text: str
    label: str
    rate: CheckRate


def check_rates(session: Session, round_id: int, since: Mapping[int, datetime] | None = None) -> dict[int, CheckRate]:
    """Return how workers did on the silent check items of a round, by worker id.

    The items before the first page are left out: who was let in has most of them right. Of a worker whom `since` names
    only later answers count.
    """
    query = (
        select(_SAID.c.worker_id, _SAID.c.said, col(CheckItem.label), _SAID.c.at)
        .join(CheckItem, col(CheckItem.id) == _SAID.c.item_id)
        .where(col(CheckItem.round_id) == round_id, col(CheckItem.use) == SILENT)
    )
    session.flush()
    rates: dict[int, CheckRate] = {}
    for worker_id, said, right, at in session.connection().execute(query):
        if since and worker_id in since and at <= since[worker_id]:
            continue
        before = rates.get(worker_id, CheckRate(0, 0))
        rates[worker_id] = CheckRate(before.met + 1, before.right + (said == right), before.flagged + (said is None))
    return rates


def missed_items(session: Session, round_id: int, *, least: int = 3) -> list[ItemRate]:
    """Return the check items, of both uses, that fewer than half of at least `least` workers had right, worst first.

    Where most people miss one, its known answer may be the wrong one.
    """
    query = (
        select(col(CheckItem.id), col(CheckItem.text), col(CheckItem.label), _SAID.c.said)
        .join(CheckItem, col(CheckItem.id) == _SAID.c.item_id)
        .where(col(CheckItem.round_id) == round_id)
    )
    session.flush()
    found: dict[int, ItemRate] = {}
    for item_id, text, label, said in session.connection().execute(query):
        met, right, flagged = found[item_id].rate if item_id in found else CheckRate(0, 0)
        found[item_id] = ItemRate(text, label, CheckRate(met + 1, right + (said == label), flagged + (said is None)))
    missed = (one for one in found.values() if one.rate.met >= least and 2 * one.rate.right < one.rate.met)
    return sorted(missed, key=lambda one: (one.rate.right / one.rate.met, one.text))
