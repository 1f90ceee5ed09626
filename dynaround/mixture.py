"""What Model k is trained on: corpora turned into rows of text, label shares and weight, with every count kept."""

import hashlib
import json
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from dynaround.balanced_draw import BalancedDraw
from dynaround.chosen_corpus import file_of, read_chosen
from dynaround.corpus.labelled import LabelledSentence
from dynaround.corpus.rejects import Rejected
from dynaround.errors import BadInput
from dynaround.folders import file_hash, release_manifest
from dynaround.leaks import CHANCE_SHARE, BarredTexts, Leak
from dynaround.mixture_report import CorpusReport, as_counted
from dynaround.recipe import CorpusChoice, LabelMode, MixedRule, MixtureRecipe, choices
from dynaround.splits import HELD_OUT
from dynaround.task import Task

NEVER_TRAINED_ON = (*HELD_OUT, "withheld")
"""The files of a release of ours that no model learns from: it is judged on them, or they belong to what it is."""


class TrainingRow(NamedTuple):
    """One training row: the model labels with their shares, which sum to 1, and how much the row counts beside others.

    A row of one label has it with the share 1.0. Shares become soft targets, weights go into the loss or the sampling.
    """

    text: str
    shares: tuple[tuple[str, float], ...]
    weight: float = 1.0


def plain_row(text: str, label: str) -> TrainingRow:
    """Return a row of one label and weight 1."""
    return TrainingRow(text, ((label, 1.0),))


@dataclass
class Mixture:
    """Training rows in file order with the review that each comes from or None, and one report a corpus.

    `label_shares` are the weighted parts of the labels of the model. `leaks_allowed` says that a corpus has more leaks
    than chance explains, and that training was to go on without them.
    """

    rows: list[TrainingRow] = field(default_factory=list)
    reviews: list[str | None] = field(default_factory=list)
    reports: list[CorpusReport] = field(default_factory=list)
    label_shares: Mapping[str, float] = field(default_factory=dict)
    leaks_allowed: bool = False

    @property
    def review_ids(self) -> set[str]:
        """The reviews that any row comes from."""
        return {review for review in self.reviews if review is not None}


class _How(NamedTuple):
    """What holds for every corpus of a mixture."""

    task: Task
    mode: LabelMode
    mixed: MixedRule
    draw_seed: int
    barred: BarredTexts
    on_leak: Callable[[Leak], None]


class _Given(NamedTuple):
    """The rows that one sentence gives, and the review it comes from."""

    rows: list[TrainingRow]
    review_id: str | None


def training_rows(
    sentence: LabelledSentence, task: Task, mode: LabelMode, mixed: MixedRule, report: CorpusReport
) -> list[TrainingRow]:
    """Return the rows of one labelled sentence, counting in `report` what gives none.

    Majority: one row with the gold label, none where it is missing or one that the model lacks. Distribution: one row
    a response (a corpus without responses gives its gold label once); a response that the model lacks gives one row
    for each of `Task.training_labels` ("both") or none ("drop"). Rule: Potts et al. 2021, sec. 3.4, and the row
    counts of their Model 1, which only this reading of mixed responses explains to the unit. Soft: one row, whose
    shares are the parts of the responses; one that the model lacks counts in equal parts for each of these labels.
    """
    if mode == "majority" or not sentence.responses:
        if sentence.gold is None:
            report.dropped_no_majority += 1
            return []
        if sentence.gold not in task.model_labels:
            report.dropped_mixed += 1
            return []
        return [plain_row(sentence.text, sentence.gold)]
    kept = [r for r in sentence.responses if r in task.model_labels or mixed == "both"]
    report.dropped_mixed += len(sentence.responses) - len(kept)
    trained = [task.training_labels(response) for response in kept]
    if mode == "distribution":
        return [plain_row(sentence.text, label) for labels in trained for label in labels]
    parts: dict[str, Fraction] = defaultdict(Fraction)
    for labels in trained:
        for label in labels:
            parts[label] += Fraction(1, len(labels) * len(trained))
    shares = tuple((label, float(parts[label])) for label in task.model_labels if parts[label])
    return [TrainingRow(sentence.text, shares)] if shares else []


def mix(
    corpora: Sequence[CorpusChoice | str],
    task: Task,
    *,
    mode: LabelMode = "majority",
    mixed: MixedRule = "both",
    draw_seed: int = 0,
    on_reject: Callable[[str, Rejected], None],
    recorded: Callable[[str], str] = str,
    barred: BarredTexts | None = None,
    on_leak: Callable[[Leak], None] = lambda leak: None,
    allow_leaks: bool = False,
) -> Mixture:
    """Read corpora into one mixture; reports name them as `recorded` does.

    Sentences whose folded text is `barred` are left out, counted, and given to `on_leak`. Raises BadInput where they
    are more than `CHANCE_SHARE` of a corpus (unless `allow_leaks`, which brings none of them back), for a model label
    without a single row (a head would learn to never say it), and for a file of `NEVER_TRAINED_ON` that stands beside
    the manifest of a release of ours.
    """
    chosen = choices(corpora)
    files = [_trainable(choice) for choice in chosen]
    how = _How(task, mode, mixed, draw_seed, barred or BarredTexts(), on_leak)
    mixture = Mixture()
    for choice, file in zip(chosen, files, strict=True):
        spec = choice.placed(recorded).source
        name, sha256 = (file.name, file_hash(file)) if file else (spec.partition(":")[2], "")
        report = CorpusReport(spec, name, sha256, choice.unit, choice.weight, choice.most)
        sentences = read_chosen(choice, task, partial(_reject, report, partial(on_reject, choice.source)))
        drawn = _drawn(sentences if file else _hashed(sentences, report), choice, report, how)
        _take(drawn, report, mixture, task)
    _weigh(mixture, task, [choice.source for choice in chosen])
    _judge_leaks(mixture, allow_leaks)
    return mixture


