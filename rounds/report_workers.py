"""What a report says of those who answered, one by one: how much each did, and how often each agreed with gold."""

from dynaround.agreement import WorkerResponse
from dynaround.worker_figures import WorkerFigures, worker_figures
from rounds.report_parts import Cell, Plot, Section, Series, Table
from rounds.report_source import Part, ReportSource
from rounds.report_undefined import table_with_reasons


def workers_section(source: ReportSource) -> Section:
    """Return loads and agreement of workers, split by split and over each round, under public ids."""
    found = {part.name: _figures(part) for part in source.rows}
    wholes = {part.name: found[part.name] for part in source.whole_rounds}
    who = source.responses_from
    loads = Table(
        "worker-loads",
        "How much each worker answered",
        ("split", "workers", "responses", "median", "mode", "most active"),
        tuple(
            (name, one.workers, one.responses, one.median_load, one.mode_load, _most_active(one))
            for name, one in found.items()
        ),
        note="Median and mode are of the number of responses a worker gave; of several modes the smallest.",
        digits=1,
    )
    agreement = table_with_reasons(
        "worker-agreement",
        "How often workers agree with the gold label",
        ("split", "workers", "comparable", "always", "at least 95 %", "their share", "median rate"),
        [(name, one.workers, *_rates(one)) for name, one in found.items()],
        note="Comparable are workers with a response on an example with a gold label, which their own response helped "
        "to make. Always: on all of these examples; at least 95 %: on 19 of 20 or more.",
    )
    rates = Table(
        "worker-rates",
        "Workers by their rate of agreement with gold",
        ("rate", *wholes),
        tuple(
            (_range(low, high), *(one.rates[place].workers for one in wholes.values()))
            for place, (low, high, _) in enumerate(next(iter(wholes.values())).rates)
        ),
        note="Each bin holds its lower edge, the last both.",
    )
    bins = tuple(str(row[0]) for row in rates.rows)
    histograms = tuple(
        Plot(
            f"worker-rates-{number}",
            "histogram",
            f"Agreement of {'workers' if source.of_people else who} with the gold label, {name}",
            rates.key,
            bins,
            (Series(name, tuple(rate.workers for rate in one.rates)),),
            x_name="rate of agreement",
            y_name="workers",
        )
        for number, (name, one) in enumerate(wholes.items(), start=1)
    )
    title = "Workers" if source.of_people else f"Workers: {who}"
    return Section("workers", title, tables=(loads, agreement, rates), plots=histograms)


def _figures(part: Part) -> WorkerFigures:
    return worker_figures([WorkerResponse(e.text_id, r.worker, r.label) for e in part.examples for r in e.responses])


def _rates(one: WorkerFigures) -> tuple[Cell, ...]:
    return one.comparable, one.perfect, one.from_95, one.share_from_95, one.median_rate, one.reason


def _most_active(one: WorkerFigures) -> str:
    return ", ".join(f"{load.worker} {load.responses:,}" for load in one.most_active)


def _range(low: float, high: float) -> str:
    return f"{low:.2f}–{high:.2f}"
