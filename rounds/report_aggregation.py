"""What a report sets beside the majority: labels by models of who answered, which are never gold."""

from collections import Counter
from collections.abc import Sequence

from dynaround.aggregation import METHODS, aggregated, is_installed
from dynaround.agreement import WorkerResponse
from rounds.report_parts import Cell, Section, Table
from rounds.report_source import ReportSource


def aggregation_section(source: ReportSource) -> Section | None:
    """Return how far Dawid-Skene and MACE agree with gold, and what they say where there is no majority.

    None for files: they lack the responses that do not count. Without crowd-kit the section says what it needs.
    """
    if source.raw is None:
        return None
    title = "Beside the majority"
    if not is_installed():
        missing = f"{' and '.join(METHODS)} need crowd-kit; run: pip install 'dynaround[crowd]'"
        return Section("aggregation", title, (missing,))
    examples = {example.text_id: example for part in source.whole_rounds for example in part.examples}
    counting = [WorkerResponse(e.text_id, r.worker, r.label) for e in examples.values() for r in e.responses]
    everything = [
        WorkerResponse(text_id, one.worker, one.label) for text_id in examples for one in source.raw.by_example[text_id]
    ]
    golds = {text_id: example.gold for text_id, example in examples.items()}
    taken = {"that count": counting}
    if len(everything) > len(counting):
        taken["all of everybody"] = everything
    rows = [
        (method, name, *_cells(aggregated(responses, method), golds, source.task.labels))
        for method in METHODS
        for name, responses in taken.items()
    ]
    table = Table(
        "aggregation",
        "Labels by models of who answered, beside the majority",
        ("method", "responses", "with gold", "as gold", "share", "without majority", *source.task.labels),
        tuple(rows),
        note="As gold: of the examples with a gold label, those that the method labels alike. The last columns are the "
        "labels that it gives the examples without a majority; they stay without a gold label.",
    )
    paragraph = (
        "Dawid-Skene (1979) models what each worker answers for each true label, MACE (Hovy et al. 2013) how often "
        "each does not look; both as in the library crowd-kit. They are shown for comparison and decide nothing."
    )
    return Section("aggregation", title, (paragraph,), (table,))


def _cells(found: dict[str, str], golds: dict[str, str | None], labels: Sequence[str]) -> tuple[Cell, ...]:
    with_gold = [text_id for text_id, gold in golds.items() if gold is not None]
    alike = sum(found[text_id] == golds[text_id] for text_id in with_gold)
    others = Counter(found[text_id] for text_id, gold in golds.items() if gold is None)
    share = alike / len(with_gold) if with_gold else None
    return len(with_gold), alike, share, others.total(), *(others[label] for label in labels)
