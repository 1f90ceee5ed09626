"""The harvest of an open round: predict its reviews with its target model, select, and store the examples once."""

from collections.abc import Callable
from datetime import datetime
from pathlib import Path

from sqlalchemy import Engine
from sqlmodel import Session, func, select

from dynaround.corpus.rejects import ReadSummary, RejectsFile
from dynaround.corpus.reviews import read_rated_sentences
from dynaround.database import reading, writing
from dynaround.errors import BadInput, IllegalMove
from dynaround.events import record
from dynaround.folders import data_hash, file_hash
from dynaround.harvest import Drawn, Spool, fill_spool
from dynaround.harvest import select as select_sentences
from dynaround.serving import load_served_model
from dynaround.settings import Workspace
from dynaround.tables import OPEN, Example, Prompt, Round
from dynaround.target_model import TargetModel
from dynaround.tasks import get_task
from dynaround.text import text_key
from dynaround.training import read_review_ids
from rounds.harvest_report import HARVESTED, HarvestReport, earlier_harvest, harvest_report
from rounds.lifecycle import find_round, require_state
from rounds.plan import RoundPlan


def left_out_reviews(session: Session, model_folder: Path) -> set[str]:
    """Return the reviews that a harvest leaves out: those the target was trained on, and those of earlier rounds."""
    used = read_review_ids(model_folder)
    for column in (Example.review_id, Prompt.review_id):
        used |= {review_id for review_id in session.exec(select(column).distinct()) if review_id is not None}
    return used


def harvest_round(
    workspace: Workspace,
    engine: Engine,
    number: int,
    who: str,
    now: Callable[[], datetime],
    on_progress: Callable[[int], None],
) -> HarvestReport:
    """Harvest an open round, going on where an interrupted run stopped; a finished harvest is reported, not repeated.

    Raises BadInput where the reviews or the target model are no longer what the plan names, IllegalMove for a round
    that harvests nothing.
    """
    spool_path = workspace.work / f"harvest-{number}.sqlite"
    with workspace.exclusively(f"harvest-{number}"):
        with reading(engine) as session:
            round_ = find_round(session, number)
            require_state(round_, OPEN)
            assert round_.id is not None
            done = earlier_harvest(session, round_.id)
            if done is not None:
                remove_spool(spool_path)
                return done
            left_out = left_out_reviews(session, workspace.models / round_.target_model)
        plan, task = RoundPlan.model_validate(round_.plan), get_task(round_.task)
        if not plan.size:
            raise IllegalMove(f"round {number} harvests nothing (it was opened without --size); people write in it")
        require_same_reviews(workspace, plan)
        model = load_target(workspace, round_)
        read = ReadSummary()
        made_from = data_hash([plan.model_dump(mode="json"), model.hash, sorted(left_out)])
        rejects = RejectsFile(workspace.work / f"harvest-{number}.rejects.jsonl")
        spool = Spool(spool_path, made_from, f"{model.back_end} in {model.precision}")
        try:
            with rejects:
                sentences = read_rated_sentences(
                    workspace.located(plan.reviews),
                    fields=plan.fields or None,
                    needs_rating=task.needs_rating,
                    on_reject=rejects,
                    summary=read,
                )
                pool = fill_spool(
                    spool, sentences, model, task, seed=plan.seed, left_out_reviews=left_out, on_progress=on_progress
                )
            selection = select_sentences(
                spool,
                size=plan.size,
                disagreement_share=plan.disagreement_share,
                per_review=plan.per_review,
                quotas=plan.quotas or None,
            )
        finally:
            spool.close()
        if not selection.drawn:
            raise BadInput(
                f"{plan.reviews} gave no sentence to harvest ({read.loaded} reviews read, {read.rejected} rejected, "
                f"{pool.reviews_left_out} left out as used before); end it with: "
                f"dynaround round close {number} --abandon, and open another round on other reviews"
            )
        report = harvest_report(plan, read, pool, selection, rejects.path if rejects.count else None)
        with writing(engine) as session:
            round_ = find_round(session, number)
            # Authors take numbers too.
            session.refresh(round_, with_for_update=True)
            store_examples(session, round_, model, selection.drawn)
            detail = {**report._asdict(), "pool": pool._asdict()}
            record(session, round_.id, who, HARVESTED, now(), **detail)
        remove_spool(spool_path)
        return report


def remove_spool(path: Path) -> None:
    """Delete a spool whose examples are stored, and the files that SQLite keeps beside it."""
    for leftover in (path, *(path.with_name(path.name + end) for end in ("-wal", "-shm"))):
        leftover.unlink(missing_ok=True)


def require_same_reviews(workspace: Workspace, plan: RoundPlan) -> None:
    """Raise BadInput where the file of reviews is not the one that the plan was frozen with."""
    path = Path(workspace.located(plan.reviews).partition(":")[2])
    if not path.is_file() or file_hash(path) != plan.reviews_sha256:
        state = "has other content than" if path.is_file() else "is no longer there as"
        raise BadInput(f"{path} {state} when the round opened (SHA-256 {plan.reviews_sha256}); put that file back")


def load_target(workspace: Workspace, round_: Round) -> TargetModel:
    """Load a round's target model; raise BadInput where its folder holds another model than the round opened with."""
    task = get_task(round_.task)
    settings = workspace.settings
    model = load_served_model(
        workspace.models / round_.target_model,
        task.model_labels,
        back_end=settings.back_end,
        precision=settings.precision,
        threads=settings.threads,
    )
    if model.hash != round_.target_model_hash:
        raise BadInput(
            f"model {round_.target_model} has hash {model.hash[:12]}, round {round_.number} opened against "
            f"{round_.target_model_hash[:12]}; put that model back"
        )
    return model


def store_examples(session: Session, round_: Round, model: TargetModel, drawn: list[Drawn]) -> None:
    """Append the drawn sentences as examples, numbered on from the last one."""
    assert round_.id is not None
    last = session.exec(select(func.max(Example.number)).where(Example.round_id == round_.id)).one() or 0
    for number, (pooled, drawn_by) in enumerate(drawn, last + 1):
        sentence, prediction = pooled.sentence, pooled.prediction
        session.add(
            Example(
                round_id=round_.id,
                task=round_.task,
                number=number,
                text=sentence.text,
                text_key=text_key(sentence.text),
                review_id=sentence.review_id,
                rating=sentence.rating,
                span_start=sentence.start,
                span_end=sentence.end,
                cell=drawn_by,
                prediction=prediction.label,
                probs=dict(prediction.probs),
                truncated=prediction.truncated,
                model_hash=model.hash,
                precision=model.precision,
                back_end=model.back_end,
            )
        )
