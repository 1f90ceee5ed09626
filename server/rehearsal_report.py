"""What a rehearsal found, as lines of text and as plain data; it always says that no people were in it."""

from collections.abc import Iterator, Sequence
from statistics import mean, stdev
from typing import Any

from server.rehearsal import AS_TOLD, WELL_BEHAVED, Rehearsal
from server.rehearsal_figures import Rehearsed

CROWD = "a scripted crowd (not people)"
MEASURES = ("accuracy", "coverage")
AIM = 0.02
"""By how much accuracy and coverage of the crowd as told may lie below those of the crowd that behaves."""


def differences(done: Rehearsal, measure: str) -> list[float]:
    """Return by seed how far a measure of the crowd as told lies from that of the crowd that behaves."""
    pairs = zip(done.runs[AS_TOLD], done.runs[WELL_BEHAVED], strict=True)
    return [float(getattr(one, measure) - getattr(other, measure)) for one, other in pairs]


def broken_promises(done: Rehearsal) -> list[str]:
    """Say which promises did not hold, and in which run."""
    return [
        f"seed {seed}, {name}: {sentence}"
        for name, runs in done.runs.items()
        for seed, run in enumerate(runs)
        for sentence in run.broken
    ]


def rehearsal_data(done: Rehearsal) -> dict[str, Any]:
    """Return a rehearsal as plain data."""
    return {
        "crowd": CROWD,
        "told": vars(done.told),
        "runs": {name: [_plain(run) for run in runs] for name, runs in done.runs.items()},
        "differences": {
            measure: {"mean": mean(found), "spread": _spread(found), "aim": -AIM, "aim_met": mean(found) >= -AIM}
            for measure in MEASURES
            for found in (differences(done, measure),)
        },
        "broken_promises": broken_promises(done),
    }


def _plain(run: Rehearsed) -> dict[str, Any]:
    return {**run._asdict(), "stopped": {kind: stopped._asdict() for kind, stopped in run.stopped.items()}}


def rehearsal_lines(done: Rehearsal) -> Iterator[str]:
    """Yield a rehearsal as lines of text."""
    told, seeds = done.told, len(done.runs[AS_TOLD])
    yield (
        f"{CROWD}: {told.workers} workers, {told.examples} examples; {told.spammers:.0%} spammers, "
        f"{told.leavers:.0%} leavers, {told.double:.0%} send every page twice"
    )
    yield f"gold against the planted labels, mean of {seeds} seeds (spread):"
    yield f"  {'':34}{'accuracy':16}{'coverage':16}responses, leases expired, sent twice"
    for name, runs in done.runs.items():
        shown = [_shown([getattr(run, measure) for run in runs]) for measure in MEASURES]
        totals = [sum(getattr(run, what) for run in runs) for what in ("responses", "leases_expired", "sent_twice")]
        yield f"  {name:34}{shown[0]:16}{shown[1]:16}" + ", ".join(f"{total:,}" for total in totals)
    for measure in MEASURES:
        found = differences(done, measure)
        verdict = "within the aim" if mean(found) >= -AIM else "below the aim"
        yield (
            f"{measure} beside the crowd that behaves: {100 * mean(found):+.1f} points "
            f"(spread {100 * _spread(found):.1f}; the aim is -{100 * AIM:g} or better): {verdict}"
        )
    yield f"stopped in the rehearsals {AS_TOLD!r}, of all seeds:"
    for kind in sorted({kind for run in done.runs[AS_TOLD] for kind in run.stopped}):
        mine = [run.stopped[kind] for run in done.runs[AS_TOLD] if kind in run.stopped]
        there, door, screened = (sum(counts) for counts in zip(*mine, strict=True))
        yield f"  {kind:12}{door} of {there} before the first page, {screened} by screening"
    broken = broken_promises(done)
    yield from (f"BROKEN: {sentence}" for sentence in broken)
    if not broken:
        yield (
            "every promise held: five responses count for each example, nobody twice, none of the removed; "
            "what was acknowledged is stored once, as it was sent"
        )


def _shown(values: Sequence[float]) -> str:
    return f"{mean(values):.3f} ({_spread(values):.3f})"


def _spread(values: Sequence[float]) -> float:
    return stdev(values) if len(values) > 1 else 0.0
