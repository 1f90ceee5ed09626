"""What a report says of how well those who answered do: their F1 in three ways, by label, as published, and by group.

Only figures of people are called human performance; a crowd that is none goes by its own name.
"""

from dynaround.answered_items import AnsweredItem
from dynaround.human import MixedGold, shuffled_human_scores
from dynaround.human_explanation import explanation
from dynaround.human_performance import HumanPerformance, PerformanceFigure, human_performance
from dynaround.intervals import Interval
from dynaround.judged_responses import Bootstrap
from dynaround.scoring import LabelScore
from rounds.report_agreement import BOOTSTRAP
from rounds.report_parts import Cell, Plot, Section, Series, Table
from rounds.report_source import Part, ReportSource
from rounds.report_undefined import table_with_reasons
from rounds.solved_items import source_of

PUBLISHED_SEED = 1
"""The seed of the one shuffle behind the published scores of people (`dynasent_utils.py` of the DynaSent authors)."""

MACRO = "macro"
_GOLD_LABELS: dict[MixedGold, str] = {"drop": "the model's", "keep": "all"}
_WAYS_NOTE = (
    "(a) is how the score is published, after a filter; (b) judges every response on an example with a gold label; "
    "(c) judges each against what at least three of the other four say, and leaves out, as unusable, a response whose "
    "other four have no such label."
)
_WAY_COLUMNS = ("examples", "responses", "unusable", "vote accuracy", "macro F1", "low", "high")
_LABEL_COLUMNS = ("label", "examples", "precision", "recall", "F1", "low", "high")


def performance_of(part: Part, source: ReportSource, seed: int, mixed_gold: MixedGold = "drop") -> HumanPerformance:
    """Return the three figures and the worker groups of one part."""
    held_out = {example.text_id for one in source.parts if one.held_out for example in one.examples}
    items = [
        AnsweredItem(
            gold=example.gold,
            responses=tuple((response.worker, response.label) for response in example.responses),
            cluster=source_of(example),
            held_out=example.text_id in held_out,
        )
        for example in part.examples
    ]
    return human_performance(items, source.task.model_labels, source.task.labels, Bootstrap(seed), mixed_gold)


def performance_section(source: ReportSource, seed: int) -> Section:
    """Return the F1 of those who answered, with intervals, and a paragraph on why its three figures differ."""
    wholes = {part.name: performance_of(part, source, seed) for part in source.whole_rounds}
    parts = {part.name: wholes.get(part.name) or performance_of(part, source, seed) for part in source.rows}
    several = len(wholes) > 1
    who = source.responses_from
    by_label = _by_label(source, parts)
    ways = (_ways(source, wholes, seed), _ways_by_label(source, wholes))
    tables = (*ways, by_label, _published(source), _groups(source, wholes))
    return Section(
        key="performance",
        title="Human performance" if source.of_people else f"Performance of {who}",
        paragraphs=tuple(
            (f"{name}: " if several else "") + explanation(performance, who) for name, performance in wholes.items()
        ),
        tables=tuple(table for table in tables if table.rows),
        plots=(_plot(source, parts, by_label.key),) if by_label.rows else (),
    )


def _ways(source: ReportSource, wholes: dict[str, HumanPerformance], seed: int) -> Table:
    rows: list[tuple[Cell, ...]] = []
    for part in source.whole_rounds:
        rows += _way_rows(part.name, wholes[part.name])
        if any(example.gold not in (None, *source.task.model_labels) for example in part.examples):
            rows += _way_rows(part.name, performance_of(part, source, seed, "keep"))
    unusable = ", ".join(f"{name} {one.unusable_of_all:,} of {one.responses:,}" for name, one in wholes.items())
    return table_with_reasons(
        "f1-three-ways",
        f"Macro F1 of {source.responses_from}, three ways",
        ("round", "way", "gold labels", *_WAY_COLUMNS),
        rows,
        note=f"{_WAYS_NOTE} Gold labels that the model lacks are left out or, as published, kept, where they lower "
        f"precision. Unusable among all examples, also those without gold: {unusable}. {BOOTSTRAP}",
    )


def _ways_of(performance: HumanPerformance) -> dict[str, PerformanceFigure]:
    return {
        "(a) dev and test": performance.filtered,
        "(b) all with gold": performance.with_gold,
        "(c) against four": performance.leave_one_out,
    }


def _way_rows(name: str, performance: HumanPerformance) -> list[tuple[Cell, ...]]:
    gold = _GOLD_LABELS[performance.mixed_gold]
    return [
        (name, way, gold, *_counts(figure), *_macro_f1(figure), figure.reason)
        for way, figure in _ways_of(performance).items()
    ]


def _ways_by_label(source: ReportSource, wholes: dict[str, HumanPerformance]) -> Table:
    rows = [
        (name, way, *row)
        for name, performance in wholes.items()
        for way, figure in _ways_of(performance).items()
        for row in _label_rows(figure, source)
    ]
    return Table(
        "f1-three-ways-by-label",
        f"Precision, recall and F1 of {source.responses_from}, three ways by label",
        ("round", "way", *_LABEL_COLUMNS),
        tuple(rows),
        note=f"{_WAYS_NOTE} Only examples whose gold label the model has. {BOOTSTRAP}",
    )


