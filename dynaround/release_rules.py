"""What the examples of a release must hold, one by one and as counts; what must stand apart is in `release_check`."""

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal, NamedTuple

from dynaround.labels import MAJORITY, RESPONSES
from dynaround.release_file import NO_PREDICTION
from dynaround.splits import HELD_OUT
from dynaround.task import ReleasedExample
from dynaround.text import folded

Status = Literal["holds", "fails", "could not be checked", "note"]

PROBABILITY_TOLERANCE = 1e-5
"""Probabilities are stored as float32 made them: the published ones sum to 1 within 2e-7."""

_NAMED_OFFENDERS = 5
_TEXT_ID = re.compile(r"r([0-9]+)-[0-9]{7}")
_VALIDATED_TEXT_ID = re.compile(r"sst-dev-validate-[0-9]{7}")
_WORKER = re.compile(r"w[0-9]+")
_HIT = re.compile(r"[a-z][0-9]+")
_RATINGS = range(1, 6)


class Outcome(NamedTuple):
    """Whether a rule holds, and the sentence that says so."""

    status: Status
    detail: str


@dataclass(frozen=True)
class Release:
    """The examples by split (train, dev, test, withheld, or others), with what the rules share."""

    splits: Mapping[str, Sequence[ReleasedExample]]
    labels: Sequence[str]
    model_labels: Sequence[str]
    minimum_winning: int

    def of(self, *names: str) -> list[ReleasedExample]:
        """Return the examples of these splits."""
        return [example for name in names for example in self.splits.get(name, ())]

    @property
    def all(self) -> list[ReleasedExample]:
        """Return the examples of all splits."""
        return self.of(*self.splits)


def judge(total: int, things: str, rule: str, offenders: Collection[str]) -> Outcome:
    """Say in a sentence ("all 12 text ids are used once") whether the rule holds, or how many break it and which."""
    if not total:
        return Outcome("could not be checked", f"there are no {things}")
    if not offenders:
        return Outcome("holds", f"all {total} {things} {rule}")
    return Outcome("fails", f"not all {things} {rule}: {len(offenders)} of {total} break this ({first(offenders)})")


def first(offenders: Iterable[str]) -> str:
    """Name the first offenders, and how many more there are."""
    named = list(offenders)
    more = f" and {len(named) - _NAMED_OFFENDERS} more" if len(named) > _NAMED_OFFENDERS else ""
    return ", ".join(named[:_NAMED_OFFENDERS]) + more


def each(
    examples: Sequence[ReleasedExample], things: str, rule: str, offends: Callable[[ReleasedExample], bool]
) -> Outcome:
    """Judge examples one by one; the offenders are named by their text ids."""
    return judge(len(examples), things, rule, [example.text_id for example in examples if offends(example)])


def text_ids(release: Release) -> Outcome:
    """Ids are r, the round, and seven digits, or those of the validated SST file."""

    def offends(example: ReleasedExample) -> bool:
        if example.round == 0:
            return not _VALIDATED_TEXT_ID.fullmatch(example.text_id)
        match = _TEXT_ID.fullmatch(example.text_id)
        return match is None or int(match[1]) != example.round

    return each(release.all, "text ids", "name their round and have seven digits", offends)


def unique_ids(release: Release) -> Outcome:
    """No id occurs twice, withheld examples included."""
    counts = Counter(example.text_id for example in release.all)
    return judge(len(counts), "text ids", "are used once", [one for one, count in counts.items() if count > 1])


def filled(release: Release) -> Outcome:
    """No sentence is empty or white space alone."""
    return each(release.all, "sentences", "hold some text", lambda example: not folded(example.sentence))


def prompt_arm(release: Release) -> Outcome:
    """What an author wrote without a prompt stands in train only (Potts et al. 2021, sec. 4.6)."""
    authored = [example for example in release.of(*HELD_OUT) if example.authored]
    return each(authored, "authored examples of dev and test", "have a prompt", lambda example: example.prompt is None)


