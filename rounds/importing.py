"""A round of its own from a published file: examples, responses and predictions as they are, splits drawn anew."""

import re
from collections import Counter
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from sqlalchemy import Engine
from sqlmodel import Session, col, select

from dynaround.corpus.sources import why_unstorable
from dynaround.database import writing
from dynaround.errors import BadInput
from dynaround.folders import file_hash, release_manifest
from dynaround.labels import RESPONSES
from dynaround.release_check import read_release
from dynaround.resplit import Sizes
from dynaround.settings import Workspace
from dynaround.tables import (
    NO_PROMPT_ARM,
    PROMPT_ARM,
    Event,
    Example,
    Page,
    Prompt,
    Response,
    Retention,
    Round,
    Worker,
)
from dynaround.task import PromptData, ReleasedExample, Span, Task
from dynaround.tasks import DEFAULT, get_task
from dynaround.text import text_key
from rounds.lifecycle import IMPORTED, import_round
from rounds.plan import RoundPlan
from rounds.releasing import release_round

PERSON = "person"
AS_PUBLISHED = "the five of the published file"
NOT_KNOWN = "not known"
CELL = "imported"

_NUMBER = re.compile(r"r[0-9]+-([0-9]{7})")


def import_published(
    workspace: Workspace,
    engine: Engine,
    file: Path,
    sizes: Sizes,
    *,
    seed: int,
    margin: float,
    who: str,
    at: datetime,
    folder: Path | None = None,
    task_name: str | None = None,
) -> dict[str, Any]:
    """Make the next round from a published file, draw train and test anew, release it; return the manifest.

    The examples keep the numbers of their text ids. The folder is releases/round-N unless one is named. A run that was
    killed goes on; a file that is a round already is only written again, and refused with another draw. Raises BadInput
    for a file that is no part of a published round, IllegalMove while a round is open.
    """
    task = get_task(task_name or DEFAULT)
    source = {"file": file.name, "sha256": _checked(file), "resplit": str(sizes), "seed": seed}
    with workspace.exclusively("import"):
        with writing(engine) as session:
            number = _known(session, source)
            if number is None:
                examples = read_release(file, task)
                _refuse_what_is_no_round(file, examples)
                plan = RoundPlan(
                    task=task.name,
                    reviews=workspace.recorded(f"dynasent:{file}"),
                    reviews_sha256=str(source["sha256"]),
                    size=len(examples),
                    margin=margin,
                    seed=seed,
                )
                target = f"model-{examples[0].round - 1} of {file.name}"
                round_ = import_round(session, task, plan, target, NOT_KNOWN, who, at, **source)
                number = round_.number
                _store(session, round_, task, examples, file.name, at)
        return release_round(workspace, engine, number, folder or workspace.releases / f"round-{number}", who, at)


def _checked(file: Path) -> str:
    if not file.is_file():
        raise BadInput(f"there is no file {file}; name one file of a published round")
    if release_manifest(file.parent) is not None:
        raise BadInput(f"{file} belongs to a release that has splits already; name a published file")
    return file_hash(file)


def _known(session: Session, source: dict[str, Any]) -> int | None:
    """Return the round that a file is already; raise BadInput where it was drawn otherwise."""
    rows = session.exec(
        select(Round.number, Event.detail)
        .join(Event, col(Event.round_id) == col(Round.id))
        .where(Event.what == IMPORTED)
        .order_by(col(Round.number))
    )
    for number, detail in rows:
        if detail["sha256"] != source["sha256"]:
            continue
        if detail != source:
            raise BadInput(
                f"{source['file']} is round {number} already, drawn as {detail['resplit']} with seed {detail['seed']}; "
                "a second draw would train on what the first one tests"
            )
        return number
    return None


def _refuse_what_is_no_round(file: Path, examples: Sequence[ReleasedExample]) -> None:
    rounds = sorted({example.round for example in examples})
    if len(rounds) != 1:
        raise BadInput(f"{file} holds examples of {len(rounds)} rounds; name a file with those of one")
    if rounds == [0]:
        raise BadInput(f"{file} has no predictions of a target model, so it is no round")
    ids = Counter(example.text_id for example in examples)
    for example in examples:
        problem = None
        if not len({r.worker for r in example.responses}) == len(example.responses) == RESPONSES:
            problem = f"has {len(example.responses)} responses, not {RESPONSES} of as many workers"
        elif not _NUMBER.fullmatch(example.text_id) or ids[example.text_id] > 1:
            problem = "has no text id of its own like r1-0000001"
        elif not example.sentence.strip() or why_unstorable(example.sentence):
            problem = "has a sentence that cannot be stored"
        if problem is not None:
            raise BadInput(f"{file}: example {example.text_id} {problem}; mend the file")


