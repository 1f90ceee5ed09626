"""From a closed round to its frozen, anonymous files: splits, lines, invariants, manifest last."""

import os
import platform
import shutil
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import scipy
from sqlalchemy import Engine
from sqlmodel import Session, select

from dynaround.database import reading, writing
from dynaround.errors import BadInput
from dynaround.folders import MANIFEST, completed_folder, data_hash, file_hash, file_hashes, read_manifest, write_json
from dynaround.labels import RESPONSES
from dynaround.release_check import check_release
from dynaround.release_file import write_lines
from dynaround.resplit import resplit, sizes_of
from dynaround.settings import Workspace
from dynaround.splits import HELD_OUT, SPLITS, Candidate, plan_splits
from dynaround.tables import CLOSED, PROMPT_ARM, RELEASED, Event, Placement, Round
from dynaround.task import ReleasedExample, Task
from dynaround.tasks import get_task
from dynaround.text import folded, group_text
from rounds.labelling import LabelledExample, labelled_examples, prompt_uses
from rounds.lifecycle import find_round, imported_from, mark_released, require_state, response_counts
from rounds.plan import RoundPlan


def candidates_of(labelled: Sequence[LabelledExample], uses: Mapping[str, int]) -> list[Candidate]:
    """Return what splitting needs to know of each example.

    Tied together are the sentences of one review, of one prompt, of the review that a prompt comes from, and of one
    group text. Of authored ones only those of the Prompt arm whose prompt occurs once in the whole round (`uses`, by
    folded text) are eligible for dev and test.
    """
    found = []
    for one in labelled:
        released, prompt = one.released, one.released.prompt
        once = prompt is not None and uses[folded(prompt.sentence)] == 1
        groups = [f"text:{group_text(released.sentence)}"]
        if released.review_id is not None:
            groups.append(f"review:{released.review_id}")
        if prompt is not None:
            groups.append(f"prompt:{folded(prompt.sentence)}")
            if prompt.review_id is not None:
                groups.append(f"review:{prompt.review_id}")
        found.append(
            Candidate(
                key=released.text_id,
                gold=released.gold,
                prediction=released.prediction.label,
                winning=sum(r.label == released.gold for r in released.responses),
                rating=released.rating,
                eligible=not released.authored or (one.arm == PROMPT_ARM and once),
                groups=tuple(groups),
            )
        )
    return found


def release_round(
    workspace: Workspace,
    engine: Engine,
    number: int,
    folder: Path,
    who: str,
    at: datetime,
    *,
    per_cell: int | None = None,
) -> dict[str, Any]:
    """Write the release of a closed round into `folder` and mark the round released; return the manifest.

    `per_cell` states the size of dev and test in place of the plan's. A run that was killed in between is finished by
    running it again; a released round is written again with the splits it has. Raises BadInput where dev and test
    cannot be filled, an invariant fails, or `folder` holds something else.
    """
    with workspace.exclusively(f"release-{number}"):
        with reading(engine) as session:
            round_ = find_round(session, number)
            require_state(round_, CLOSED, RELEASED)
            assert round_.id is not None
            task = get_task(round_.task)
            labelled = labelled_examples(session, round_.id, number, task)
            if not labelled:
                raise BadInput(f"round {number} was abandoned: it has no example with {RESPONSES} responses to release")
            uses = prompt_uses(session, round_.id)
            examples = len(response_counts(session, round_.id))
            placed = _stored(session, round_, labelled)
            imported = imported_from(session, round_)
        if per_cell is not None and (placed is not None or imported is not None):
            state = "released" if imported is None else "imported"
            raise BadInput(f"round {number} is {state}; its splits stand, so run this without --per-cell")
        if placed is None and imported is not None:
            placed = _drawn_anew(labelled, uses, imported, task)
        elif placed is None:
            placed = _planned(labelled, uses, round_, task, per_cell)
        by_split: dict[str, list[ReleasedExample]] = {split: [] for split in SPLITS}
        for one in labelled:
            by_split[placed.split_of[one.released.text_id]].append(one.released)
        about = _about(round_, task, labelled, by_split, placed, left_out=examples - len(labelled))
        manifest = _write(folder, by_split, task, about, every_check=imported is None)
        with writing(engine) as session:
            round_ = find_round(session, number)
            if round_.state != RELEASED:
                for one in labelled:
                    assert one.example.id is not None
                    session.add(Placement(example_id=one.example.id, split=placed.split_of[one.released.text_id]))
                mark_released(session, round_, who, at, manifest_hash=manifest["hash"], splits=placed.report)
    return manifest


class Placed(NamedTuple):
    """The split of every example by text id, and how it came about: for manifest, event and the command's line."""

    split_of: Mapping[str, str]
    report: Mapping[str, Any]


def _planned(
    labelled: Sequence[LabelledExample], uses: Mapping[str, int], round_: Round, task: Task, per_cell: int | None
) -> Placed:
    plan = RoundPlan.model_validate(round_.plan)
    splits = plan_splits(
        candidates_of(labelled, uses),
        model_labels=task.model_labels,
        per_cell=per_cell or plan.per_cell,
        seed=plan.seed,
        held_out_share=plan.held_out_share,
    )
    report = {
        "per_cell": splits.per_cell,
        "stated": (per_cell or plan.per_cell) is not None,
        "proven_best": splits.proven,
        "candidates_by_cell": {str(cell): count for cell, count in splits.cells_before.items()},
        "held_out_by_rating": {
            split: {str(rating): n for (where, rating), n in splits.ratings.items() if where == split}
            for split in HELD_OUT
        },
        "uneven_by": splits.unevenness,
    }
    return Placed(splits.split_of, report)


