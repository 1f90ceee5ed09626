"""Asking whether a model does as well as people on a released round: the question, the answer, the record of both."""

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import Engine
from sqlmodel import Session, col, func, select

from dynaround.database import reading, writing
from dynaround.errors import BadInput
from dynaround.evaluation import EvaluationSet, data_hash_of, judge, store_reading
from dynaround.events import record
from dynaround.folders import data_hash
from dynaround.models import load_model, model_folder
from dynaround.release_file import lines_hash
from dynaround.settings import Workspace
from dynaround.solved import JudgedItem, SolvedAnswer, decide, plain
from dynaround.tables import EvaluatedItem, Evaluation, SolvedCheck
from dynaround.target_model import TargetModel
from dynaround.task import ReleasedExample
from dynaround.trained_texts import trained_on
from rounds.lifecycle import find_round
from rounds.solved_checks import stored_check
from rounds.solved_items import Asked, Judged, all_of, asked_about, sentence_of, source_of, without_seen

RESAMPLES = 10_000


def ask_solved(
    workspace: Workspace,
    engine: Engine,
    number: int,
    model_name: str,
    *,
    seed: int,
    who: str,
    now: Callable[[], datetime],
    resamples: int = RESAMPLES,
) -> dict[str, Any]:
    """Judge a model on dev and test of a released round beside the people who labelled it; store and return the check.

    The model's stored readings on the same items are taken where there are some, otherwise it predicts them now, which
    is a reading like any other. Raises IllegalMove for a round that is not released, NotFound for a missing model, and
    BadInput for the round's own target and for a model that was trained on the items or chosen with the test split.
    """
    with reading(engine) as session:
        asked = asked_about(session, number)
    model = load_model(workspace, model_name, asked.task.name)
    if model.hash == asked.target_hash:
        raise BadInput(
            f"{model_name} is the target of round {number}: dev and test are built so that it is right on one in "
            f"{len(asked.task.model_labels)}, and its score means nothing there; ask about a later model"
        )
    known = trained_on(model_folder(workspace, model_name), [e.sentence for e in all_of(asked)])
    judged = without_seen(asked, model.manifest, known)
    items: list[JudgedItem] = []
    for split, examples in judged.by_split.items():
        predictions = _predictions(engine, model, asked, split, examples, who, now, seed)
        items += [_item(e, split, said) for e, said in zip(examples, predictions, strict=True)]
    labels = asked.task.model_labels, asked.task.labels
    answer = decide(items, *labels, margin=asked.margin, seed=seed, resamples=resamples)
    return _store(engine, model, asked, judged, answer, seed, who, now())


def _predictions(
    engine: Engine,
    model: TargetModel,
    asked: Asked,
    split: str,
    examples: Sequence[ReleasedExample],
    who: str,
    now: Callable[[], datetime],
    seed: int,
) -> list[str]:
    items = tuple(sentence_of(example) for example in asked.by_split[split])
    wanted = [example.text_id for example in examples]
    with reading(engine) as session:
        stored = _stored(session, model.hash, data_hash_of(items))
    if stored is None:
        data = EvaluationSet(f"round:{asked.round_number}/{split}", items, items, asked.responses_from, 0)
        fresh = judge(model, model.name, model.hash, data, asked.task, seed=seed)
        with writing(engine) as session:
            store_reading(session, fresh, who, now())
        stored = {item.identity: said.label for item, said in zip(items, fresh.predictions, strict=True)}
    return [stored[text_id] for text_id in wanted]


def _stored(session: Session, model_hash: str, data_key: str) -> dict[str, str] | None:
    found = session.exec(
        select(Evaluation.id)
        .where(Evaluation.model_hash == model_hash, Evaluation.data_hash == data_key)
        .order_by(col(Evaluation.id).desc())
    ).first()
    if found is None:
        return None
    rows = session.exec(
        select(EvaluatedItem.item, EvaluatedItem.prediction).where(EvaluatedItem.evaluation_id == found)
    )
    return dict(iter(rows))


def _item(example: ReleasedExample, split: str, prediction: str) -> JudgedItem:
    assert example.gold is not None
    return JudgedItem(
        identity=example.text_id,
        split=split,
        gold=example.gold,
        prediction=prediction,
        responses=tuple((response.worker, response.label) for response in example.responses),
        cluster=source_of(example),
    )


def _store(
    engine: Engine,
    model: TargetModel,
    asked: Asked,
    judged: Judged,
    answer: SolvedAnswer,
    seed: int,
    who: str,
    at: datetime,
) -> dict[str, Any]:
    figures = {
        "round": asked.round_number,
        "model": model.name,
        "responses_from": asked.responses_from,
        "notes": list(judged.notes),
        **plain(answer),
    }
    # Of a whole split it is the hash of the file in the release.
    lines = {split: map(asked.task.release_line, examples) for split, examples in judged.by_split.items()}
    key = data_hash([[split, lines_hash(mine)] for split, mine in lines.items()])
    with writing(engine) as session:
        round_ = find_round(session, asked.round_number)
        # Two who ask at one moment get two numbers.
        session.refresh(round_, with_for_update=True)
        assert round_.id is not None
        last = session.exec(select(func.max(SolvedCheck.number)).where(SolvedCheck.round_id == round_.id)).one() or 0
        check = SolvedCheck(
            round_id=round_.id,
            number=last + 1,
            model=model.name,
            model_hash=model.hash,
            data_hash=key,
            margin=asked.margin,
            seed=seed,
            answer=answer.answer,
            figures=figures,
            at=at,
        )
        session.add(check)
        record(session, round_.id, who, "asked whether solved", at, number=check.number, model=model.name)
        return stored_check(check)
