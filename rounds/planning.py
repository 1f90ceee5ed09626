"""What a plan promises before anything is collected: the chance that a model as good as people is called solved."""

from collections.abc import Iterator, Mapping
from typing import Any

from dynaround.solved_power import chance_called_solved, items_called_solved
from dynaround.splits import HELD_OUT
from dynaround.task import Task
from rounds.plan import RoundPlan

WANTED_CHANCE = 0.8
"""The chance that a round large enough should give; below half of all rounds there is a warning."""


def planned_power(plan: RoundPlan, task: Task) -> dict[str, Any]:
    """Return what the planned size can tell as plain data.

    Without a stated size of the cells, `items` is the most that dev and test together can hold: often far more than
    the scarcest cell allows. Where people decide how much is written, items and chance are None.
    """
    items: int | None
    if plan.per_cell is not None:
        items, at_most = len(HELD_OUT) * plan.per_cell * len(task.model_labels) ** 2, False
    elif plan.size and plan.authoring is None:
        items, at_most = max(1, int(plan.size * plan.held_out_share)), True
    else:
        items, at_most = None, False
    return {
        "items": items,
        "at_most": at_most,
        "margin": plan.margin,
        "chance": None if items is None else chance_called_solved(items, plan.margin),
        "items_for_80": items_called_solved(WANTED_CHANCE, plan.margin),
    }


def power_lines(power: Mapping[str, Any]) -> Iterator[str]:
    """Yield what the planned size can tell as lines of text, with a warning where it is little."""
    if power["items"] is None:
        yield (
            f"how much people write decides the size of dev and test; from {power['items_for_80']} items on a model "
            f"exactly as good as people would be called solved with 80 % chance (margin {power['margin']})"
        )
        return
    most = "at most " if power["at_most"] else ""
    yield (
        f"{most}{power['items']} items in dev and test: a model exactly as good as people would be called solved with "
        f"{most}{power['chance']:.0%} chance (margin {power['margin']})"
    )
    if power["chance"] < 0.5:
        yield (
            f"warning: that is less than half; from {power['items_for_80']} items on it is 80 % "
            "(a larger --size or --per-cell, or a larger --margin; docs/solved.md)"
        )
