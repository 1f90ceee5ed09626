"""Ternary sentiment as in DynaSent (Potts et al. 2021): four labels for people, three for the model."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, ConfigDict

from dynaround import release_file
from dynaround.corpus.trees import SST_LABELS
from dynaround.errors import BadInput
from dynaround.labels import Gold, gold_label, label_distribution
from dynaround.task import Guide, Prediction, ReleasedExample
from dynaround.tasks.sentiment_guide import GUIDE


class NoFurtherFields(BaseModel):
    """A sentiment response is its label alone."""

    model_config = ConfigDict(extra="forbid")


@dataclass(frozen=True)
class SentimentTask:
    """Positive, negative, neutral ("no sentiment" on the page), and mixed, which the model does not have."""

    name: str = "sentiment"
    labels: tuple[str, ...] = ("positive", "negative", "neutral", "mixed")
    model_labels: tuple[str, ...] = ("positive", "negative", "neutral")
    form: type[BaseModel] = NoFurtherFields
    needs_rating: bool = True
    disagreement_cells: tuple[str, ...] = ("1 star, predicted positive", "5 stars, predicted negative")
    guide: Guide = GUIDE

    def label_of(self, word: str) -> str:
        """Return the label for a word; the published validation form sends "nosentiment" where the data say neutral."""
        label = "neutral" if word == "nosentiment" else word
        if label not in self.labels:
            raise BadInput(f"answer {word!r} is none of {', '.join(self.labels)} (or 'nosentiment' for neutral)")
        return label

    def admits(self, rating: int | None) -> bool:
        """Take only 1 and 5 stars, as the published Round 1 does."""
        return rating in (1, 5)

    def disagreement(self, rating: int | None, prediction: Prediction) -> str | None:
        """1 star predicted positive, or 5 stars predicted negative; neutral contradicts neither."""
        low, high = self.disagreement_cells
        if rating == 1 and prediction.label == "positive":
            return low
        if rating == 5 and prediction.label == "negative":
            return high
        return None

    def gold(self, labels: Sequence[str]) -> Gold:
        """At least three of five; a unique plurality of two is no gold label."""
        return gold_label(label_distribution(labels, self.labels))

    def training_labels(self, label: str) -> tuple[str, ...]:
        """A mixed response counts as one positive and one negative row (`Potts et al. 2021`, the counts of Model 1)."""
        return ("positive", "negative") if label == "mixed" else (label,)

    def label_of_rating(self, rating: int) -> str | None:
        """1 and 2 stars are negative, 3 neutral, 4 and 5 positive (three bins: Potts et al. 2021, app. A)."""
        if rating == 3:
            return "neutral"
        return "negative" if rating < 3 else "positive"

    def earlier_label(self, extra: Mapping[str, Any]) -> str | None:
        """The five-way label of a sentence of the Stanford Sentiment Treebank, as the three-way one."""
        word = extra.get("sst_label")
        if word is None:
            return None
        if word not in ("0", "1", "2", "3", "4"):
            raise BadInput(f"the SST label is {word!r}, which is none of 0 to 4")
        return SST_LABELS[int(word)]

    def scripted_form(self, label: str) -> dict[str, Any]:
        """A sentiment response is its label alone."""
        return {}

    def release_line(self, example: ReleasedExample) -> dict[str, Any]:
        """Write the DynaSent line: the shape of Round 1 for a harvested example, of Round 2 for an authored one."""
        return release_file.to_line(example, self.labels, self.model_labels)

    def read_line(self, line: Mapping[str, Any]) -> ReleasedExample:
        """Read a DynaSent line of either shape."""
        return release_file.from_line(line, self.labels, self.model_labels)


SENTIMENT = SentimentTask()