def _store(
    session: Session, round_: Round, task: Task, examples: Sequence[ReleasedExample], name: str, at: datetime
) -> None:
    people = {response.worker for example in examples for response in example.responses}
    people |= {example.author for example in examples if example.author is not None}
    # With the file's name: another file may call another person w1.
    workers = {person: Worker(platform_id=f"{name}:{person}", kind=PERSON) for person in sorted(people)}
    session.add_all(workers.values())
    prompts = {prompt: _prompt(round_, prompt) for prompt in _prompts_of(examples, name)}
    session.add_all(prompts.values())
    session.flush()
    stored = [_example(round_, task, example, workers, prompts) for example in examples]
    session.add_all(stored)
    session.flush()
    _store_responses(session, round_, task, list(zip(stored, examples, strict=True)), workers, at)


def _prompts_of(examples: Sequence[ReleasedExample], name: str) -> list[PromptData]:
    """Return the prompts, each once; raise BadInput for two in one place of a review."""
    prompts = list(dict.fromkeys(example.prompt for example in examples if example.prompt is not None))
    in_place: dict[tuple[str, Span], PromptData] = {}
    for prompt in prompts:
        if prompt.review_id is None or prompt.span is None:
            continue
        other = in_place.setdefault((prompt.review_id, prompt.span), prompt)
        if other != prompt:
            raise BadInput(
                f"{name}: the prompts {other.sentence!r} and {prompt.sentence!r} stand in one place of review "
                f"{prompt.review_id}; mend the file"
            )
    return prompts


def _prompt(round_: Round, prompt: PromptData) -> Prompt:
    return Prompt(
        round_id=_id(round_),
        text=prompt.sentence,
        review_id=prompt.review_id,
        rating=prompt.rating,
        span_start=prompt.span.start if prompt.span else None,
        span_end=prompt.span.end if prompt.span else None,
    )


def _example(
    round_: Round,
    task: Task,
    example: ReleasedExample,
    workers: dict[str, Worker],
    prompts: dict[Any, Prompt],
) -> Example:
    found = _NUMBER.fullmatch(example.text_id)
    assert found is not None
    return Example(
        round_id=_id(round_),
        task=task.name,
        number=int(found.group(1)),
        text=example.sentence,
        text_key=text_key(example.sentence),
        imported=True,
        review_id=example.review_id,
        rating=example.rating,
        span_start=example.span.start if example.span else None,
        span_end=example.span.end if example.span else None,
        cell=CELL,
        prediction=example.prediction.label,
        probs=dict(example.prediction.probs),
        truncated=example.prediction.truncated,
        model_hash=round_.target_model_hash,
        precision=NOT_KNOWN,
        back_end=NOT_KNOWN,
        author_id=None if example.author is None else workers[example.author].id,
        arm=None if example.author is None else PROMPT_ARM if example.prompt else NO_PROMPT_ARM,
        prompt_id=None if example.prompt is None else prompts[example.prompt].id,
    )


def _store_responses(
    session: Session,
    round_: Round,
    task: Task,
    examples: Sequence[tuple[Example, ReleasedExample]],
    workers: dict[str, Worker],
    at: datetime,
) -> None:
    """Store the responses, each worker's on one page: which pages there were, a published file does not say."""
    answered = sorted({response.worker for _, example in examples for response in example.responses})
    pages = {name: Page(round_id=_id(round_), worker_id=_id(workers[name]), given_in=at) for name in answered}
    session.add_all(pages.values())
    session.flush()
    stored = [
        Response(
            example_id=_id(example),
            worker_id=_id(workers[response.worker]),
            page_id=_id(pages[response.worker]),
            task=task.name,
            label=response.label,
            form=dict(response.form) or None,
            at=at,
        )
        for example, released in examples
        for response in released.responses
    ]
    session.add_all(stored)
    session.flush()
    session.add_all(Retention(response_id=_id(one), rule=AS_PUBLISHED, frozen_at=at) for one in stored)


def _id(stored: Round | Example | Worker | Page | Response) -> int:
    assert stored.id is not None
    return stored.id
