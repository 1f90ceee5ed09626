"""The seam: all that is special to one kind of task stands behind `Task`; the upper packages know no more than this."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

from pydantic import BaseModel

from dynaround.labels import Gold


class Prediction(NamedTuple):
    """What a model says of one sentence: label, uncalibrated probabilities by name, and whether it saw only a part."""

    label: str
    probs: Mapping[str, float]
    truncated: bool = False


class Span(NamedTuple):
    """Where a sentence stands in its review: code points, end exclusive."""

    start: int
    end: int


class ReleasedResponse(NamedTuple):
    """One retained response under a public worker id; `form` is what the task's form holds beyond the label."""

    worker: str
    label: str
    form: Mapping[str, Any]


class PromptData(NamedTuple):
    """The natural sentence that an author started from."""

    sentence: str
    review_id: str | None
    rating: int | None
    span: Span | None


@dataclass(frozen=True)
class ReleasedExample:
    """One example as a release tells of it: a harvested one has a review, an authored one perhaps a prompt."""

    text_id: str
    round: int
    sentence: str
    prediction: Prediction
    responses: tuple[ReleasedResponse, ...]
    gold: str | None
    hit_ids: tuple[str, ...]
    review_id: str | None = None
    rating: int | None = None
    span: Span | None = None
    author: str | None = None
    prompt: PromptData | None = None
    extra: Mapping[str, Any] = field(default_factory=dict)

    @property
    def authored(self) -> bool:
        """Whether a person wrote it to fool the model."""
        return self.author is not None


class WorkedExample(NamedTuple):
    """A text with the label that people should agree on, and why."""

    text: str
    label: str
    why: str


class Question(NamedTuple):
    """One comprehension question with its choices; `right` is one of them, `why` is told after a wrong answer."""

    key: str
    text: str
    choices: tuple[str, ...]
    right: str
    why: str


@dataclass(frozen=True)
class Guide:
    """What people are told about a kind of task, as plain text; pages render it and escape it.

    `meanings` has one line per label, and `names` says what the validation page calls it. `flag_reasons` are why a
    sentence cannot be judged: a key for tables, and the words on the page. `version` changes when the words do, so that
    people are asked again.
    """

    version: str
    meanings: Mapping[str, str]
    author_rules: tuple[str, ...]
    author_examples: tuple[WorkedExample, ...]
    author_quiz: tuple[Question, ...]
    names: Mapping[str, str]
    validator_rules: tuple[str, ...]
    validator_examples: tuple[WorkedExample, ...]
    validator_quiz: tuple[Question, ...]
    flag_reasons: Mapping[str, str]


class Task(Protocol):
    """One kind of task.

    `model_labels` are a part of `labels`; both stand in the order of release files and tables.
    """

    @property
    def name(self) -> str:
        """The word for this kind in plans, tables and manifests."""

    @property
    def labels(self) -> tuple[str, ...]:
        """What a response may be."""

    @property
    def model_labels(self) -> tuple[str, ...]:
        """What the target model predicts."""

    @property
    def form(self) -> type[BaseModel]:
        """The plain model of what a response holds beyond its label."""

    @property
    def needs_rating(self) -> bool:
        """Whether a review without a rating is of no use."""

    @property
    def disagreement_cells(self) -> tuple[str, ...]:
        """All names that `disagreement` gives."""

    @property
    def guide(self) -> Guide:
        """What people are told: meanings of the labels, rules, worked examples and comprehension questions."""

    def label_of(self, word: str) -> str:
        """Return the label that a word of a form or an imported file stands for; raise BadInput for any other word."""

    def admits(self, rating: int | None) -> bool:
        """Whether a sentence of a review with this rating may be harvested at all."""

    def disagreement(self, rating: int | None, prediction: Prediction) -> str | None:
        """Name the way in which model and world disagree on a sentence ('1 star, predicted positive'), or None."""

    def gold(self, labels: Sequence[str]) -> Gold:
        """Aggregate the retained responses of one example."""

    def training_labels(self, label: str) -> tuple[str, ...]:
        """Return the model labels that one response of `label` trains for, one row each."""

    def label_of_rating(self, rating: int) -> str | None:
        """Return the model label that a whole review with this rating trains for, or None where it says nothing."""

    def earlier_label(self, extra: Mapping[str, Any]) -> str | None:
        """Return the label that a sentence had in the corpus it comes from, told by the `extra` of its line, or None.

        Asked only of a line that has such further fields. Raises BadInput for a word that stands for no label.
        """

    def scripted_form(self, label: str) -> dict[str, Any]:
        """Return what a scripted worker who answers `label` fills in beside it."""

    def release_line(self, example: ReleasedExample) -> dict[str, Any]:
        """Return one line of a release as plain data, keys in the published order."""

    def read_line(self, line: Mapping[str, Any]) -> ReleasedExample:
        """Read such a line back; raise BadInput naming the key that is missing, foreign or malformed."""
