"""Stored readings of models, and which of them are on exactly the released examples of a round."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from sqlmodel import Session, col, select

from dynaround.evaluation import PEOPLE, data_hash_of
from dynaround.splits import HELD_OUT
from dynaround.tables import RELEASED, EvaluatedItem, Evaluation, Placement, Round
from dynaround.task import Task
from dynaround.text import natural_order
from rounds.labelling import LabelledExample, labelled_examples
from rounds.releasing import responses_from
from rounds.shown_names import set_name
from rounds.solved_items import sentence_of, source_of


class StoredReading(NamedTuple):
    """One reading of a model as it was stored; `on` names the set without its place on the launcher's disk."""

    model: str
    on: str
    scores: Mapping[str, Any]
    at: datetime


class SetReading(NamedTuple):
    """The newest stored reading of a model on exactly one split of a released round, in the order of its file.

    `name` is the model's, told apart by its hash where several go by it; `place` is that of the model among all, the
    earliest first; `target`: whether the round was played against it. `responses_from` says who labelled the round.
    `sources` are what the items are resampled by.
    """

    round: int
    split: str
    name: str
    place: int
    target: bool
    scores: Mapping[str, Any]
    gold: tuple[str, ...]
    predictions: tuple[str, ...]
    probs: tuple[Mapping[str, float], ...]
    sources: tuple[str | None, ...]
    responses_from: str

    @property
    def on(self) -> str:
        """The set that was read, as tables call it: who labelled it is said wherever that was not people."""
        return f"round {self.round} {self.split}" + ("" if self.responses_from == PEOPLE else " (not people)")


def stored_readings(session: Session, limit: int | None) -> list[StoredReading]:
    """Return the readings of models, the newest first."""
    rows = session.exec(select(Evaluation).order_by(col(Evaluation.at).desc(), col(Evaluation.id).desc()).limit(limit))
    return [_stored(row) for row in rows]


def readings_of_release(session: Session, round_: Round, task: Task) -> list[StoredReading]:
    """Return the readings on this round's release: on exactly the examples and gold labels of one of its splits."""
    hashes = [_data_hash(examples) for examples in _judged_splits(session, round_, task).values()]
    rows = session.exec(
        select(Evaluation).where(col(Evaluation.data_hash).in_(hashes)).order_by(col(Evaluation.id).desc())
    )
    return [_stored(row) for row in rows]


def _judged_splits(session: Session, round_: Round, task: Task) -> dict[str, list[LabelledExample]]:
    """Return the released examples of a round that a model can be judged on, by split, in the order of its files."""
    assert round_.id is not None
    placed = {p.example_id: p.split for p in session.exec(select(Placement))}
    by_split: dict[str, list[LabelledExample]] = {}
    for one in labelled_examples(session, round_.id, round_.number, task):
        if one.example.id in placed and one.released.gold in task.model_labels:
            by_split.setdefault(placed[one.example.id], []).append(one)
    return by_split


def _data_hash(examples: Iterable[LabelledExample]) -> str:
    return data_hash_of([sentence_of(one.released) for one in examples])


def readings_of_all_rounds(session: Session, task: Task) -> tuple[SetReading, ...]:
    """Return the newest reading of every model on dev and test of every released round of this kind of task.

    They come by round, split and model; a model that was a round's target comes before those that never were, in the
    order of the rounds, and others by name.
    """
    rounds = list(session.exec(select(Round).where(Round.task == task.name).order_by(col(Round.number))))
    sets: dict[str, _Set] = {}
    for round_ in rounds:
        if round_.state == RELEASED:
            splits = _judged_splits(session, round_, task)
            for split in (split for split in HELD_OUT if split in splits):
                sets[_data_hash(splits[split])] = _Set(round_, split, splits[split])
    newest: dict[tuple[str, str, str], Evaluation] = {}
    for row in session.exec(select(Evaluation).where(col(Evaluation.data_hash).in_(sets)).order_by(col(Evaluation.id))):
        newest[row.model, row.model_hash, row.data_hash] = row
    targets = {round_.target_model_hash: round_.number for round_ in reversed(rounds)}
    models = sorted(
        {(row.model, row.model_hash) for row in newest.values()},
        key=lambda model: (targets.get(model[1], len(rounds) + 1), natural_order(model[0]), model[1]),
    )
    times = Counter(name for name, _ in models)
    shown = [f"{name} ({model_hash[:8]})" if times[name] > 1 else name for name, model_hash in models]
    return tuple(
        _set_reading(session, newest[*model, key], on, shown[place], place)
        for key, on in sets.items()
        for place, model in enumerate(models)
        if (*model, key) in newest
    )


class _Set(NamedTuple):
    round: Round
    split: str
    examples: Sequence[LabelledExample]


def _set_reading(session: Session, row: Evaluation, on: _Set, name: str, place: int) -> SetReading:
    items = session.exec(
        select(EvaluatedItem.gold, EvaluatedItem.prediction, EvaluatedItem.probs)
        .where(EvaluatedItem.evaluation_id == row.id)
        .order_by(col(EvaluatedItem.place))
    ).all()
    return SetReading(
        round=on.round.number,
        split=on.split,
        name=name,
        place=place,
        target=row.model_hash == on.round.target_model_hash,
        scores=row.scores,
        gold=tuple(gold for gold, _, _ in items),
        predictions=tuple(prediction for _, prediction, _ in items),
        probs=tuple(probs for _, _, probs in items),
        sources=tuple(source_of(one.released) for one in on.examples),
        responses_from=responses_from(sorted({kind for one in on.examples for kind in one.worker_kinds})),
    )


def _stored(row: Evaluation) -> StoredReading:
    return StoredReading(row.model, set_name(row.data), row.scores, row.at)
