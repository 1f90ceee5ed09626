"""A rehearsal: a scripted crowd (not people), told how to misbehave, validates a scratch round on the real pages."""

import csv
import random
import shutil
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import NamedTuple

from sqlalchemy import URL, Engine

from dynaround.database import migrate, open_engine, writing
from dynaround.demo_corpus import demo_reviews, demo_seeds
from dynaround.errors import BadInput
from dynaround.labels import RESPONSES
from dynaround.settings import CONFIG_NAME, DATABASE_NAME, Workspace
from dynaround.tables import Example
from dynaround.task import Task
from dynaround.tasks import DEFAULT, get_task
from dynaround.terminal import now
from dynaround.text import text_key
from rounds.lifecycle import draft_round, open_round
from rounds.plan import ValidationPlan, make_plan
from server.app import create_app
from server.demo_secret import random_secret
from server.rehearsal_crowd import Clock, Part, Planted, ScriptedWorker, Stage, work_until_done
from server.rehearsal_figures import Rehearsed, figures
from workers.accounts import account_of_invited
from workers.checks import import_check_items
from workers.crowds import KINDS, CrowdMix, kind_of_worker
from workers.roster import SCRIPTED, enlist
from workers.visits import open_visit

WHO = "rehearsal"
SCREENING_SENTENCES, SILENT_SENTENCES = 60, 60
AS_TOLD, WELL_BEHAVED, UNSCREENED = "as told", "without misbehaviour", "as told, without any screening"
"""The three rehearsals of each seed."""


@dataclass(frozen=True)
class Told:
    """How many examples and workers there are, and which shares of the workers misbehave.

    `spammers` answer at random or always the same, and every second one of them answers the sentences before the first
    page with care; `leavers` take a page and never come back; `double` send every page twice, also at once.
    """

    examples: int = 200
    workers: int = 40
    spammers: float = 0.2
    leavers: float = 0.1
    double: float = 0.1

    def __post_init__(self) -> None:
        sentences = sum(len(review.sentences) for review in demo_reviews())
        if not 1 <= self.examples <= sentences:
            raise BadInput(f"--examples is {self.examples}; the packaged corpus has 1 to {sentences} sentences")
        if self.workers < 2 * RESPONSES:
            raise BadInput(f"--workers is {self.workers}; take {2 * RESPONSES} or more, so that some may be removed")
        for name in ("spammers", "leavers", "double"):
            if not 0 <= getattr(self, name) <= 1:
                raise BadInput(f"--{name} is {getattr(self, name)}; give a part of 1, such as 0.1")
        if self.leavers + self.double > 1:
            raise BadInput("--leavers and --double are more than all workers; give parts that add up to 1 at most")

    def without_misbehaviour(self) -> "Told":
        """Return the same with a crowd that behaves."""
        return replace(self, spammers=0.0, leavers=0.0, double=0.0)


class Rehearsal(NamedTuple):
    """All rehearsals by what they were: `AS_TOLD`, `WELL_BEHAVED`, `UNSCREENED`, one each for every seed."""

    told: Told
    runs: Mapping[str, tuple[Rehearsed, ...]]


def rehearse(folder: Path, told: Told, seeds: int, on_run: Callable[[], None]) -> Rehearsal:
    """Rehearse three times for every seed from 0 on, each in a scratch workspace of its own below `folder`.

    They are on SQLite whatever the settings say: nothing here touches a launcher's database. Raises BadInput for a
    folder that holds something.
    """
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise BadInput(f"{folder} holds something already; name a new --folder, or none")
    first = folder / "empty"
    first.mkdir(parents=True)
    (first / CONFIG_NAME).write_text("", encoding="utf-8")
    engine = open_engine(_database(first))
    migrate(engine)
    engine.dispose()
    runs: dict[str, list[Rehearsed]] = {AS_TOLD: [], WELL_BEHAVED: [], UNSCREENED: []}
    open_door = ValidationPlan(rule="none", screening_items=0)
    ways = {
        AS_TOLD: (told, ValidationPlan()),
        WELL_BEHAVED: (told.without_misbehaviour(), ValidationPlan()),
        UNSCREENED: (told, open_door),
    }
    for seed in range(seeds):
        for place, (name, (crowd, plan)) in enumerate(ways.items(), 1):
            root = folder / f"seed-{seed}-{place}"
            shutil.copytree(first, root)
            runs[name].append(rehearse_once(root, crowd, plan, seed))
            on_run()
    shutil.rmtree(first)
    return Rehearsal(told, {name: tuple(found) for name, found in runs.items()})


def _database(root: Path) -> URL:
    return URL.create("sqlite", database=str(root / DATABASE_NAME))


