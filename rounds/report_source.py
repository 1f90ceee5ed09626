"""What a report is about, whatever it comes from: labelled examples, split by split, and who labelled them.

From the database come besides: what drew each example, and the stored readings and checks.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from dynaround.errors import BadInput
from dynaround.evaluation import PEOPLE
from dynaround.labels import RESPONSES
from dynaround.release_check import CheckResult, check_rounds
from dynaround.splits import HELD_OUT
from dynaround.task import ReleasedExample, Task
from rounds.raw_responses import RawResponses
from rounds.readings import SetReading

ALL = "all splits"
"""The split of a part that holds every example of its round."""
SO_FAR = "so far"
"""The split of the examples of an open round, which has none yet."""


@dataclass(frozen=True)
class Part:
    """The examples of one split of a round, or of all of them; `name` is what tables call it."""

    round: int
    split: str
    name: str
    examples: tuple[ReleasedExample, ...]

    @property
    def responses(self) -> list[tuple[str, ...]]:
        """The labels that were given, one tuple an example."""
        return [tuple(response.label for response in example.responses) for example in self.examples]

    @property
    def held_out(self) -> bool:
        """Whether models are judged on it: it was filtered, and balanced against the target model."""
        return self.split in HELD_OUT

    @property
    def predicted(self) -> bool:
        """Whether each example carries the prediction of a target model."""
        return all(example.prediction.label for example in self.examples)


@dataclass(frozen=True)
class ReportSource:
    """All that a report is made from, as plain values.

    `marks` are short, since they stand beside every table; `notes` say the same in sentences. `cells` names by text id
    what drew a harvested example; None where only a database would know. `readings` are by round, then split, then
    model, the earliest model first. `raw` is all that was answered, also what does not count; None in files.
    """

    title: str
    task: Task
    responses_from: str
    parts: tuple[Part, ...]
    about: tuple[tuple[str, str], ...]
    marks: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    plan: Mapping[str, str] = field(default_factory=dict)
    checks: tuple[CheckResult, ...] = ()
    cells: Mapping[str, str] | None = None
    readings: tuple[SetReading, ...] = ()
    solved: tuple[Mapping[str, Any], ...] = ()
    raw: RawResponses | None = None

    @property
    def of_people(self) -> bool:
        """Whether people answered, so that figures of those who answered are human ones."""
        return self.responses_from == PEOPLE

    @property
    def whole_rounds(self) -> tuple[Part, ...]:
        """One part a round with all its examples; a file that is of no round stands for itself."""
        numbers = dict.fromkeys(part.round for part in self.parts)
        wholes: list[Part] = []
        for number in numbers:
            mine = [part for part in self.parts if part.round == number]
            if not number or len(mine) == 1:
                wholes += mine
                continue
            name = ALL if len(numbers) == 1 else f"round {number} {ALL}"
            wholes.append(Part(number, ALL, name, tuple(example for part in mine for example in part.examples)))
        return tuple(wholes)

    @property
    def rows(self) -> tuple[Part, ...]:
        """Every split, then every round that has several as a whole: the rows of most tables."""
        wholes = (whole for whole in self.whole_rounds if not any(whole is part for part in self.parts))
        return (*self.parts, *wholes)


def parts_of(files: Iterable[tuple[str, str, Sequence[ReleasedExample]]], task: Task) -> tuple[Part, ...]:
    """Sort examples into parts, one a round and split, as they come; `files` are split, name of the file, and lines.

    Raises BadInput for two files of one part, an example that stands in two, and one whose responses are not five or
    do not give its gold label.
    """
    found: dict[tuple[int, str], tuple[str, list[ReleasedExample]]] = {}
    seen: dict[str, str] = {}
    for split, file, examples in files:
        for example in examples:
            _require_sound(example, task, file)
            holder, mine = found.setdefault((example.round, split), (file, []))
            if holder != file:
                raise BadInput(f"{holder} and {file} both hold the {split} split of round {example.round}; name one")
            if example.text_id in seen:
                raise BadInput(f"{example.text_id} stands in {seen[example.text_id]} and again in {file}; keep one")
            seen[example.text_id] = file
            mine.append(example)
    several = len({number for number, _ in found}) > 1
    return tuple(
        Part(number, split, f"round {number} {split}" if several and number else split, tuple(examples))
        for (number, split), (_, examples) in found.items()
    )


def _require_sound(example: ReleasedExample, task: Task, file: str) -> None:
    labels = [response.label for response in example.responses]
    if len(labels) != RESPONSES:
        reason = f"has {len(labels)} responses where {RESPONSES} are due"
    elif task.gold(labels).label != example.gold:
        reason = f"has the gold label {example.gold}, which is not what its responses give"
    else:
        return
    raise BadInput(f"{file}: {example.text_id} {reason}; see: dynaround check {file}")


def checks_of(parts: Sequence[Part], task: Task) -> tuple[CheckResult, ...]:
    """Return what holds of the examples of splits that were released."""
    return tuple(check_rounds([(part.split, part.examples) for part in parts], task.labels, task.model_labels))


def crowd_marks(responses_from: str) -> tuple[str, ...]:
    """Return the mark of a report on a crowd; none where people answered."""
    return () if responses_from == PEOPLE else (f"responses from {responses_from}",)


def crowd_notes(responses_from: str) -> tuple[str, ...]:
    """Return what such a mark means, in a sentence."""
    if responses_from == PEOPLE:
        return ()
    return (f"The responses are from {responses_from}, so no figure here is one of people who answered this round.",)
