"""Opening a round: draw its prompts, freeze its plan, and only against a target model that loads and answers."""

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

from sqlalchemy import Engine

from dynaround.corpus.rejects import RejectsFile
from dynaround.corpus.reviews import RATED_SENTENCE_KINDS, Rejected, read_rated_sentences
from dynaround.corpus.sources import check_file, parse_spec
from dynaround.database import reading, writing
from dynaround.errors import BadInput
from dynaround.events import record
from dynaround.folders import file_hash
from dynaround.models import load_model
from dynaround.settings import Workspace
from dynaround.tables import Round
from dynaround.task import Task
from dynaround.tasks import get_task
from rounds.harvesting import left_out_reviews
from rounds.lifecycle import draft_round, open_round, require_none_open
from rounds.plan import RoundPlan, make_plan
from rounds.prompts import PROMPTS_DRAWN, PromptDraw, draw_prompts, prompts_hash, store_prompts

TRIAL = "The soup was cold."
PROMPT_REJECTS = "prompts.rejects.jsonl"


def open_new_round(
    workspace: Workspace,
    engine: Engine,
    *,
    target: str,
    reviews: str,
    options: Mapping[str, Any],
    who: str,
    now: Callable[[], datetime],
    on_progress: Callable[[int], None] = lambda reviews: None,
) -> Round:
    """Open the next round against the model `target`, on the file of `reviews` (KIND:PATH).

    `options` are further fields of `RoundPlan`; `on_progress(n)` is called with reviews read while prompts are drawn.
    Raises NotFound for a missing model or file, BadInput for a plan that does not fit or too few prompts, IllegalMove
    while another round is open.
    """
    source = parse_spec(reviews, RATED_SENTENCE_KINDS)
    check_file(source.path)
    model = load_model(workspace, target)
    model.predict([TRIAL])
    task = get_task(model.manifest["task"])
    require_a_sentence(reviews, options.get("fields"), task)
    unknown = sorted(set(options.get("quotas") or {}) - set(task.disagreement_cells))
    if unknown:
        cells = "; ".join(task.disagreement_cells)
        raise BadInput(f"--quota: there is no cell {unknown[0]!r}; the cells of this task are: {cells}")
    plan = make_plan(
        task=task.name,
        reviews=workspace.recorded(reviews),
        reviews_sha256=file_hash(source.path),
        **options,
    )
    require_collecting(plan)
    with workspace.exclusively("open-round"):
        drawn = _drawn_prompts(workspace, engine, target, plan, task, on_progress) if plan.prompts else None
        if drawn is not None:
            plan = plan.model_copy(update={"prompts_sha256": prompts_hash(drawn.sentences)})
        with writing(engine) as session:
            round_ = draft_round(session, task, plan, target, model.hash)
            if drawn is not None:
                store_prompts(session, round_, drawn.sentences)
                detail = {"prompts": len(drawn.sentences), "reviews_left_out": drawn.reviews_left_out}
                record(session, round_.id, who, PROMPTS_DRAWN, now(), read=vars(drawn.read), **detail)
            open_round(session, round_, who, now())
    return round_


def require_collecting(plan: RoundPlan) -> None:
    """Raise BadInput for a plan by which nothing would be collected, or with prompts that nobody starts from."""
    if plan.prompts and plan.authoring is None:
        raise BadInput(f"{plan.prompts} prompts are of use only where people write; give authoring, or no prompts")
    if not plan.size and plan.authoring is None:
        raise BadInput("this round would collect nothing; give --size N to harvest, or --prompts N or --authors")


def _drawn_prompts(
    workspace: Workspace,
    engine: Engine,
    target: str,
    plan: RoundPlan,
    task: Task,
    on_progress: Callable[[int], None],
) -> PromptDraw:
    assert plan.authoring is not None
    with reading(engine) as session:
        # Asked again when the round opens; here, so that nobody waits for a draw in vain.
        require_none_open(session)
        left_out = left_out_reviews(session, workspace.models / target)
    with RejectsFile(workspace.work / PROMPT_REJECTS) as rejects:
        return draw_prompts(
            workspace.located(plan.reviews),
            plan.prompts,
            seed=plan.seed,
            fields=plan.fields or None,
            needs_rating=task.needs_rating,
            max_characters=plan.authoring.max_characters,
            left_out_reviews=left_out,
            on_reject=rejects,
            on_progress=on_progress,
        )


def require_a_sentence(reviews: str, fields: Mapping[str, str] | None, task: Task) -> None:
    """Raise BadInput unless `reviews` gives a sentence; a plan frozen on a wrong file or column is of no use."""
    first: list[Rejected] = []

    def note(row: Rejected) -> None:
        if not first:
            first.append(row)

    found = read_rated_sentences(reviews, fields=fields or None, needs_rating=task.needs_rating, on_reject=note)
    if next(found, None) is None:
        reason = f"line {first[0].line}: {first[0].reason}" if first else "none of its texts has one"
        raise BadInput(f"{reviews} gives no sentence to harvest ({reason}); name other reviews or map their columns")
