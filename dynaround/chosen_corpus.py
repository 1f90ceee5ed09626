"""Reads a corpus as a recipe names it: labelled sentences, phrases of trees, reviews by stars, datasets of a hub."""

from collections.abc import Callable, Iterator
from pathlib import Path

from dynaround.corpus.hub import read_dataset
from dynaround.corpus.labelled import LabelledSentence, labelled_source, read_labelled
from dynaround.corpus.rejects import Rejected
from dynaround.corpus.reviews import REVIEW_KINDS, read_reviews
from dynaround.corpus.sources import check_file, parse_spec
from dynaround.recipe import HUB, CorpusChoice
from dynaround.task import Task


def file_of(choice: CorpusChoice) -> Path | None:
    """Return the one file that a corpus stands in, None for a dataset; raises what its reader raises for a bad one."""
    if choice.kind == HUB:
        return None
    if not choice.stars:
        return labelled_source(choice.source).path
    path = parse_spec(choice.source, REVIEW_KINDS).path
    check_file(path)
    return path


def read_chosen(choice: CorpusChoice, task: Task, on_reject: Callable[[Rejected], None]) -> Iterator[LabelledSentence]:
    """Stream the labelled sentences of a corpus; every row that cannot be used goes to `on_reject`.

    Raises what the reader of its kind raises.
    """

    def label_of(word: str) -> str:
        return task.label_of(choice.words.get(word, word))

    if choice.stars:
        return _by_stars(choice, task, on_reject)
    if choice.kind == HUB:
        return read_dataset(
            choice.source.partition(":")[2],
            config=choice.config,
            revision=choice.revision,
            fields=choice.fields,
            label_of=label_of,
            on_reject=on_reject,
        )
    return read_labelled(choice.source, label_of=label_of, on_reject=on_reject, unit=choice.unit)


def _by_stars(choice: CorpusChoice, task: Task, on_reject: Callable[[Rejected], None]) -> Iterator[LabelledSentence]:
    """Yield whole reviews: what models were trained on before there were rounds (Potts et al. 2021, app. A)."""
    for review in read_reviews(choice.source, fields=choice.fields, on_reject=on_reject):
        label = None if review.rating is None else task.label_of_rating(review.rating)
        if label is None:
            on_reject(Rejected(review.line, f"a rating of {review.rating} stands for no label"))
        else:
            yield LabelledSentence(review.text, label, (), review.review_id, review.review_id)
