"""What a report says of how far the probabilities of models can be believed, from stored predictions."""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from dynaround.calibration import BINS, Calibration, calibration
from dynaround.splits import HELD_OUT
from rounds.report_models import AT_CHANCE, at_chance, labelled_by
from rounds.report_parts import Plot, Section, Series, Table
from rounds.report_source import ReportSource


class Calibrated(NamedTuple):
    """The calibration of one model on one set; `plotted` as a curve of its own where that tells something new."""

    on: str
    model: str
    found: Calibration
    target: bool
    plotted: bool


def calibration_section(source: ReportSource) -> Section | None:
    """Return expected calibration errors and reliability curves; None where no model has predicted anything."""
    known = list(_all(source))
    if not known:
        return None
    rows = [
        (*_names(one), one.found.items, one.found.accuracy, one.found.mean_probability, one.found.error, _mark(one))
        for one in known
    ]
    errors = Table(
        "calibration",
        "Calibration",
        ("set", "model", "examples", "accuracy", "mean probability", "ECE", "mark"),
        tuple(rows),
        note=f"ECE is the expected calibration error, in {BINS} bins of equal width (Guo et al. 2017); the probability "
        "is that of the predicted label, as stored and uncalibrated. Only examples whose gold label the model has."
        + labelled_by(source.readings),
    )
    bins = Table(
        "reliability",
        "Reliability",
        ("set", "model", "from", "to", "examples", "mean probability", "accuracy"),
        tuple((*_names(one), *row) for one in known if one.plotted for row in one.found.bins if row.items),
        note="As the curves below show it. Bins without an example are left out." + labelled_by(source.readings),
    )
    plots = tuple(_curve(one, number) for number, one in enumerate(known) if one.plotted)
    return Section("calibration", "Calibration", tables=(errors, bins), plots=plots)


def _names(one: Calibrated) -> tuple[str, str]:
    """Return the set and the model, as rows begin."""
    return one.on, one.model


def _mark(one: Calibrated) -> str | None:
    """Return what must stand beside a figure that is chance by construction."""
    return AT_CHANCE if one.target else None


def _all(source: ReportSource) -> Iterator[Calibrated]:
    labels = source.task.model_labels
    wholes = {part.name for part in source.whole_rounds}
    for part in source.rows:
        judged = [example for example in part.examples if example.gold in labels]
        if part.predicted and judged:
            said = ((e.prediction.probs[e.prediction.label], e.prediction.label == e.gold) for e in judged)
            yield Calibrated(part.name, "the target", _calibration(said), at_chance(part, labels), part.name in wholes)
    for reading in source.readings:
        if not reading.target:
            each = zip(reading.gold, reading.predictions, reading.probs, strict=True)
            said = ((probs[label], label == gold) for gold, label, probs in each)
            last = reading.split == HELD_OUT[-1]
            yield Calibrated(reading.on, reading.name, _calibration(said), False, last)


def _calibration(said: Iterable[tuple[float, bool]]) -> Calibration:
    probabilities, right = zip(*said, strict=True)
    return calibration(probabilities, right)


def _curve(one: Calibrated, number: int) -> Plot:
    title = f"Reliability of {one.model} on {one.on}{', at chance by construction' if one.target else ''}"
    return Plot(
        f"reliability-{number}",
        "reliability",
        title,
        "reliability",
        (),
        (Series("accuracy", tuple(row.accuracy for row in one.found.bins if row.items)),),
        x_name="mean probability",
        y_name="accuracy",
        x=tuple(row.mean_probability for row in one.found.bins if row.mean_probability is not None),
        y_range=(0, 1),
    )
