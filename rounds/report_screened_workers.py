"""What a report says of the workers of a round as screening sees them: both measures side by side, and the rules."""

from collections import Counter
from collections.abc import Sequence

from dynaround.agreement import WorkerResponse
from dynaround.screening_measures import (
    CHECK_ITEMS,
    LEAVE_ONE_OUT,
    PUBLISHED,
    WorkerMeasures,
    acting_rules,
    broken_rules,
    disagreement,
    worker_measures,
)
from dynaround.tables import LATE
from dynaround.worker_figures import RATE_BINS
from rounds.raw_responses import RawResponses
from rounds.report_parts import Cell, Plot, Series, Table


def measured_workers(raw: RawResponses) -> list[WorkerMeasures]:
    """Return both measures of everybody, of all responses but late ones; known answers stay out of reports."""
    given = [
        WorkerResponse(example, one.worker, one.label)
        for example, responses in raw.by_example.items()
        for one in responses
        if one.uncounted != LATE
    ]
    return worker_measures(given, {})


def rules_table(raw: RawResponses, measured: Sequence[WorkerMeasures]) -> Table:
    """Return the limits, which of them act, and how many workers are beyond them and were removed."""
    rule = raw.rule
    by_rule = Counter(raw.removed.values())
    broken = Counter(name for one in measured for name in broken_rules(one, rule))
    acting = acting_rules(rule)
    rows: list[tuple[Cell, ...]] = []
    for name, limit in ((LEAVE_ONE_OUT, rule.most_disagreement), (PUBLISHED, rule.published_disagreement)):
        agreements = [one.leave_one_out if name == LEAVE_ONE_OUT else one.published for one in measured]
        judged = sum(found.comparable >= rule.least_examples for found in agreements)
        said = f"disagreement over {limit:.0%}, from {rule.least_examples} examples on"
        rows.append((name, said, _yes(name in acting), judged, broken[name], by_rule[name]))
    said = f"under {rule.least_check_rate:.0%} right, from {rule.least_checks} items on"
    rows.append((CHECK_ITEMS, said, _yes(CHECK_ITEMS in acting), None, None, by_rule[CHECK_ITEMS]))
    return Table(
        "screening-rules",
        "By what workers are removed",
        ("measure", "limit", "acts", "judged", "beyond it", "removed"),
        tuple(rows),
        note="Beyond it: by all responses of everybody as they are now. Removed: by what was known when a batch was "
        "full. –: how workers answered sentences of known answers stays with the launcher.",
    )


def _yes(acts: bool) -> str:
    return "yes" if acts else "no"


def workers_table(raw: RawResponses, measured: Sequence[WorkerMeasures]) -> Table:
    """Return both measures of the workers who were removed or are beyond a limit."""
    rows = [
        (
            *(one.worker, one.responses),
            *(one.published.comparable, disagreement(one.published)),
            *(one.leave_one_out.comparable, disagreement(one.leave_one_out)),
            ", ".join(broken_rules(one, raw.rule)) or None,
            raw.removed.get(one.worker, "let in again" if one.worker in raw.reinstated else None),
        )
        for one in measured
        if one.worker in raw.removed or one.worker in raw.reinstated or broken_rules(one, raw.rule)
    ]
    return Table(
        "screening-workers",
        "Both measures of the workers who were removed or are beyond a limit",
        (
            *("worker", "responses", "comparable", "published disagreement"),
            *("comparable without the own", "leave-one-out disagreement", "beyond", "removed by"),
        ),
        tuple(rows),
        note="By all responses of everybody as they are now, late ones left out.",
    )


def rates_table(measured: Sequence[WorkerMeasures]) -> Table:
    """Return how many workers have which disagreement, by both measures."""
    bins: dict[str, Counter[int]] = {PUBLISHED: Counter(), LEAVE_ONE_OUT: Counter()}
    for one in measured:
        for name, found in ((PUBLISHED, one.published), (LEAVE_ONE_OUT, one.leave_one_out)):
            if found.comparable:
                # In whole numbers, so that a rate on an edge falls where it belongs.
                place = RATE_BINS * (found.comparable - found.agreeing) // found.comparable
                bins[name][min(place, RATE_BINS - 1)] += 1
    return Table(
        "screening-rates",
        "Workers by their disagreement with the majority",
        ("disagreement", PUBLISHED, LEAVE_ONE_OUT),
        tuple(
            (
                f"{place / RATE_BINS:.2f}-{(place + 1) / RATE_BINS:.2f}",
                *(bins[name][place] for name in (PUBLISHED, LEAVE_ONE_OUT)),
            )
            for place in range(RATE_BINS)
        ),
        note="Each bin holds its lower edge, the last both. Workers with a comparable example.",
    )


def histogram(rates: Table) -> Plot:
    """Return the picture of `rates_table`."""
    return Plot(
        "screening-histogram",
        "histogram",
        "Disagreement of workers with the majority",
        rates.key,
        tuple(str(row[0]) for row in rates.rows),
        tuple(
            Series(name, tuple(float(count) for count in counts if isinstance(count, int)))
            for name, counts in zip((PUBLISHED, LEAVE_ONE_OUT), list(zip(*rates.rows, strict=True))[1:], strict=True)
        ),
        x_name="disagreement",
        y_name="workers",
    )
