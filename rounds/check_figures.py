"""What check items a round has, so that the launcher is told where the step before the first page is left out."""

from collections.abc import Iterator, Mapping
from typing import Any

from sqlmodel import Session, col, func, select

from dynaround.tables import SCREENING, SILENT, CheckItem, Round
from rounds.plan import ValidationPlan


def check_item_figures(session: Session, round_: Round) -> dict[str, Any]:
    """Return the check items of a round by use and label, how many stand before the first page, and whether they do."""
    found: dict[str, dict[str, int]] = {SCREENING: {}, SILENT: {}}
    rows = session.exec(
        select(CheckItem.use, CheckItem.label, func.count())
        .where(CheckItem.round_id == round_.id)
        .group_by(col(CheckItem.use), col(CheckItem.label))
        .order_by(col(CheckItem.use), col(CheckItem.label))
    )
    for use, label, count in rows:
        found[use][label] = count
    wanted = ValidationPlan.model_validate(round_.plan.get("validation") or {}).screening_items
    there = sum(found[SCREENING].values())
    return {**found, "wanted": wanted, "screening_step": 0 < wanted <= there}


def check_item_lines(figures: Mapping[str, Any]) -> Iterator[str]:
    """Yield the check items of a round as lines of text, with a note where a step is left out for want of them."""
    counts = {use: sum(figures[use].values()) for use in (SCREENING, SILENT)}
    yield f"check items: {counts[SCREENING]} before the first page, {counts[SILENT]} for pages"
    if figures["wanted"] and not figures["screening_step"]:
        wanted = figures["wanted"]
        yield f"note: validators begin without known answers; {wanted} are needed (see: dynaround workers checks)"
    if not counts[SILENT]:
        yield "note: there is no check item for pages, so nobody is judged by known answers during the work"
