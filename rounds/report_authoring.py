"""What a report says of authored sentences: what the two arms gave, and how far authors moved from their prompts."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from dynaround.scoring import fooling_rates
from dynaround.task import ReleasedExample
from dynaround.text import folded
from dynaround.text_measures import edit_distance, summary
from rounds.report_labels import NO_MAJORITY
from rounds.report_parts import Cell, Plot, Section, Series, Table
from rounds.report_source import Part, ReportSource

BINS = 10
"""Bins of the histogram of edit distances, from 0 to 1."""


class Edited(NamedTuple):
    """A prompt and the sentence that an author made of it."""

    prompt: str
    sentence: str


class Arm(NamedTuple):
    """The authored examples of one part that had a prompt, or had none."""

    part: str
    name: str
    examples: Sequence[ReleasedExample]


def authoring_section(source: ReportSource) -> Section | None:
    """Return what the arms gave and how far sentences are from their prompts; None where nobody wrote any."""
    if not any(example.authored for part in source.parts for example in part.examples):
        return None
    arms = Table(
        "arms",
        "Arms",
        (
            *("split", "arm", "examples", "authors", *source.task.labels, NO_MAJORITY),
            *("model errors", "of", "fooling rate"),
        ),
        tuple(_arm_row(arm, source) for part in source.rows for arm in _arms(part)),
        note="In the Prompt arm an author starts from a natural sentence, in the other from nothing. The fooling rate "
        "is the published one: model errors over all examples with a gold label.",
    )
    prompted = {part.name: _prompted(part) for part in source.rows if _prompted(part)}
    if not prompted:
        return Section("authoring", "Authoring", tables=(arms,))
    wholes = {part.name: prompted[part.name] for part in source.whole_rounds if part.name in prompted}
    distances, histogram = distance_parts(wholes)
    return Section(
        "authoring", "Authoring", tables=(arms, prompts_table(prompted, "split"), distances), plots=(histogram,)
    )


def distance_parts(edited: Mapping[str, Sequence[Edited]]) -> tuple[Table, Plot]:
    """Return how many sentences lie how far from their prompts, name by name, as a table and its histogram."""
    binned = {name: _binned(pairs) for name, pairs in edited.items()}
    bins = [f"{place / BINS:.1f}–{(place + 1) / BINS:.1f}" for place in range(BINS)]
    table = Table(
        "edit-distances",
        "Examples by the edit distance from their prompt",
        ("edit distance", *binned),
        tuple((name, *(counts[place] for counts in binned.values())) for place, name in enumerate(bins)),
        note="Each bin holds its lower edge, the last both.",
    )
    histogram = Plot(
        "edit-distances-histogram",
        "histogram",
        "Edit distance from prompt to sentence",
        table.key,
        tuple(bins),
        tuple(Series(name, tuple(counts)) for name, counts in binned.items()),
        x_name="edit distance",
        y_name="examples",
    )
    return table, histogram


def _prompted(part: Part) -> list[Edited]:
    return [Edited(e.prompt.sentence, e.sentence) for e in part.examples if e.prompt is not None]


def _arms(part: Part) -> list[Arm]:
    authored = [example for example in part.examples if example.authored]
    arms = [
        Arm(part.name, "Prompt", [example for example in authored if example.prompt is not None]),
        Arm(part.name, "No Prompt", [example for example in authored if example.prompt is None]),
    ]
    return arms if authored else []


def _arm_row(arm: Arm, source: ReportSource) -> tuple[Cell, ...]:
    golds = Counter(example.gold for example in arm.examples)
    authors = {example.author for example in arm.examples}
    pairs = ((example.gold, example.prediction.label) for example in arm.examples)
    rate = fooling_rates(pairs, source.task.model_labels).published
    counts = (len(arm.examples), len(authors), *(golds[gold] for gold in (*source.task.labels, None)))
    return arm.part, arm.name, *counts, rate.numerator, rate.denominator, rate.rate


def prompts_table(edited: Mapping[str, Sequence[Edited]], first: str) -> Table:
    """Return how sentences stand beside their prompts, a row a name; `first` is what the names are."""
    rows = []
    for name, pairs in edited.items():
        uses = Counter(folded(pair.prompt) for pair in pairs)
        once = sum(times == 1 for times in uses.values())
        equal = sum(pair.prompt == pair.sentence for pair in pairs)
        found = summary(edit_distance(*pair) for pair in pairs)
        quarters = (found.mean, found.median, found.lower_quartile, found.upper_quartile)
        rows.append((name, len(pairs), len(uses), once, equal, *quarters))
    return Table(
        "prompts",
        "Sentences beside their prompts",
        (
            *(first, "examples", "distinct prompts", "used once", "equal to the prompt"),
            *("mean distance", "median", "lower quartile", "upper quartile"),
        ),
        tuple(rows),
        note="The distance is Levenshtein's, in characters, from prompt to sentence, over the longer length. Prompts "
        "are counted, folded, among the examples given here.",
        digits=4,
    )


def _binned(pairs: Sequence[Edited]) -> list[int]:
    places = Counter(min(int(BINS * edit_distance(*pair)), BINS - 1) for pair in pairs)
    return [places[place] for place in range(BINS)]