def five_responses(release: Release) -> Outcome:
    """Every example has five responses of five people."""

    def offends(example: ReleasedExample) -> bool:
        workers = {response.worker for response in example.responses}
        return len(example.responses) != RESPONSES or len(workers) != RESPONSES

    return each(release.all, "examples", f"have {RESPONSES} responses by {RESPONSES} workers", offends)


def worker_ids(release: Release) -> Outcome:
    """Workers and authors go by public ids: nothing of a platform shows."""
    ids = {response.worker for example in release.all for response in example.responses}
    ids |= {example.author for example in release.all if example.author is not None}
    return judge(len(ids), "worker ids", "are w and a number", sorted(one for one in ids if not _WORKER.fullmatch(one)))


def hit_ids(release: Release) -> Outcome:
    """Pages go by a letter and a number: nothing of a platform shows."""
    ids = {one for example in release.all for one in example.hit_ids}
    offenders = sorted(one for one in ids if not _HIT.fullmatch(one))
    return judge(len(ids), "hit ids", "are a letter and a number", offenders)


def own_validators(release: Release) -> Outcome:
    """No author validates their own sentence."""

    def offends(example: ReleasedExample) -> bool:
        return example.author in {response.worker for response in example.responses}

    authored = [example for example in release.all if example.authored]
    return each(authored, "authored examples", "were validated by other people than their author", offends)


def gold_rule(release: Release) -> Outcome:
    """The gold label is what at least three of five say, else none (Potts et al. 2021, sec. 3.3)."""

    def offends(example: ReleasedExample) -> bool:
        counts = Counter(response.label for response in example.responses)
        winners = [label for label, count in counts.items() if count >= MAJORITY]
        known = set(counts) <= set(release.labels)
        return not known or len(winners) > 1 or example.gold != next(iter(winners), None)

    return each(release.all, "gold labels", f"are what at least {MAJORITY} of {RESPONSES} say, or none", offends)


def held_out_gold(release: Release) -> Outcome:
    """Dev and test hold only gold labels that the model has."""

    def offends(example: ReleasedExample) -> bool:
        return example.gold not in release.model_labels

    rule = f"are {', '.join(release.model_labels)}"
    return each(release.of(*HELD_OUT), "gold labels of dev and test", rule, offends)


def held_out_winning(release: Release) -> Outcome:
    """Dev and test hold only examples with a clear majority (Potts et al. 2021, sec. 3.5)."""

    def offends(example: ReleasedExample) -> bool:
        winning = sum(1 for response in example.responses if response.label == example.gold)
        return winning < release.minimum_winning

    rule = f"are backed by at least {release.minimum_winning} responses"
    return each(release.of(*HELD_OUT), "gold labels of dev and test", rule, offends)


def _evenness(release: Release, cell_of: Callable[[ReleasedExample], str | None], cells: Sequence[str]) -> Outcome:
    """Whether each of `cells` is present and as large as the others, within and between dev and test.

    The cells are listed beforehand: comparing only those that occur would pass a release that lacks one. A split is
    left out where it is not given or none of its examples can have a cell (`cell_of` is None).
    """
    sizes: dict[str, int] = {}
    for split in (name for name in HELD_OUT if name in release.splits):
        found = [cell_of(example) for example in release.of(split)]
        if not found or any(cell is not None for cell in found):
            sizes |= {f"{split} {cell}": found.count(cell) for cell in cells}
    if not sizes:
        return Outcome("could not be checked", "no example of dev or test belongs to such a cell")
    usual = Counter(sizes.values()).most_common(1)[0][0]
    odd = [f"{name} has {size}" for name, size in sorted(sizes.items(), key=lambda item: item[1]) if size != usual]
    if odd or not usual:
        return Outcome("fails", f"{len(odd)} of {len(sizes)} cells have not the {usual} of the others ({first(odd)})")
    return Outcome("holds", f"all {len(sizes)} cells have {usual}")


