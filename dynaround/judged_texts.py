"""What no model may be trained on: the texts of dev and test of every round, and of sets named for evaluation."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial

from sqlmodel import Session, col, select

from dynaround.chosen_corpus import read_chosen
from dynaround.corpus.rejects import Rejected
from dynaround.errors import BadInput
from dynaround.evaluation import evaluation_specs
from dynaround.leaks import BarredText
from dynaround.recipe import choices
from dynaround.splits import HELD_OUT
from dynaround.tables import Example, Placement, Round
from dynaround.task import Task


def barred_in_rounds(session: Session) -> Iterator[BarredText]:
    """Yield the items of dev and test of every round that has splits, the earliest round first."""
    rows = session.exec(
        select(Example.text, Round.number, Placement.split)
        .join(Placement, col(Placement.example_id) == col(Example.id))
        .join(Round, col(Round.id) == col(Example.round_id))
        .where(col(Placement.split).in_(HELD_OUT))
        .order_by(col(Round.number), col(Example.number))
    )
    for text, number, split in rows:
        yield BarredText(text, f"round {number}, {split}")


def barred_in_sets(specs: Sequence[str], task: Task, recorded: Callable[[str], str]) -> Iterator[BarredText]:
    """Yield the sentences of sets named for evaluation, called as `recorded` does; release:FOLDER is its dev and test.

    Raises BadInput for a set that has a rejected row: its sentence could not be kept out.
    """
    for choice in choices([single for given in specs for single in evaluation_specs(given)]):
        name = choice.placed(recorded).source
        for sentence in read_chosen(choice, task, partial(_refuse, choice.source)):
            yield BarredText(sentence.text, name)


def _refuse(spec: str, row: Rejected) -> None:
    raise BadInput(
        f"{spec}, line {row.line}: {row.reason}; mend it, since its sentence could not be kept out of training"
    )
