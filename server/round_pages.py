"""The read-only pages: all rounds, the figures of one, its released examples, and the stored readings of models."""

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, NamedTuple

from flask import Blueprint, render_template, request
from sqlmodel import Session, col, select

from dynaround.database import reading
from dynaround.errors import BadInput, NotFound
from dynaround.splits import SPLITS
from dynaround.tables import LAUNCHER, MAINTAINER, RELEASED, Round
from dynaround.task import Task
from dynaround.tasks import get_task
from rounds.lifecycle import find_round, require_state
from rounds.readings import readings_of_release, stored_readings
from rounds.shown_names import shown_plan
from rounds.solved_checks import solved_checks
from rounds.status import round_figures, shortage_notes
from server.access import allowed, current_engine
from server.shown import (
    NOT_LISTED,
    RIGHT,
    WRONG,
    Outcome,
    Step,
    count_not_listed,
    listed_outcomes,
    next_steps,
    pool_table,
    shown_examples,
    who_answered,
)

EXAMPLES_A_PAGE = 25
NEWEST_READINGS = 6
LISTED_SPLITS = tuple(split for split in SPLITS if split != NOT_LISTED)
NO_MAJORITY = "no majority"

# The largest number that every database takes for a whole number.
_NUMBER = "<int(max=2147483647):number>"

pages = Blueprint("pages", __name__)
readers = allowed(LAUNCHER, MAINTAINER, anybody_in_demo=True)


class RoundRow(NamedTuple):
    """One round in the list of rounds."""

    figures: Mapping[str, Any]
    who: str | None
    steps: Sequence[Step]


class Filters(NamedTuple):
    """Which released examples are wanted; None: all."""

    split: str | None
    gold: str | None
    model: str | None

    def admit(self, outcome: Outcome) -> bool:
        """Whether an example with this outcome is wanted."""
        return (
            self.split in (None, outcome.split)
            and self.gold in (None, outcome.gold or NO_MAJORITY)
            and self.model in (None, outcome.model)
        )


def _session() -> AbstractContextManager[Session]:
    return reading(current_engine())


@pages.get("/")
@readers
def all_rounds() -> str:
    """Show where every round stands, what to do next, and the newest readings."""
    with _session() as session:
        rounds = session.exec(select(Round).order_by(col(Round.number).desc())).all()
        rows = []
        for round_ in rounds:
            figures = round_figures(session, round_)
            rows.append(RoundRow(figures, who_answered(session, round_), next_steps(figures, round_ is rounds[0])))
        readings = stored_readings(session, NEWEST_READINGS)
    return render_template("rounds.html", rows=rows, readings=readings)


@pages.get(f"/rounds/{_NUMBER}")
@readers
def one_round(number: int) -> str:
    """Show every figure of a round."""
    with _session() as session:
        round_ = find_round(session, number)
        figures = round_figures(session, round_)
        who = who_answered(session, round_)
        readings = readings_of_release(session, round_, get_task(round_.task))
        checks = solved_checks(session, round_)
        last = session.exec(select(Round.number).order_by(col(Round.number).desc())).first()
    return render_template(
        "round.html",
        figures=figures,
        plan=shown_plan(figures["plan"]),
        pool=pool_table(figures["harvest"]["pool"], get_task(figures["task"])) if figures["harvest"] else None,
        notes=list(shortage_notes(figures["harvest"])) if figures["harvest"] else [],
        steps=next_steps(figures, number == last),
        who=who,
        task=get_task(figures["task"]),
        readings=readings,
        checks=checks,
    )


@pages.get(f"/rounds/{_NUMBER}/examples")
@readers
def released_examples(number: int) -> str:
    """Show the examples of a released round, without those of its test split."""
    with _session() as session:
        round_ = find_round(session, number)
        require_state(round_, RELEASED)
        assert round_.id is not None
        task = get_task(round_.task)
        filters = asked_filters(task)
        wanted = [outcome for outcome in listed_outcomes(session, round_.id, task) if filters.admit(outcome)]
        page, page_count = asked_page(len(wanted))
        start = (page - 1) * EXAMPLES_A_PAGE
        examples = shown_examples(session, round_, wanted[start : start + EXAMPLES_A_PAGE])
        not_listed = count_not_listed(session, round_.id)
        who = who_answered(session, round_)
    return render_template(
        "examples.html",
        number=number,
        target_model=round_.target_model,
        task=task,
        who=who,
        filters=filters,
        split_options=LISTED_SPLITS,
        gold_options=(*task.labels, NO_MAJORITY),
        model_options=(WRONG, RIGHT),
        not_listed=not_listed,
        found=len(wanted),
        examples=examples,
        page=page,
        page_count=page_count,
    )


@pages.get("/readings")
@readers
def all_readings() -> str:
    """Show every reading of a model, the newest first."""
    with _session() as session:
        readings = stored_readings(session, None)
    return render_template("readings.html", readings=readings)


def asked_filters(task: Task) -> Filters:
    """Read the filters from the address; raise BadInput for a value that is none of those on offer."""
    if request.args.get("split") == NOT_LISTED:
        raise BadInput(
            f"the {NOT_LISTED} split is not listed, so that no model is made with it in view; choose another"
        )
    return Filters(
        split=_asked("split", LISTED_SPLITS),
        gold=_asked("gold", [*task.labels, NO_MAJORITY]),
        model=_asked("model", [WRONG, RIGHT]),
    )


def _asked(name: str, known: Sequence[str]) -> str | None:
    value = request.args.get(name) or None
    if value is not None and value not in known:
        raise BadInput(f"the filter {name} is none of {', '.join(known)}; choose one of them on the page of examples")
    return value


def asked_page(found: int) -> tuple[int, int]:
    """Return the wanted page and how many there are.

    Raises BadInput for what is no number, NotFound for a page beyond the last.
    """
    page_count = max(1, -(-found // EXAMPLES_A_PAGE))
    try:
        page = int(request.args.get("page") or 1)
    except ValueError as error:
        raise BadInput("the page is no whole number; take the links below the examples") from error
    if not 1 <= page <= page_count:
        raise NotFound(f"these examples fill {page_count} pages, and the wanted one is none of them")
    return page, page_count