def rehearse_once(root: Path, told: Told, plan: ValidationPlan, seed: int) -> Rehearsed:
    """Let the crowd validate one round in a workspace whose database is empty, and return what came of it."""
    workspace, clock, task = Workspace(root), Clock(now()), get_task(DEFAULT)
    workspace.database_url = _database(workspace.root)
    workspace.settings = workspace.settings.model_copy(update={"secret": random_secret()})
    engine = workspace.engine()
    planted = _plant(engine, root, task, told, plan, seed, clock)
    app = create_app(workspace, clock=clock)
    # What breaks is shown with its traceback, as in a test.
    app.testing = True
    mix = crowd_mix(told)
    with ThreadPoolExecutor(2) as pool:
        stage = Stage(app, "/rounds/1/validate", task, planted, mix, seed, pool)
        crowd = [ScriptedWorker(stage, part, _let_in(engine, part, clock)) for part in parts(told, mix, seed)]
        work_until_done(crowd, clock, timedelta(minutes=plan.lease_minutes), seed)
    found = figures(engine, task, planted, crowd)
    workspace.close()
    return found


def crowd_mix(told: Told) -> CrowdMix:
    """Return the crowd as hard as Round 1 with another share of spammers; the other kinds keep their proportions."""
    mix = CrowdMix()
    others = {kind: getattr(mix, kind) for kind in KINDS if kind != "spamming"}
    scale = (1 - told.spammers) / sum(others.values())
    shares = {kind: share * scale for kind, share in others.items()}
    return replace(mix, workers=told.workers, spamming=told.spammers, **shares)


def parts(told: Told, mix: CrowdMix, seed: int) -> list[Part]:
    """Say what each worker is and does; shares hold up to rounding, and the same seed gives the same."""
    draw = random.Random(seed)
    order = draw.sample(range(told.workers), told.workers)
    leavers, double = round(told.leavers * told.workers), round(told.double * told.workers)
    found, spammers = [], 0
    for number, place in enumerate(order):
        kind = kind_of_worker(number, mix, seed)
        spammers += kind == "spamming"
        found.append(
            Part(
                number=number,
                kind=kind,
                careful_first=kind == "spamming" and spammers % 2 == 1,
                leaves_after=draw.randrange(3) if place < leavers else None,
                twice=leavers <= place < leavers + double,
            )
        )
    return found


def _plant(
    engine: Engine, root: Path, task: Task, told: Told, plan: ValidationPlan, seed: int, clock: Clock
) -> dict[str, Planted]:
    """Open a round with sentences of the packaged corpus and check items of its seeds; return what all of them carry.

    No figure of a rehearsal is about a model, so one fixed prediction stands in for all.
    """
    draw = random.Random(seed)
    sentences = draw.sample([one for review in demo_reviews() for one in review.sentences], told.examples)
    uniform = {label: 1 / len(task.model_labels) for label in task.model_labels}
    with writing(engine) as session:
        frozen = make_plan(
            task=task.name, reviews="jsonl:none", reviews_sha256="0" * 64, size=0, seed=seed, validation=plan
        )
        round_ = draft_round(session, task, frozen, "stand-in", "0" * 64)
        assert round_.id is not None
        session.add_all(
            Example(
                round_id=round_.id,
                task=task.name,
                number=number,
                text=sentence.text,
                text_key=text_key(sentence.text),
                cell=WHO,
                prediction=task.model_labels[0],
                probs=uniform,
                truncated=False,
                model_hash="0" * 64,
                precision="float32",
                back_end="stand-in",
            )
            for number, sentence in enumerate(sentences, 1)
        )
        open_round(session, round_, WHO, clock())
    known = draw.sample(demo_seeds(), SCREENING_SENTENCES + SILENT_SENTENCES)
    with (root / "check-items.csv").open("w", encoding="utf-8", newline="") as file:
        table = csv.writer(file)
        table.writerow(["text", "label", "use"])
        for place, one in enumerate(known):
            table.writerow([one.text, one.label, "screening" if place < SCREENING_SENTENCES else "silent"])
    import_check_items(engine, round_.number, root / "check-items.csv", WHO, clock())
    carried = {sentence.text: Planted(sentence.label, clear=False) for sentence in sentences}
    return carried | {one.text: Planted(one.label, clear=True) for one in known}


def _let_in(engine: Engine, part: Part, clock: Clock) -> str:
    """Give a scripted worker an account and a visit, and return the visit's token."""
    with writing(engine) as session:
        account = account_of_invited(session, enlist(session, part.name, SCRIPTED), clock())
        return open_visit(session, account, clock(), timedelta(days=30))
