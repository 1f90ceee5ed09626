"""What a report says of models: the target's stored predictions, and the readings on dev and test of all rounds.

Nothing is predicted here; a round's own target is at chance on its dev and test by construction, and marked so.
"""

from collections import Counter
from collections.abc import Sequence
from itertools import combinations
from typing import Any

from dynaround.evaluation import PEOPLE
from dynaround.paired import mcnemar, paired_difference
from dynaround.scoring import score
from dynaround.splits import HELD_OUT
from dynaround.task import Prediction
from rounds.readings import SetReading
from rounds.report_agreement import BOOTSTRAP
from rounds.report_parts import Cell, Plot, Section, Series, Table
from rounds.report_source import Part, ReportSource

AT_CHANCE = "target: at chance by construction"


def models_section(source: ReportSource, seed: int) -> Section | None:
    """Return the figures of models; None where no model has predicted anything."""
    predicted = [part for part in source.rows if part.predicted]
    tables = [_target(predicted, source)] if predicted else []
    readings = source.readings
    if not readings:
        text = (
            "Files hold no readings of other models; a report on the round in its workspace has them."
            if source.cells is None
            else "No stored reading of a model is on exactly dev or test of a released round; see: dynaround evaluate"
        )
        return Section("models", "Models", (text,), tuple(tables)) if tables else None
    tables += [*_scores(source), _matrix(readings)]
    pairs = [
        (first, second)
        for on in dict.fromkeys(reading.on for reading in readings)
        for first, second in combinations([r for r in readings if r.on == on and not r.target], 2)
    ]
    if pairs:
        tables.append(_paired(pairs, source.task.model_labels, seed))
    if forgotten := _forgetting(readings):
        tables.append(forgotten)
    return Section("models", "Models", tables=tuple(tables), plots=(_plot(readings),))


def _target(parts: Sequence[Part], source: ReportSource) -> Table:
    labels = source.task.model_labels
    rows: list[tuple[Cell, ...]] = []
    for part in parts:
        judged = [example for example in part.examples if example.gold in labels]
        said = [example.prediction for example in judged]
        gold = [str(example.gold) for example in judged]
        scores = score(gold, [one.label for one in said], labels) if judged else None
        measured = (None, None) if scores is None else (scores.macro_f1, scores.accuracy)
        likeliest = sum(_is_likeliest(example.prediction) for example in part.examples)
        right = [one.probs[one.label] for one, label in zip(said, gold, strict=True) if one.label == label]
        wrong = [one.probs[one.label] for one, label in zip(said, gold, strict=True) if one.label != label]
        means = (_mean([*right, *wrong]), _mean(right), _mean(wrong))
        mark = AT_CHANCE if at_chance(part, labels) else None
        rows.append((part.name, len(judged), *measured, *means, likeliest, len(part.examples), mark))
    return Table(
        "target-model",
        "The target model on its own round, as its predictions are stored",
        (
            *("split", "examples", "macro F1", "accuracy", "mean probability", "where right", "where wrong"),
            *("label is the likeliest", "of", "mark"),
        ),
        tuple(rows),
        note="Scores are of examples whose gold label the model has. Dev and test of a release hold every cell of gold "
        f"label and prediction equally often, so that the score there is 1 in {len(labels)} and says nothing of the "
        "model. Examples are chosen or written against this model, and train is what dev and test left: no score here "
        "says how it does on other text. The probability is that of the predicted label.",
    )


def _is_likeliest(prediction: Prediction) -> bool:
    return prediction.probs[prediction.label] == max(prediction.probs.values())


def at_chance(part: Part, labels: Sequence[str]) -> bool:
    """Whether a part is dev or test and holds every cell of gold label and prediction equally often."""
    cells = Counter((example.gold, example.prediction.label) for example in part.examples)
    return part.held_out and len({cells[gold, said] for gold in labels for said in labels}) == 1


def _mean(values: Sequence[float]) -> float | None:
    return sum(values) / len(values) if values else None


def _scores(source: ReportSource) -> tuple[Table, Table]:
    labels = source.task.model_labels
    macro: list[tuple[Cell, ...]] = []
    by_label: list[tuple[Cell, ...]] = []
    for on in dict.fromkeys(reading.on for reading in source.readings):
        mine = [reading for reading in source.readings if reading.on == on]
        lines = [(r.name, r.scores, AT_CHANCE if r.target else None) for r in mine]
        if answered := mine[-1].scores.get("labelled_by"):
            lines.append((mine[-1].responses_from, answered, "those who labelled it"))
        for name, scores, mark in lines:
            low, high = scores["macro_f1_interval"]
            macro.append((on, name, scores["sentences"], scores["macro_f1"], low, high, scores.get("accuracy"), mark))
            by_label.append((on, name, *(scores["per_label"][label]["f1"] for label in labels)))
    note = f"The newest stored reading of each model on exactly these examples. {BOOTSTRAP}"
    note += labelled_by(source.readings)
    columns = ("set", "model", "examples", "macro F1", "low", "high", "accuracy", "mark")
    return (
        Table("models", "Models on dev and test of all rounds", columns, tuple(macro), note),
        Table("models-by-label", "F1 of the same models by label", ("set", "model", *labels), tuple(by_label)),
    )


