"""A model on labelled sets, beside the people (or the crowd) who labelled them; every reading is stored."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

from sqlmodel import Session

from dynaround.corpus.labelled import LabelledSentence, labelled_source, read_labelled
from dynaround.corpus.rejects import ReadSummary, Rejected
from dynaround.errors import BadInput
from dynaround.events import record
from dynaround.folders import MANIFEST, data_hash, release_manifest
from dynaround.harvest import Predictor
from dynaround.human import HumanScores, MixedGold, expected_human_scores, shuffled_human_scores
from dynaround.intervals import Interval, ScoreIntervals, human_interval, score_intervals
from dynaround.labels import RESPONSES
from dynaround.scoring import Scores, score
from dynaround.splits import HELD_OUT
from dynaround.tables import EvaluatedItem, Evaluation
from dynaround.task import Prediction, Task
from dynaround.text import folded

PEOPLE = "people"


@dataclass(frozen=True)
class EvaluationSet:
    """Labelled sentences in the order of their file.

    `items` have a gold label of the model's; `answered` have any gold label, those of `items` among them.
    `responses_from` says who labelled them, None: unknown. `left_out` were read and are none of `items`.
    """

    name: str
    items: tuple[LabelledSentence, ...]
    answered: tuple[LabelledSentence, ...]
    responses_from: str | None
    left_out: int
    rejected: int = 0


class Reading(NamedTuple):
    """One model on one set. `human` is None where the set holds no five responses an item, `shuffled` unless asked."""

    model: str
    model_hash: str
    data: EvaluationSet
    predictions: list[Prediction]
    scores: Scores
    intervals: ScoreIntervals
    human: HumanScores | None
    human_interval: Interval | None
    shuffled: HumanScores | None


def evaluation_specs(spec: str) -> list[str]:
    """Return what is judged for one --on: a release folder stands for its dev and its test, as far as filled."""
    kind, _, path = spec.partition(":")
    if kind != "release" or not Path(path).is_dir():
        return [spec]
    files = [Path(path) / f"{split}.jsonl" for split in HELD_OUT]
    # A round that was drawn anew from a published file has no dev.
    filled = [file for file in files if not file.is_file() or file.stat().st_size]
    return [f"{kind}:{file}" for file in filled or files]


def read_set(
    spec: str,
    task: Task,
    on_reject: Callable[[Rejected], None],
    without: Collection[str] = (),
    name: str | None = None,
) -> EvaluationSet:
    """Read one set, leaving out what has no gold label of the model's and what stands, folded, in `without`.

    Raises BadInput where nothing is left.
    """
    summary = ReadSummary()
    found = list(read_labelled(spec, label_of=task.label_of, on_reject=on_reject, summary=summary))
    answered = tuple(s for s in found if s.gold is not None and folded(s.text) not in without)
    items = tuple(s for s in answered if s.gold in task.model_labels)
    if not items:
        raise BadInput(
            f"{spec} holds no sentence to judge a model on ({len(found)} read, all left out or without label)"
        )
    left_out = len(found) - len(items)
    return EvaluationSet(
        name=name or spec,
        items=items,
        answered=answered,
        responses_from=_responses_from(spec, answered),
        left_out=left_out,
        rejected=summary.rejected,
    )


def _responses_from(spec: str, answered: Sequence[LabelledSentence]) -> str | None:
    source = labelled_source(spec)
    if source.kind not in ("release", "dynasent"):
        return None
    # A file of our own release is told by its manifest, also when it is given as a DynaSent file: a crowd is no people.
    manifest = release_manifest(source.path.parent)
    if manifest is not None:
        if not isinstance(manifest.get("responses_from"), str):
            place = source.path.with_name(MANIFEST)
            raise BadInput(f"{place} does not say who answered (responses_from); release the round again")
        return str(manifest["responses_from"])
    return PEOPLE if source.kind == "dynasent" and all(len(s.responses) == RESPONSES for s in answered) else None


def judge(
    model: Predictor,
    name: str,
    model_hash: str,
    data: EvaluationSet,
    task: Task,
    *,
    seed: int,
    mixed_gold: MixedGold = "drop",
    shuffle_seed: int | None = None,
) -> Reading:
    """Predict a set and score it: intervals resample reviews, `human` is the exact expectation on the same items.

    With `mixed_gold` "keep" the human scores take in the items whose gold label the model lacks; the model is judged
    without them. With a `shuffle_seed` there is also the published procedure, one seeded shuffle in file order.
    """
    predictions = [p for p in model.predict([item.text for item in data.items]) if p is not None]
    if len(predictions) != len(data.items):
        raise BadInput(f"{data.name} holds an empty sentence; take it out")
    gold = [item.gold for item in data.items if item.gold is not None]
    said = [prediction.label for prediction in predictions]
    clusters = [item.review_id for item in data.items]
    human = interval = shuffled = None
    if data.responses_from is not None:
        answered = [(item.gold, item.responses) for item in data.answered]
        labels = task.model_labels, task.labels
        human = expected_human_scores(answered, *labels, mixed_gold)
        reviews = [item.review_id for item in data.answered]
        interval = human_interval(answered, *labels, reviews, seed=seed, mixed_gold=mixed_gold)
        if shuffle_seed is not None:
            shuffled = shuffled_human_scores(answered, *labels, shuffle_seed, mixed_gold)
    return Reading(
        model=name,
        model_hash=model_hash,
        data=data,
        predictions=predictions,
        scores=score(gold, said, task.model_labels),
        intervals=score_intervals(gold, said, task.model_labels, clusters, seed=seed),
        human=human,
        human_interval=interval,
        shuffled=shuffled,
    )


def summary_of(reading: Reading) -> dict[str, Any]:
    """Return a reading as plain data, for JSON, the database and pages."""
    summary: dict[str, Any] = {
        "model": reading.model,
        "on": reading.data.name,
        "sentences": len(reading.data.items),
        "left_out": reading.data.left_out,
        "rejected": reading.data.rejected,
        "macro_f1": reading.scores.macro_f1,
        "macro_f1_interval": _ends(reading.intervals.macro_f1),
        "accuracy": reading.scores.accuracy,
        "per_label": {row.label: row._asdict() for row in reading.scores.per_label},
        "confusion": {"labels": reading.scores.confusion.labels, "gold_by_predicted": reading.scores.confusion.counts},
    }
    if reading.human is not None and reading.human_interval is not None:
        summary["labelled_by"] = {
            "who": reading.data.responses_from,
            **_of_people(reading.human),
            "macro_f1_interval": _ends(reading.human_interval),
        }
        if reading.shuffled is not None:
            summary["labelled_by"]["shuffled"] = _of_people(reading.shuffled)
    return summary


def _of_people(scores: HumanScores) -> dict[str, Any]:
    return {
        "procedure": scores.procedure,
        "mixed_gold": scores.mixed_gold,
        "sentences": scores.items_used,
        "macro_f1": scores.macro_f1,
        "per_label": {row.label: row._asdict() for row in scores.per_label},
    }


def _ends(interval: Interval) -> list[float]:
    return [interval.low, interval.high]


def data_hash_of(items: Sequence[LabelledSentence]) -> str:
    """Return the hash that names a set of items: their identities, texts and gold labels, in order."""
    return data_hash([[item.identity, item.text, item.gold] for item in items])


def store_reading(session: Session, reading: Reading, who: str, at: datetime) -> None:
    """Append a reading with all its predictions, and the event that it happened."""
    data_key = data_hash_of(reading.data.items)
    row = Evaluation(
        model=reading.model,
        model_hash=reading.model_hash,
        data=reading.data.name,
        data_hash=data_key,
        scores=summary_of(reading),
        at=at,
    )
    session.add(row)
    session.flush()
    assert row.id is not None
    for place, (item, prediction) in enumerate(zip(reading.data.items, reading.predictions, strict=True)):
        session.add(
            EvaluatedItem(
                evaluation_id=row.id,
                place=place,
                item=item.identity,
                gold=str(item.gold),
                prediction=prediction.label,
                probs=dict(prediction.probs),
            )
        )
    detail = {"model": reading.model, "on": reading.data.name, "data_hash": data_key}
    record(session, None, who, "evaluated", at, **detail)
