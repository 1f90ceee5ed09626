"""What a report says of fooling the target model, by four definitions, and of the agreement of those who answered."""

from dynaround.agreement import CountTable
from dynaround.intervals import AgreementInterval, agreement_intervals
from dynaround.labels import label_distribution
from dynaround.scoring import fooling_rates
from rounds.report_parts import Cell, Plot, Section, Series, Table
from rounds.report_source import Part, ReportSource
from rounds.report_undefined import table_with_reasons
from rounds.solved_items import source_of

BOOTSTRAP = "Intervals are 95 % percentile bootstraps that resample whole reviews or prompts."


def fooling_section(source: ReportSource) -> Section | None:
    """Return the share of model errors under the four definitions; None where no model has predicted."""
    cells: list[tuple[Cell, ...]] = []
    for part in (part for part in source.rows if part.predicted):
        rates = fooling_rates(((e.gold, e.prediction.label) for e in part.examples), source.task.model_labels)
        for name, rate in rates._asdict().items():
            cells.append((part.name, name.replace("_", " "), rate.numerator, rate.denominator, rate.rate, rate.rule))
    if not cells:
        return None
    columns = ("split", "definition", "numerator", "denominator", "rate", "rule")
    table = Table("fooling", "Fooling rate", columns, tuple(cells))
    paragraph = (
        "A model error is a prediction that differs from a gold label which the model has. Only the published "
        "definition (Potts et al. 2021) compares with the rates of DynaSent. On dev and test the rate is "
        "set by their balance, not by how well the round went."
    )
    return Section("fooling", "Fooling rate", (paragraph,), (table,))


def agreement_section(source: ReportSource, seed: int) -> Section:
    """Return Fleiss' kappa and Krippendorff's alpha of every split, with intervals, or why they are undefined."""
    rows: list[tuple[Cell, ...]] = []
    points = []
    for part in source.rows:
        kappa, alpha = _agreement(part, source, seed)
        observed, expected = kappa.coefficient.observed, kappa.coefficient.expected
        reasons = dict.fromkeys(reason for reason in (kappa.reason, alpha.reason) if reason)
        rows.append((part.name, observed, expected, *_cells(kappa), *_cells(alpha), "; ".join(reasons) or None))
        points.append((kappa, alpha))
    columns = ("split", "observed", "expected", "kappa", "kappa low", "kappa high", "alpha", "alpha low", "alpha high")
    table = table_with_reasons("agreement", "Agreement", columns, rows, note=BOOTSTRAP)
    paragraph = (
        f"Fleiss' kappa and Krippendorff's alpha (nominal) over the {len(source.task.labels)} labels "
        f"{', '.join(source.task.labels)}, of all examples, also those without a gold label. "
        "Dev and test hold only clear majorities, which alone raises the agreement there."
    )
    plot = Plot(
        "agreement-points",
        "points",
        "Agreement",
        table.key,
        tuple(part.name for part in source.rows),
        (_series("Fleiss' kappa", [kappa for kappa, _ in points]), _series("alpha", [alpha for _, alpha in points])),
        x_name="split",
        y_name="agreement",
    )
    return Section("agreement", "Agreement", (paragraph,), (table,), (plot,))


def _agreement(part: Part, source: ReportSource, seed: int) -> tuple[AgreementInterval, AgreementInterval]:
    labels = source.task.labels
    table = CountTable.from_distributions((label_distribution(given, labels) for given in part.responses), labels)
    found = agreement_intervals(table, [source_of(example) for example in part.examples], seed=seed)
    return found.fleiss_kappa, found.krippendorff_alpha


def _cells(one: AgreementInterval) -> tuple[Cell, ...]:
    low, high = (None, None) if one.interval is None else (one.interval.low, one.interval.high)
    return one.coefficient.value, low, high


def _series(name: str, found: list[AgreementInterval]) -> Series:
    return Series(
        name,
        tuple(one.coefficient.value for one in found),
        tuple(None if one.interval is None else (one.interval.low, one.interval.high) for one in found),
    )