def _drawn(
    sentences: Iterator[LabelledSentence], choice: CorpusChoice, report: CorpusReport, how: _How
) -> list[_Given]:
    """Return what is trained on of one corpus, counting everything that is read."""
    draw: BalancedDraw[_Given] = BalancedDraw(choice.most, how.draw_seed)
    masses_read: dict[str, float] = defaultdict(float)
    for sentence in sentences:
        report.sentences += 1
        rows = training_rows(sentence, how.task, how.mode, how.mixed, report)
        if not rows:
            continue
        report.usable += 1
        report.rows_read += len(rows)
        masses = _add_masses(rows, masses_read)
        stands_in = how.barred.where(sentence.text)
        if stands_in is not None:
            leak = Leak(report.spec, sentence.identity, sentence.text, stands_in)
            report.add_leak(leak)
            how.on_leak(leak)
            continue
        weighted = rows if choice.weight == 1 else [row._replace(weight=choice.weight) for row in rows]
        chief = _chief(masses, how.task.model_labels)
        draw.add(chief, sentence.identity, _Given(weighted, sentence.review_id))
    report.labels_read = as_counted(masses_read, how.task.model_labels)
    return draw.drawn()


def origin_of(mixture: Mixture, recipe: MixtureRecipe) -> dict[str, Any]:
    """Return what the manifest of a model says about its mixture, as plain data."""
    return {
        "label_mode": recipe.labels,
        "mixed": recipe.mixed,
        "recipe": recipe.model_dump(exclude={"training"}),
        "corpora": [asdict(report) for report in mixture.reports],
        "label_shares": dict(mixture.label_shares),
        "leaks": {"sentences": sum(report.leaks for report in mixture.reports), "allowed": mixture.leaks_allowed},
    }


def _trainable(choice: CorpusChoice) -> Path | None:
    """Return the file of a corpus, unless a release of ours keeps it from training, whatever kind it is named with."""
    given = file_of(choice)
    for path in (given, given.resolve()) if given is not None else ():
        split = path.name.partition(".")[0].casefold()
        if split in NEVER_TRAINED_ON and release_manifest(path.parent) is not None:
            raise BadInput(
                f"{choice.source} is the {split} file of a release, on which no model is trained; "
                f"name the release for its train split: release:{path.parent}"
            )
    return given


def _reject(report: CorpusReport, on_reject: Callable[[Rejected], None], reject: Rejected) -> None:
    report.rejected += 1
    on_reject(reject)


def _hashed(sentences: Iterator[LabelledSentence], report: CorpusReport) -> Iterator[LabelledSentence]:
    """Pass on the sentences of a corpus that is no file, and put a hash of them into its report."""
    digest = hashlib.sha256()
    for sentence in sentences:
        digest.update(json.dumps([sentence.text, sentence.gold]).encode() + b"\n")
        yield sentence
    report.sha256 = digest.hexdigest()


def _add_masses(rows: Sequence[TrainingRow], total: dict[str, float]) -> Mapping[str, float]:
    """Return the sum of shares of each label in some rows, and add it to `total`."""
    masses: dict[str, float] = defaultdict(float)
    for row in rows:
        for label, share in row.shares:
            masses[label] += share
            total[label] += share
    return masses


def _chief(masses: Mapping[str, float], labels: Sequence[str]) -> str:
    """Return the label with the largest part; of equal ones the task's first, whatever the order of the responses."""
    return max(labels, key=lambda label: masses.get(label, 0.0))


def _take(drawn: Sequence[_Given], report: CorpusReport, mixture: Mixture, task: Task) -> None:
    masses: dict[str, float] = defaultdict(float)
    for given in drawn:
        _add_masses(given.rows, masses)
        mixture.rows += given.rows
        mixture.reviews += [given.review_id] * len(given.rows)
        report.rows += len(given.rows)
    report.labels = as_counted(masses, task.model_labels)
    mixture.reports.append(report)


def _weigh(mixture: Mixture, task: Task, named: Sequence[str]) -> None:
    """Fill in the weighted shares of corpora and labels; raise BadInput for a label without a row."""
    masses = {
        label: sum(report.labels[label] * report.weight for report in mixture.reports) for label in task.model_labels
    }
    missing = [label for label, mass in masses.items() if not mass]
    if missing:
        raise BadInput(
            f"{', '.join(named)} {'has' if len(named) == 1 else 'have'} no row labelled {missing[0]} "
            f"({len(mixture.rows)} rows in all); add a corpus that has some"
        )
    total = sum(masses.values())
    mixture.label_shares = {label: round(mass / total, 6) for label, mass in masses.items()}
    for report in mixture.reports:
        report.share = round(report.rows * report.weight / total, 6)


def _judge_leaks(mixture: Mixture, allowed: bool) -> None:
    for report in mixture.reports:
        if not report.beyond_chance:
            continue
        if not allowed:
            raise BadInput(
                f"{report.leaks} of {report.usable} sentences of {report.spec} are judged on elsewhere (the first in "
                f"{report.first_leaks[0]['stands_in']}), more than {CHANCE_SHARE:.1%}; take another corpus, or go on "
                "without these sentences with --allow-leaks, which marks the model"
            )
        mixture.leaks_allowed = True
