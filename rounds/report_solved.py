"""What a report says of checks: each time someone asked whether the round is solved, and what holds of its files."""

from collections.abc import Mapping, Sequence
from typing import Any

from dynaround.solved import answer_lines
from rounds.report_parts import Section, Table
from rounds.report_source import ReportSource

DIGITS = 4
"""One more than elsewhere: a bound of -.0199 beside a margin of .02 must not look like one on it."""


def solved_section(source: ReportSource) -> Section | None:
    """Return every stored check of whether a later model does as well as those who answered; None without any."""
    if not source.solved:
        return None
    checks = sorted(source.solved, key=lambda check: check["number"])
    newest = checks[-1]
    answer = (
        f"The {newest['ordinal']} check of this round, {newest['model']} beside {newest['responses_from']}: "
        f"{next(answer_lines(newest))}."
    )
    notes = [
        f"Check {check['number']}: {note}" for check in checks for note in (*check["notes"], check["warning"]) if note
    ]
    side = f"macro F1 of {source.responses_from}"
    tables = (_together(checks, side, source.responses_from), _by_split(checks, side), _with_workers(checks))
    return Section("solved", "Is the round solved?", (answer, *notes), tables)


def _together(checks: Sequence[Mapping[str, Any]], side: str, who: str) -> Table:
    return Table(
        "solved",
        "Checks of whether the round is solved, on all judged splits together",
        (
            *("check", "model", "answer", "margin", "examples", "macro F1 of the model", side, "difference"),
            *("lower", "upper", "half-width", "examples wanted"),
        ),
        tuple(
            (
                *(check["number"], check["model"], check["answer"], check["margin"]),
                *(*_compared(check["together"]), check["together"]["half_width"], check["items_for_80"]),
            )
            for check in checks
        ),
        note="Lower and upper are one-sided 95 % bounds of the difference, resampling whole reviews or prompts; they "
        "and the margin give the answer. Examples wanted: from so many on a model as good as "
        f"{who} is called solved with 80 % chance, if its scores spread as these do.",
        digits=DIGITS,
    )


def _by_split(checks: Sequence[Mapping[str, Any]], side: str) -> Table:
    return Table(
        "solved-by-split",
        "The same checks, split by split",
        ("check", "split", "examples", "macro F1 of the model", side, "difference", "lower", "upper", "answer"),
        tuple(
            (check["number"], one["on"], *_compared(one), one["answer"]) for check in checks for one in check["splits"]
        ),
        digits=DIGITS,
    )


def _compared(one: Mapping[str, Any]) -> tuple[float, ...]:
    """Return items, both scores, their difference and its bounds."""
    sides = (one["model"]["macro_f1"], one["labelled_by"]["macro_f1"], one["difference"])
    return one["items"], *sides, one["lower"], one["upper"]


def _with_workers(checks: Sequence[Mapping[str, Any]]) -> Table:
    each = [(check, check["with_workers"]) for check in checks]
    return Table(
        "solved-with-workers",
        "The same checks, items and workers resampled together",
        ("check", "workers", "lower", "upper", "answer with workers", "seed", "asked on"),
        tuple(
            (
                *(check["number"], one["workers"], one["lower"], one["upper"], one["answer"]),
                *(check["seed"], f"{check['at']:%Y-%m-%d}"),
            )
            for check, one in each
        ),
        note="What the bounds would be if other workers could have come too; it does not decide. Gold itself is not "
        "re-drawn.",
        digits=DIGITS,
    )


def invariants_section(source: ReportSource) -> Section | None:
    """Return what holds of released files, rule by rule; None for a round that has none yet."""
    if not source.checks:
        return None
    judged = [one for one in source.checks if one.status != "could not be checked"]
    left = [one.name for one in source.checks if one.status == "could not be checked"]
    rows = tuple((one.name, one.status, one.detail, one.required_by) for one in judged)
    table = Table("invariants", "What holds of the files", ("check", "result", "found", "required by"), rows)
    text = "Our rules include the published ones; those marked as ours need not hold of published files."
    unchecked = f"Could not be checked with what is given here: {', '.join(left)}."
    return Section("invariants", "Invariants", (text, unchecked) if left else (text,), (table,))
