"""Whether a validator's work can stay: the published and the leave-one-out disagreement, the rate on check items, and
the rule that decides. Pure: the same for any order of workers and of arrival.
"""

from collections.abc import Container, Iterable, Mapping
from typing import Annotated, Literal, NamedTuple

from pydantic import BaseModel, ConfigDict, Field

from dynaround.agreement import WorkerAgreement, WorkerResponse, worker_agreement
from dynaround.text import natural_order

LEAVE_ONE_OUT, PUBLISHED, CHECK_ITEMS = "leave-one-out", "published", "check items"
"""By what a worker can be removed."""


class ScreeningRule(BaseModel):
    """By what a round removes workers; its plan has these fields, frozen when it opened. Rates are parts of 1.

    "leave-one-out" removes a worker who disagrees with the majority of the others on more than `most_disagreement` of
    the comparable examples, and one whose rate on check items is under `least_check_rate`; "published" one who
    disagrees with the majority, the own response counted, on more than `published_disagreement` (Potts et al. 2021,
    sec. 3.3: 80 %); "none" nobody. Nobody is judged by fewer than `least_examples` or `least_checks`. Who is removed is
    barred from this work for `bar_days`.
    """

    model_config = ConfigDict(frozen=True, extra="ignore")

    rule: Literal["leave-one-out", "published", "none"] = "leave-one-out"
    most_disagreement: Annotated[float, Field(gt=0, le=1)] = 0.6
    published_disagreement: Annotated[float, Field(gt=0, le=1)] = 0.8
    least_examples: Annotated[int, Field(ge=1)] = 15
    least_check_rate: Annotated[float, Field(ge=0, le=1)] = 0.5
    least_checks: Annotated[int, Field(ge=1)] = 5
    bar_days: Annotated[int, Field(ge=1)] = 7


class CheckRate(NamedTuple):
    """How many check items a worker met, how many of them the worker had right, and said could not be judged.

    What is said not to be judgeable is not right, since its answer is known: else whoever says so of everything would
    never be measured.
    """

    met: int
    right: int
    flagged: int = 0

    @property
    def rate(self) -> float | None:
        """The share that was right; without a check item there is none."""
        return self.right / self.met if self.met else None


class WorkerMeasures(NamedTuple):
    """What is known of one worker: responses that count, both agreements with majorities, and the check items."""

    worker: str
    responses: int
    published: WorkerAgreement
    leave_one_out: WorkerAgreement
    checks: CheckRate


def worker_measures(
    responses: Iterable[WorkerResponse],
    checks: Mapping[str, CheckRate],
    excused: Container[tuple[str, str]] = (),
) -> list[WorkerMeasures]:
    """Return the measures of every worker with a response or a check item, in natural order of the workers.

    `responses` are those that count on the examples of finished batches; one that `excused` names by example and worker
    helps to make majorities and is not judged. Raises BadInput for two responses of one worker on one example.
    """
    given = list(responses)
    loads: dict[str, int] = {}
    for response in given:
        loads[response.worker] = loads.get(response.worker, 0) + 1
    published = worker_agreement(given, excused=excused)
    leave_one_out = worker_agreement(given, own_counts=False, excused=excused)
    nothing, unmeasured = CheckRate(0, 0), WorkerAgreement(0, 0, None)
    return [
        WorkerMeasures(
            worker,
            loads.get(worker, 0),
            published.get(worker, unmeasured),
            leave_one_out.get(worker, unmeasured),
            checks.get(worker, nothing),
        )
        for worker in sorted({*loads, *checks}, key=natural_order)
    ]


def disagreement(agreement: WorkerAgreement) -> float | None:
    """Return the share of comparable examples on which a worker disagrees with the majority; None without any."""
    # From whole numbers: 12 of 20 is then the number that a limit of .6 is, where 1 - 8/20 need not be.
    return (agreement.comparable - agreement.agreeing) / agreement.comparable if agreement.comparable else None


def broken_rules(measures: WorkerMeasures, rule: ScreeningRule) -> tuple[str, ...]:
    """Return which of `LEAVE_ONE_OUT`, `CHECK_ITEMS` and `PUBLISHED` a worker breaks, whatever the plan acts on."""
    broken = []
    if _beyond(measures.leave_one_out, rule.most_disagreement, rule.least_examples):
        broken.append(LEAVE_ONE_OUT)
    rate = measures.checks.rate
    if rate is not None and measures.checks.met >= rule.least_checks and rate < rule.least_check_rate:
        broken.append(CHECK_ITEMS)
    if _beyond(measures.published, rule.published_disagreement, rule.least_examples):
        broken.append(PUBLISHED)
    return tuple(broken)


def removing_rule(measures: WorkerMeasures, rule: ScreeningRule) -> str | None:
    """Return by what the plan's rule removes a worker, or None where the worker stays."""
    acting = acting_rules(rule)
    return next((broken for broken in broken_rules(measures, rule) if broken in acting), None)


def acting_rules(rule: ScreeningRule) -> tuple[str, ...]:
    """Return which of `LEAVE_ONE_OUT`, `CHECK_ITEMS` and `PUBLISHED` remove workers by a plan's rule."""
    return {LEAVE_ONE_OUT: (LEAVE_ONE_OUT, CHECK_ITEMS), PUBLISHED: (PUBLISHED,)}.get(rule.rule, ())


def _beyond(agreement: WorkerAgreement, limit: float, least: int) -> bool:
    share = disagreement(agreement)
    return share is not None and agreement.comparable >= least and share > limit