def _label_rows(figure: PerformanceFigure, source: ReportSource) -> list[tuple[Cell, ...]]:
    """Return a row a label and the macro row, in the order of `_LABEL_COLUMNS`; none where nothing can be scored."""
    if figure.scores is None:
        return []
    scores = figure.scores
    macro = LabelScore(MACRO, scores.macro_precision, scores.macro_recall, scores.macro_f1, figure.items)
    return [
        (row.label, row.support, row.precision, row.recall, row.f1, *_ends(interval))
        for row, interval in zip((*scores.per_label, macro), _intervals(figure, source), strict=True)
    ]


def _counts(figure: PerformanceFigure) -> tuple[Cell, ...]:
    return figure.items, figure.responses, figure.unusable, figure.vote_accuracy


def _macro_f1(figure: PerformanceFigure) -> tuple[Cell, ...]:
    f1 = None if figure.scores is None else figure.scores.macro_f1
    return f1, *_ends(_macro_interval(figure))


def _macro_interval(figure: PerformanceFigure) -> Interval | None:
    return figure.intervals.macro if figure.intervals is not None else None


def _intervals(figure: PerformanceFigure, source: ReportSource) -> list[Interval | None]:
    """Return the interval of each label's F1, then that of their mean; None where they are of one cluster."""
    found = figure.intervals.per_label if figure.intervals is not None else ()
    return [*(found or [None] * len(source.task.model_labels)), _macro_interval(figure)]


def _ends(interval: Interval | None) -> tuple[float, float] | tuple[None, None]:
    return (None, None) if interval is None else (interval.low, interval.high)


def _by_label(source: ReportSource, parts: dict[str, HumanPerformance]) -> Table:
    rows = [(name, *row) for name, performance in parts.items() for row in _label_rows(performance.with_gold, source)]
    return Table(
        "f1-by-label",
        f"Precision, recall and F1 of {source.responses_from}, by split and label",
        ("split", *_LABEL_COLUMNS),
        tuple(rows),
        note="Way (b), split by split: the exact expectation of the published procedure over all its shuffles, where a "
        "synthetic annotator has one of the five responses of every example whose gold label the model has. Macro rows "
        f"are plain means over the labels; one without an example counts 0. {BOOTSTRAP}",
    )


def _published(source: ReportSource) -> Table:
    rows: list[tuple[Cell, ...]] = []
    for part in source.parts:
        items = [(e.gold, given) for e, given in zip(part.examples, part.responses, strict=True)]
        if all(gold is None for gold, _ in items):
            continue
        labels = source.task.model_labels, source.task.labels
        scores = shuffled_human_scores(items, *labels, PUBLISHED_SEED, mixed_gold="keep")
        rows += [(part.name, row.label, row.precision, row.recall, row.f1) for row in scores.per_label]
        rows.append((part.name, MACRO, scores.macro_precision, scores.macro_recall, scores.macro_f1))
    return Table(
        "f1-published-procedure",
        f"The published procedure on the responses of {source.responses_from}",
        ("split", "label", "precision", "recall", "F1"),
        tuple(rows),
        note=f"One shuffle with seed {PUBLISHED_SEED} in the order of the file, as DynaSent was published; gold labels "
        "that the model lacks stay in and lower precision. To be compared with figures made the same way.",
    )


def _groups(source: ReportSource, wholes: dict[str, HumanPerformance]) -> Table:
    rows: list[tuple[Cell, ...]] = []
    for name, performance in wholes.items():
        for group in (group for group in performance.groups if group.workers):
            figure = group.figure
            counts = (group.workers, group.responses, figure.responses, figure.vote_accuracy)
            rows.append((name, group.name, *counts, *_macro_f1(figure), figure.reason))
    columns = ("round", "responses a worker", "workers", "responses", "counted", "vote accuracy")
    return table_with_reasons(
        "f1-by-group",
        f"F1 of {source.responses_from}, by how much a worker answered",
        (*columns, "macro F1", "low", "high"),
        rows,
        note="Pooled over the responses of a group, against gold, which the same responses helped to make. A label "
        f"without such a response counts 0 in the macro F1. {BOOTSTRAP}",
    )


def _plot(source: ReportSource, parts: dict[str, HumanPerformance], table: str) -> Plot:
    labels = (*source.task.model_labels, MACRO)
    series = []
    for name, performance in parts.items():
        figure = performance.with_gold
        if figure.scores is None:
            continue
        values = [*(row.f1 for row in figure.scores.per_label), figure.scores.macro_f1]
        intervals = [i and (i.low, i.high) for i in _intervals(figure, source)]
        series.append(Series(name, tuple(values), tuple(intervals)))
    return Plot(
        "f1-by-label-points",
        "points",
        f"F1 of {source.responses_from}",
        table,
        labels,
        tuple(series),
        x_name="label",
        y_name="F1",
    )