def labelled_by(readings: Sequence[SetReading]) -> str:
    """Say of every round that people did not label who did, as the end of a note."""
    crowds = {r.round: r.responses_from for r in readings if r.responses_from != PEOPLE}
    return "".join(f" Round {number} was labelled by {who}." for number, who in sorted(crowds.items()))


def _matrix(readings: Sequence[SetReading]) -> Table:
    sets = list(dict.fromkeys(reading.on for reading in readings))
    found = {(reading.name, reading.on): reading.scores["macro_f1"] for reading in readings}
    names = dict.fromkeys(reading.name for reading in sorted(readings, key=lambda reading: reading.place))
    targets = ", ".join(dict.fromkeys(f"{r.name} on round {r.round}" for r in readings if r.target))
    return Table(
        "models-by-round",
        "Macro F1 of all models on all rounds",
        ("model", *sets),
        tuple((name, *(found.get((name, on)) for on in sets)) for name in names),
        note=f"At chance by construction: {targets or 'none of these'}. A dash: not read.{labelled_by(readings)}",
    )


def _paired(pairs: Sequence[tuple[SetReading, SetReading]], labels: Sequence[str], seed: int) -> Table:
    rows = []
    for first, second in pairs:
        test = mcnemar(first.gold, first.predictions, second.predictions)
        said = first.predictions, second.predictions
        difference = paired_difference(first.gold, *said, labels, first.sources, seed=seed).macro_f1
        only = (test.first_only, test.second_only, test.exact_p, test.chi_squared, test.chi_squared_p)
        ends = (difference.estimate, difference.low, difference.high)
        rows.append((first.on, first.name, second.name, *ends, *only))
    columns = ("set", "first", "second", "difference in macro F1", "low", "high", "first alone right")
    return Table(
        "paired",
        "Models beside each other on the same examples",
        (*columns, "second alone right", "exact p", "chi squared", "p of it"),
        tuple(rows),
        note="McNemar's test, exact and by chi squared with continuity correction, takes every example as independent; "
        "the interval of the difference does not. A dash: no example divides them. A round's own target is left out. "
        f"{BOOTSTRAP}{labelled_by([first for first, _ in pairs])}",
        digits=4,
    )


def _forgetting(readings: Sequence[SetReading]) -> Table | None:
    """Return each model's macro F1 on each round's test beside the best of the models before it.

    The target of a round is no earlier model on that round: it is at chance there.
    """
    rows: list[tuple[Cell, ...]] = []
    for on in dict.fromkeys(r.on for r in readings if r.split == HELD_OUT[-1]):
        mine = [(r.name, r.scores["macro_f1"]) for r in readings if r.on == on and not r.target]
        for place, (name, f1) in enumerate(mine):
            if place:
                best, best_f1 = max(mine[:place], key=lambda earlier: earlier[1])
                rows.append((on, name, f1, best, best_f1, f1 - best_f1))
    if not rows:
        return None
    return Table(
        "forgetting",
        "What later models forget",
        ("set", "model", "macro F1", "best earlier model", "its macro F1", "difference"),
        tuple(rows),
        note="Earlier is the model that was a target in an earlier round, then by name. Below 0: the model does worse "
        "on that round than one before it. A round's own target is left out." + labelled_by(readings),
    )


def _plot(readings: Sequence[SetReading]) -> Plot:
    """Return a point per model and set, without a round's own target."""
    sets = tuple(dict.fromkeys(reading.on for reading in readings))
    scores: dict[str, dict[str, Any]] = {}
    for reading in sorted((reading for reading in readings if not reading.target), key=lambda reading: reading.place):
        scores.setdefault(reading.name, {})[reading.on] = reading.scores
    for reading in readings:
        if answered := reading.scores.get("labelled_by"):
            scores.setdefault(reading.responses_from, {})[reading.on] = answered
    series = (_series(name, [by_set.get(on) for on in sets]) for name, by_set in scores.items())
    return Plot("models-points", "points", "Macro F1 of models", "models", sets, tuple(series), "set", "macro F1")


def _series(name: str, scores: Sequence[Any]) -> Series:
    ends = (None if one is None else (one["macro_f1_interval"][0], one["macro_f1_interval"][1]) for one in scores)
    return Series(name, tuple(None if one is None else one["macro_f1"] for one in scores), tuple(ends))
