"""A crowd answers a round: reads what it answers around or what was recorded, plans its pages, and gives them in."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from datetime import datetime
from pathlib import Path

from pydantic import BaseModel, ConfigDict, ValidationError
from sqlalchemy import Engine

from dynaround.corpus.sources import check_file, numbered_lines
from dynaround.database import writing
from dynaround.errors import BadInput, IllegalMove
from dynaround.evaluation import PEOPLE
from dynaround.folders import MANIFEST, file_hash, read_manifest
from dynaround.release_check import read_release
from dynaround.settings import Workspace
from dynaround.tables import Example
from dynaround.task import ReleasedResponse, Task
from dynaround.tasks import get_task
from workers.crowds import CrowdMix, CrowdReport, Place, Planned, examples_of, plan_replayed, plan_scripted, run_crowd
from workers.roster import REPLAYED, SCRIPTED, lock_open_round


class CarriedLabel(BaseModel):
    """One line of a truth file: where a sentence stands, and the label that it carries."""

    model_config = ConfigDict(extra="forbid")

    review_id: str | None
    start: int
    end: int
    label: str


def read_truth(path: Path, task: Task) -> dict[Place, str]:
    """Read the labels that sentences carry; raise BadInput with the line that cannot be read."""
    check_file(path)
    truths: dict[Place, str] = {}
    for number, line, problem in numbered_lines(path):
        if problem:
            raise BadInput(f"{path}: {problem}; save it as UTF-8")
        try:
            carried = CarriedLabel.model_validate_json(line)
            truths[carried.review_id, carried.start, carried.end] = task.label_of(carried.label)
        except ValidationError as error:
            raise BadInput(f"{path}, line {number}: {error.errors()[0]['msg']}") from error
        except BadInput as error:
            raise BadInput(f"{path}, line {number}: {error}") from error
    return truths


def simulate_round(
    workspace: Workspace,
    engine: Engine,
    number: int,
    truth: Path,
    seed: int,
    now: Callable[[], datetime],
    on_page: Callable[[], None],
    mix: CrowdMix | None = None,
) -> CrowdReport:
    """Let the scripted crowd answer every example of an open round; what is there already stays."""
    crowd = mix or CrowdMix()

    def plan(examples: Sequence[Example], task: Task) -> list[Planned]:
        return plan_scripted(examples, read_truth(truth, task), task, crowd, seed)

    check_file(truth)
    source = {"seed": seed, "mix": asdict(crowd), "truth_sha256": file_hash(truth)}
    return _run(workspace, engine, number, SCRIPTED, plan, now, on_page, source)


def replay_round(
    workspace: Workspace,
    engine: Engine,
    number: int,
    source: Path,
    now: Callable[[], datetime],
    on_page: Callable[[], None],
) -> CrowdReport:
    """Hand out again the recorded responses of a release file to the examples that stand in the same places."""

    def plan(examples: Sequence[Example], task: Task) -> list[Planned]:
        recorded: dict[Place, Sequence[ReleasedResponse]] = {
            (released.review_id, *released.span): released.responses
            for released in read_release(source, task)
            if released.span is not None
        }
        return plan_replayed(examples, recorded)

    check_file(source)
    require_people(source)
    recorded_in = {"file": source.name, "sha256": file_hash(source)}
    return _run(workspace, engine, number, REPLAYED, plan, now, on_page, recorded_in)


def require_people(source: Path) -> None:
    """Raise BadInput where the manifest beside a release file says that its responses are not from people."""
    if (source.parent / MANIFEST).is_file():
        who = read_manifest(source.parent).get("responses_from")
        if who != PEOPLE:
            raise BadInput(f"{source} was answered by {who}; only recorded people are replayed")


def _run(
    workspace: Workspace,
    engine: Engine,
    number: int,
    kind: str,
    plan: Callable[[Sequence[Example], Task], list[Planned]],
    now: Callable[[], datetime],
    on_page: Callable[[], None],
    source: Mapping[str, object],
) -> CrowdReport:
    with workspace.exclusively(f"crowd-{number}"):
        with writing(engine) as session:
            round_ = lock_open_round(session, number)
            assert round_.id is not None
            examples = examples_of(session, round_.id)
        if not examples:
            raise IllegalMove(f"round {number} has no example yet; run: dynaround round harvest {number}")
        task = get_task(round_.task)
        return run_crowd(engine, number, task, kind, plan(examples, task), now, on_page, source)