def _drawn_anew(
    labelled: Sequence[LabelledExample], uses: Mapping[str, int], imported: Mapping[str, Any], task: Task
) -> Placed:
    sizes, seed = sizes_of(imported["resplit"]), imported["seed"]
    split_of = resplit(candidates_of(labelled, uses), sizes, model_labels=task.model_labels, seed=seed)
    return Placed(split_of, {"resplit": imported["resplit"], "seed": seed, "from": dict(imported)})


def _stored(session: Session, round_: Round, labelled: Sequence[LabelledExample]) -> Placed | None:
    if round_.state != RELEASED:
        return None
    stored = {p.example_id: p.split for p in session.exec(select(Placement))}
    released = session.exec(select(Event).where(Event.round_id == round_.id, Event.what == RELEASED)).one()
    split_of = {one.released.text_id: stored[one.example.id] for one in labelled if one.example.id is not None}
    return Placed(split_of, released.detail["splits"])


def _about(
    round_: Round,
    task: Task,
    labelled: Sequence[LabelledExample],
    by_split: Mapping[str, Sequence[ReleasedExample]],
    placed: Placed,
    *,
    left_out: int,
) -> dict[str, Any]:
    return {
        "kind": "release",
        "round": round_.number,
        "task": task.name,
        "target_model": {"name": round_.target_model, "hash": round_.target_model_hash},
        "responses_from": responses_from(sorted({kind for one in labelled for kind in one.worker_kinds})),
        "plan": {**round_.plan, "reviews": _source_name(round_.plan["reviews"])},
        "examples": {split: len(examples) for split, examples in by_split.items()},
        "left_out_with_fewer_than_five_responses": left_out,
        "gold": {split: _gold_counts(examples, task) for split, examples in by_split.items()},
        "splits": placed.report,
    }


def release_lines(manifest: Mapping[str, Any]) -> Iterator[str]:
    """Yield what a release holds as lines of text."""
    sizes = ", ".join(f"{count} {split}" for split, count in manifest["examples"].items())
    splits = manifest["splits"]
    if "resplit" in splits:
        drawn_from = splits["from"]["file"]
        yield f"{sizes}; from {manifest['responses_from']}; drawn anew from {drawn_from} with seed {splits['seed']}"
        yield "test alone is judged on: dynaround evaluate, solved and report; train may be trained on"
        return
    yield f"{sizes}; from {manifest['responses_from']}"
    yield f"{splits['per_cell']} in every cell of dev and test; ratings uneven by {splits['uneven_by']}"
    if not splits["proven_best"]:
        yield "note: the search for splits met its limit; a larger size, or fewer withheld, may be possible"


def responses_from(kinds: Sequence[str]) -> str:
    """Say who answered: people, or a crowd that is none, which every table and page repeats."""
    names = {
        "person": "people",
        "scripted": "a scripted crowd (not people)",
        "replayed": "a replayed crowd (recorded people)",
    }
    return " and ".join(names[kind] for kind in kinds)


def _source_name(spec: str) -> str:
    # The place of a file on the launcher's disk is nobody's business; its hash is in the plan.
    kind, _, path = spec.partition(":")
    return f"{kind}:{Path(path).name}"


def _gold_counts(examples: Sequence[ReleasedExample], task: Task) -> dict[str, int]:
    counts = {label: sum(e.gold == label for e in examples) for label in task.labels}
    return {**counts, "no majority": sum(e.gold is None for e in examples)}


def _write(
    folder: Path,
    by_split: Mapping[str, Sequence[ReleasedExample]],
    task: Task,
    about: Mapping[str, Any],
    *,
    every_check: bool,
) -> dict[str, Any]:
    # What was drawn anew has no dev, and no cells of one size: the checks are kept with it, and say so.
    results = check_release(
        {split: list(examples) for split, examples in by_split.items()}, task.labels, task.model_labels
    )
    failed = [result for result in results if result.status == "fails"]
    if failed and every_check:
        raise BadInput(f"round {about['round']} cannot be released: {failed[0].name}: {failed[0].detail}")
    # Beside the wanted folder first, so that a finished one is compared with what would be written.
    scratch = folder.with_name(f".{folder.name}.new")
    # A run that was killed right before its last step leaves a finished one.
    shutil.rmtree(scratch, ignore_errors=True)
    with completed_folder(scratch) as part:
        for split, examples in by_split.items():
            write_lines(part / f"{split}.jsonl", (task.release_line(example) for example in examples))
        files = dict(file_hashes(part))
        manifest = {
            **about,
            "files": files,
            "hash": data_hash(files),
            "checks": [result._asdict() for result in results],
            "versions": {
                "dynaround": version("dynaround"),
                "python": platform.python_version(),
                "scipy": scipy.__version__,
            },
        }
        write_json(part / MANIFEST, manifest)
    return _put_in_place(scratch, folder, manifest)


def _put_in_place(scratch: Path, folder: Path, manifest: dict[str, Any]) -> dict[str, Any]:
    if (folder / MANIFEST).is_file():
        found = read_manifest(folder).get("hash")
        shutil.rmtree(scratch)
        changed = [name for name, wanted in manifest["files"].items() if not _is(folder / name, wanted)]
        if found == manifest["hash"] and changed:
            raise BadInput(f"{folder / changed[0]} is not what was released; delete {folder} and release again")
        if found != manifest["hash"]:
            raise BadInput(
                f"{folder} already holds another release (hash {str(found)[:12]}); name another folder with --out"
            )
        return read_manifest(folder)
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        shutil.rmtree(scratch)
        raise BadInput(f"{folder} already exists and is not empty; name another folder with --out")
    if folder.exists():
        folder.rmdir()
    os.rename(scratch, folder)
    return manifest


def _is(path: Path, wanted: str) -> bool:
    return path.is_file() and file_hash(path) == wanted
