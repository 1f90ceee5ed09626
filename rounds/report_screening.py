"""What a report says of the screening: what the figures are with and without it, and which labels it took out."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from dynaround.agreement import CountTable, fleiss_kappa, krippendorff_alpha
from dynaround.human import expected_human_scores
from dynaround.labels import RESPONSES, label_distribution
from dynaround.scoring import winning_votes
from dynaround.tables import LATE, REMOVED
from dynaround.task import Task
from rounds.raw_responses import RawResponses
from rounds.report_labels import NO_MAJORITY
from rounds.report_parts import Cell, Section, Table
from rounds.report_screened_workers import histogram, measured_workers, rates_table, rules_table, workers_table
from rounds.report_source import ReportSource

COUNTING, WITHOUT, EVERYTHING = "those that count", "without the screening", "all responses of everybody"


class _Labels(NamedTuple):
    """The labels that were given to one example: those that count, and those that would without the screening."""

    counting: tuple[str, ...]
    without: tuple[str, ...]


def screening_section(source: ReportSource) -> Section | None:
    """Return the figures with and without the screening, which labels it took out, and both measures of all workers.

    None where it is not known what was answered besides: in files.
    """
    raw = source.raw
    if raw is None:
        return None
    labels = _labels(source, raw)
    measured = measured_workers(raw)
    rates = rates_table(measured)
    tables = [rules_table(raw, measured)]
    if raw.removed:
        tables += [_effect(source, raw, labels), _taken_out(source, raw, labels), _changed(source.task, labels)]
    tables += [workers_table(raw, measured), rates]
    told = (_told(source, raw, labels),)
    return Section("screening", "Screening", told, tuple(t for t in tables if t.rows), (histogram(rates),))


def _labels(source: ReportSource, raw: RawResponses) -> dict[str, _Labels]:
    """Return the labels of every reported example.

    Without the screening those count that had the five places first; where no removed worker answered, it is the same.
    """
    found = {}
    for part in source.whole_rounds:
        for example in part.examples:
            counting = tuple(response.label for response in example.responses)
            in_time = [one for one in raw.by_example[example.text_id] if one.uncounted != LATE]
            touched = any(one.uncounted == REMOVED for one in in_time)
            first = tuple(one.label for one in in_time[:RESPONSES])
            found[example.text_id] = _Labels(counting, first if touched else counting)
    return found


def _told(source: ReportSource, raw: RawResponses, labels: Mapping[str, _Labels]) -> str:
    uncounted = Counter(one.uncounted for responses in raw.by_example.values() for one in responses)
    everybody = len({one.worker for responses in raw.by_example.values() for one in responses})
    changed = sum(_gold(one.counting, source.task) != _gold(one.without, source.task) for one in labels.values())
    who = (
        f"Removed from the round: {len(raw.removed)} of {everybody} workers, with {uncounted[REMOVED]:,} responses; "
        f"the gold label of {changed:,} of {len(labels):,} examples is another than without that"
        if raw.removed
        else f"Nobody of {everybody} workers was removed from the round"
    )
    back = f" Removed and let in again: {len(raw.reinstated)}." if raw.reinstated else ""
    return (
        f"{who}.{back} Too late to count: {uncounted[LATE]:,} responses. The published measure is the share of "
        "examples on which a worker disagrees with the majority, the own response counted; leave-one-out compares with "
        f"the majority of the others. Both are of examples with at least {RESPONSES} responses. All responses are kept."
    )


def _effect(source: ReportSource, raw: RawResponses, labels: Mapping[str, _Labels]) -> Table:
    everything = [tuple(one.label for one in raw.by_example[example]) for example in labels]
    rows = (
        _effect_row(COUNTING, [one.counting for one in labels.values()], source.task),
        _effect_row(WITHOUT, [one.without for one in labels.values()], source.task),
        (EVERYTHING, *_agreement_cells(everything, source.task), *(None,) * (len(source.task.labels) + 3)),
    )
    return Table(
        "screening-effect",
        "Labels and agreement, with the screening and without it",
        (
            *("responses", "examples", "number", "alpha", "kappa", *source.task.labels, NO_MAJORITY),
            *("vote accuracy", f"macro F1 of {source.responses_from}"),
        ),
        tuple(rows),
        note="Without the screening: where a removed worker answered, the five responses that had the places first; "
        "what else had come then nobody knows. Labels are counted as gold. –: needs five responses an example.",
    )


def _effect_row(name: str, given: Sequence[tuple[str, ...]], task: Task) -> tuple[Cell, ...]:
    golds = [_gold(labels, task) for labels in given]
    counts = [golds.count(label) for label in (*task.labels, None)]
    accuracy = winning_votes([label_distribution(labels, task.labels) for labels in given]).accuracy
    f1 = None
    if any(gold in task.model_labels for gold in golds):
        items = list(zip(golds, given, strict=True))
        f1 = expected_human_scores(items, task.model_labels, task.labels).macro_f1
    return name, *_agreement_cells(given, task), *counts, accuracy, f1


def _agreement_cells(given: Sequence[tuple[str, ...]], task: Task) -> tuple[Cell, ...]:
    table = CountTable.from_distributions((label_distribution(labels, task.labels) for labels in given), task.labels)
    kappa = fleiss_kappa(table).value if {len(labels) for labels in given} == {RESPONSES} else None
    return len(given), sum(map(len, given)), krippendorff_alpha(table).value, kappa


def _gold(labels: Sequence[str], task: Task) -> str | None:
    return task.gold(labels).label


def _taken_out(source: ReportSource, raw: RawResponses, labels: Mapping[str, _Labels]) -> Table:
    """Count, by label, what the screening took out of the responses without it, and what of that was a minority's."""
    there: Counter[str] = Counter()
    out: Counter[str] = Counter()
    minority: Counter[str] = Counter()
    minority_out: Counter[str] = Counter()
    for example, one in labels.items():
        gold = _gold(one.without, source.task)
        in_time = [response for response in raw.by_example[example] if response.uncounted != LATE][:RESPONSES]
        there.update(one.without)
        minority.update(label for label in one.without if gold not in (None, label))
        gone = [response.label for response in in_time if response.uncounted == REMOVED]
        out.update(gone)
        minority_out.update(label for label in gone if gold not in (None, label))
    rows = [
        (
            *(label, there[label], out[label], _share(out[label], there[label])),
            *(minority[label], minority_out[label], _share(minority_out[label], minority[label])),
        )
        for label in source.task.labels
    ]
    return Table(
        "screening-taken-out",
        "Responses that the screening took out, by label",
        ("label", "responses", "taken out", "share", "of a minority", "taken out of these", "their share"),
        tuple(rows),
        note="Of the responses without the screening. Of a minority: on an example with another gold label then. Where "
        "the shares of labels differ much, the screening leaned on what people said.",
    )


def _share(part: int, whole: int) -> float | None:
    return part / whole if whole else None


def _changed(task: Task, labels: Mapping[str, _Labels]) -> Table:
    pairs = Counter((_gold(one.without, task), _gold(one.counting, task)) for one in labels.values())
    order = (*task.labels, None)
    rows = [
        (before or NO_MAJORITY, after or NO_MAJORITY, pairs[before, after])
        for before in order
        for after in order
        if before != after and pairs[before, after]
    ]
    return Table(
        "screening-changed",
        "Gold labels that are others by the screening",
        ("without the screening", "as it counts", "examples"),
        tuple(rows),
    )
