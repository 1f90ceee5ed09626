"""What a report sets beside each other: a harvest's random share and the rest, new labels and those given before."""

from collections import Counter

from dynaround.harvest import RANDOM_CELL
from dynaround.scoring import fooling_rates
from rounds.report_agreement import BOOTSTRAP
from rounds.report_labels import NO_MAJORITY, gold_counts
from rounds.report_parts import Cell, Section, Table
from rounds.report_people import performance_of
from rounds.report_source import ALL, Part, ReportSource


def control_section(source: ReportSource, seed: int) -> Section | None:
    """Return the random share of a harvest beside what was drawn as disagreeing; None where there are not both."""
    slices = _slices(source)
    if len(slices) < 2 or RANDOM_CELL not in slices:
        return None
    labels = source.task.labels
    labelled: list[tuple[Cell, ...]] = []
    scored: list[tuple[Cell, ...]] = []
    for part in slices.values():
        rate = fooling_rates(((e.gold, e.prediction.label) for e in part.examples), source.task.model_labels).published
        figure = performance_of(part, source, seed).with_gold
        f1 = figure.scores.macro_f1 if figure.scores is not None else None
        interval = figure.intervals.macro if figure.intervals is not None else None
        ends = (None, None) if interval is None else (interval.low, interval.high)
        labelled.append((part.name, len(part.examples), *(count for _, count in gold_counts(part, labels))))
        scored.append(
            (part.name, rate.numerator, rate.denominator, rate.rate, figure.items, figure.vote_accuracy, f1, *ends)
        )
    tables = (
        Table(
            "control",
            "Gold labels of the random share and of the disagreeing cells",
            ("drawn as", "examples", *labels, NO_MAJORITY),
            tuple(labelled),
        ),
        Table(
            "control-scores",
            "The target model and those who answered, on the random share and the disagreeing cells",
            (
                *("drawn as", "model errors", "of", "fooling rate"),
                *("examples for F1", "vote accuracy", "macro F1", "low", "high"),
            ),
            tuple(scored),
            note=f"Macro F1 of {source.responses_from}, on examples whose gold label the model has; the fooling rate "
            f"is the published one. {BOOTSTRAP}",
        ),
    )
    paragraph = (
        "The random share is the control: it shows how labels, the target model and those who answered do on sentences "
        "that were not chosen for disagreement. It is drawn after the disagreeing share, from what that left."
    )
    return Section("control", "Control slice", (paragraph,), tables)


def _slices(source: ReportSource) -> dict[str, Part]:
    """Return the harvested examples by what drew them, the random share first."""
    cells = source.cells or {}
    examples = [example for part in source.parts for example in part.examples if example.text_id in cells]
    names = sorted({cells[example.text_id] for example in examples}, key=lambda name: (name != RANDOM_CELL, name))
    return {
        name: Part(0, ALL, name, tuple(example for example in examples if cells[example.text_id] == name))
        for name in names
    }


def earlier_labels_section(source: ReportSource) -> Section | None:
    """Return gold labels beside those that a corpus gave the same sentences before; None where none is known."""
    parts = [part for part in source.parts if any(_earlier(part, source))]
    if not parts:
        return None
    labels = source.task.labels
    before = [one for one in labels if any(one in _earlier(part, source) for part in parts)]
    crossed: list[tuple[Cell, ...]] = []
    kept: list[tuple[Cell, ...]] = []
    for part in parts:
        known = _earlier(part, source)
        counts = Counter((e.gold, label) for e, label in zip(part.examples, known, strict=True))
        for gold in (*labels, None):
            crossed.append((part.name, gold or NO_MAJORITY, *(counts[gold, label] for label in before)))
        totals = Counter(known)
        kept += [(part.name, one, n, counts[one, one], counts[one, one] / n) for one in before if (n := totals[one])]
        all_kept, total = sum(counts[one, one] for one in before), sum(totals[one] for one in before)
        kept.append((part.name, "any", total, all_kept, all_kept / total))
    tables = (
        Table(
            "gold-by-earlier-label",
            "Gold label by the label before",
            ("file", "gold", *(f"before: {one}" for one in before)),
            tuple(crossed),
        ),
        Table(
            "earlier-label-kept",
            "Sentences that keep the label they had",
            ("file", "label before", "sentences", "kept", "share"),
            tuple(kept),
        ),
    )
    return Section("earlier-labels", "Labels given before", tables=tables)


def _earlier(part: Part, source: ReportSource) -> list[str | None]:
    return [source.task.earlier_label(example.extra) if example.extra else None for example in part.examples]