def model_cells(release: Release) -> Outcome:
    """Every cell of gold and predicted label is as large as the others, so the target model is at chance."""

    def cell_of(example: ReleasedExample) -> str | None:
        predicted = example.prediction != NO_PREDICTION
        return f"gold={example.gold}, model={example.prediction.label}" if predicted else None

    pairs = [(gold, model) for gold in release.model_labels for model in release.model_labels]
    return _evenness(release, cell_of, [f"gold={gold}, model={model}" for gold, model in pairs])


def rating_cells(release: Release) -> Outcome:
    """Every cell of gold label and rating is as large as the others: wished for, not demanded."""

    def cell_of(example: ReleasedExample) -> str | None:
        return None if example.rating is None else f"gold={example.gold}, rating={example.rating}"

    ratings = sorted({example.rating for example in release.of(*HELD_OUT) if example.rating is not None})
    cells = [f"gold={gold}, rating={rating}" for gold in release.model_labels for rating in ratings]
    outcome = _evenness(release, cell_of, cells)
    # Which ratings the world offers is not ours to choose: their evenness is wished for, not demanded.
    return Outcome("note", outcome.detail) if outcome.status == "fails" else outcome


def model_at_chance(release: Release) -> Outcome:
    """The macro F1 of the target model on dev and test is exactly chance."""
    macro = {}
    for split in HELD_OUT:
        pairs = [(e.gold, e.prediction.label) for e in release.of(split) if e.prediction != NO_PREDICTION]
        if pairs:
            macro[split] = _macro_f1(pairs, release.model_labels)
    if not macro:
        return Outcome("could not be checked", "no example of dev or test has a prediction")
    chance = Fraction(1, len(release.model_labels))
    said = ", ".join(f"{float(f1):.6f} on {split}" for split, f1 in macro.items())
    status: Status = "holds" if set(macro.values()) == {chance} else "fails"
    return Outcome(status, f"macro F1 of the target model is {said}; chance is {float(chance):.6f}")


def _macro_f1(pairs: Sequence[tuple[str | None, str]], labels: Sequence[str]) -> Fraction:
    """Return the mean of 2 TP / (gold + predicted) over the labels as a fraction: exactly 1/3 can be asked for."""
    total = Fraction(0)
    for label in labels:
        positives = sum(1 for gold, _ in pairs if gold == label) + sum(1 for _, model in pairs if model == label)
        total += Fraction(2 * pairs.count((label, label)), positives) if positives else 0
    return total / len(labels)


def ratings(release: Release) -> Outcome:
    """Reviews, also those of prompts, have 1 to 5 stars."""
    rated = [(e.text_id, e.rating) for e in release.all if e.rating is not None]
    prompts = [(e.text_id, e.prompt.rating) for e in release.all if e.prompt is not None]
    rated += [(one, rating) for one, rating in prompts if rating is not None]
    return judge(len(rated), "ratings", "are 1 to 5", [one for one, rating in rated if rating not in _RATINGS])


def spans(release: Release) -> Outcome:
    """A span is as long as its text, in code points; so for prompts."""
    measured = [(e.text_id, e.span, e.sentence) for e in release.all if e.span is not None]
    prompts = [(e.text_id, e.prompt) for e in release.all if e.prompt is not None]
    measured += [(one, prompt.span, prompt.sentence) for one, prompt in prompts if prompt.span is not None]
    offenders = [one for one, span, sentence in measured if span.start < 0 or span.end - span.start != len(sentence)]
    return judge(len(measured), "spans of sentences and prompts", "are as long as their text", offenders)


def probabilities(release: Release) -> Outcome:
    """Predictions name the model's labels, sum to 1, and have the likeliest as label."""

    def offends(example: ReleasedExample) -> bool:
        label, probs, _ = example.prediction
        if set(probs) != set(release.model_labels) or label not in probs:
            return True
        within = all(0 <= value <= 1 for value in probs.values())
        sums_to_one = abs(sum(probs.values()) - 1) <= PROBABILITY_TOLERANCE
        return not within or not sums_to_one or probs[label] < max(probs.values())

    predicted = [example for example in release.all if example.prediction != NO_PREDICTION]
    rule = "give every label of the model a probability, sum to 1, and have the likeliest as label"
    return each(predicted, "predictions", rule, offends)
