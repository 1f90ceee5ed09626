"""One small round, kept at every stage as a copy of its workspace, and what it holds, ready to be compared."""

import csv
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from sqlmodel import col, select

from dynaround.database import reading, writing
from dynaround.settings import Workspace, create_workspace
from dynaround.tables import Event, Example, Page, Placement, Response, Retention, Worker
from rounds.harvesting import harvest_round
from rounds.lifecycle import close_round, find_round
from rounds.opening import open_new_round
from rounds.releasing import release_round
from tests.small_round import MOMENT, SAID, THINGS, add_tiny_model, now, write_reviews
from workers.simulation import simulate_round

STAGES = ("opened", "harvested", "answered", "closed", "released")
SEED = 7


class Facts(NamedTuple):
    """What a workspace holds, without moments: each fact once for every time that it is stored."""

    examples: Sequence[object]
    responses: Sequence[object]
    pages: int
    retained: int
    placed: Sequence[object]
    events: Sequence[str]
    release: Mapping[str, bytes]


class Stages(NamedTuple):
    """Workspaces of one round by stage, all with the reviews and their truth inside."""

    folder: Path

    def copy(self, stage: str, to: Path) -> Path:
        """Copy the workspace of a stage and return the copy's folder."""
        shutil.copytree(self.folder / stage, to)
        return to

    def facts(self, stage: str) -> Facts:
        """Return what the workspace of a stage holds, which no interruption may change."""
        return facts_of(self.folder / stage)


def play_stages(folder: Path, encoder: Path, *, reviews: int, size: int) -> Stages:
    """Play a round in this process, keeping a copy of the workspace before each step."""
    workspace = create_workspace(folder / "opened")
    truth = write_reviews(workspace.root / "corpus", reviews).truth
    add_tiny_model(workspace, encoder)
    spec = f"jsonl:{workspace.root / 'corpus' / 'reviews-0.jsonl'}"
    options = {"size": size, "seed": SEED}
    open_new_round(workspace, workspace.engine(), target="model-0", reviews=spec, options=options, who="a", now=now)
    workspace.close()
    for before, stage in zip(STAGES, STAGES[1:], strict=False):
        shutil.copytree(folder / before, folder / stage)
        workspace = Workspace(folder / stage)
        _step(workspace, stage, truth)
        workspace.close()
    return Stages(folder)


def _step(workspace: Workspace, stage: str, truth: Path) -> None:
    engine = workspace.engine()
    if stage == "harvested":
        harvest_round(workspace, engine, 1, "a", now, lambda count: None)
    elif stage == "answered":
        simulate_round(workspace, engine, 1, truth, SEED, now, lambda: None)
    elif stage == "closed":
        with writing(engine) as session:
            close_round(session, find_round(session, 1), "a", MOMENT)
    else:
        release_round(workspace, engine, 1, workspace.releases / "round-1", "a", MOMENT)


def facts_of(root: Path) -> Facts:
    """Read the facts of a workspace."""
    workspace = Workspace(root)
    try:
        with reading(workspace.engine()) as session:
            examples = session.exec(select(Example).order_by(col(Example.number))).all()
            number_of = {e.id: e.number for e in examples}
            names = {w.id: w.platform_id for w in session.exec(select(Worker))}
            said = session.exec(select(Response)).all()
            return Facts(
                [e.model_dump(exclude={"id", "created_at", "at"}) for e in examples],
                sorted((number_of[r.example_id], names[r.worker_id], r.label) for r in said),
                len(session.exec(select(Page)).all()),
                len(session.exec(select(Retention)).all()),
                sorted((number_of[p.example_id], p.split) for p in session.exec(select(Placement))),
                [e.what for e in session.exec(select(Event).order_by(col(Event.id)))],
                {f.name: f.read_bytes() for f in sorted((workspace.releases / "round-1").glob("*"))},
            )
    finally:
        workspace.close()


def write_training_rows(path: Path) -> Path:
    """Write a labelled corpus that makes a tiny model err in every direction."""
    labels = ["positive", "negative", "neutral"]
    with path.open("w", encoding="utf-8", newline="") as handle:
        writer = csv.writer(handle)
        writer.writerow(["text", "label"])
        for place, thing in enumerate(THINGS):
            writer.writerows((f"The {thing} was {said}", labels[place % 3]) for label in labels for said in SAID[label])
    return path


def leftovers(folder: Path) -> list[str]:
    """Return the names of hidden or partial entries anywhere below a folder."""
    return sorted(str(p.relative_to(folder)) for p in folder.rglob("*") if p.name.startswith(".") or "part" in p.suffix)
