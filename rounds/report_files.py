"""A report's source from files alone: the folder of a release of ours, or published files. No database is needed."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from dynaround.errors import BadInput, NotFound
from dynaround.evaluation import PEOPLE
from dynaround.folders import MANIFEST, data_hash, file_hash, read_manifest, release_manifest, require_unchanged
from dynaround.release_check import published_split, read_own_release, read_release
from dynaround.splits import SPLITS
from dynaround.tasks import DEFAULT, get_task
from rounds.report_source import ReportSource, checks_of, crowd_marks, crowd_notes, parts_of
from rounds.shown_names import shown_plan


def source_of_release(folder: Path) -> ReportSource:
    """Read the folder of a release of ours.

    Raises NotFound where it is none or incomplete, BadInput where it has changed since it was released or does not
    say who answered.
    """
    manifest = read_manifest(folder)
    place, files, who = folder / MANIFEST, manifest.get("files"), manifest.get("responses_from")
    if manifest.get("kind") != "release":
        raise BadInput(f"{place} is not that of a released round; name the folder of a release")
    if not isinstance(files, dict) or any(f"{split}.jsonl" not in files for split in SPLITS):
        raise BadInput(f"{place} does not hold the hashes of all its files; release the round again")
    if manifest.get("hash") != data_hash(files):
        raise BadInput(f"{place} has changed since it was written: its hash is another; release the round again")
    require_unchanged(folder, files)
    if not isinstance(who, str) or not who:
        raise BadInput(f"{place} does not say who answered (responses_from); release the round again")
    task = get_task(str(manifest.get("task")))
    read, keys = read_own_release(folder, task)
    parts = parts_of(((split, str(folder / f"{split}.jsonl"), examples) for split, examples in read), task)
    target = manifest["target_model"]
    return ReportSource(
        title=f"Round {manifest['round']}",
        task=task,
        responses_from=who,
        parts=parts,
        about=(
            ("round", str(manifest["round"])),
            ("kind of task", task.name),
            ("target model", str(target["name"])),
            ("target model hash", str(target["hash"])),
            ("responses from", who),
            ("left out, with too few responses", str(manifest["left_out_with_fewer_than_five_responses"])),
            ("manifest hash", str(manifest["hash"])),
            ("released with", ", ".join(f"{name} {said}" for name, said in manifest["versions"].items())),
        ),
        marks=crowd_marks(who),
        notes=crowd_notes(who),
        plan=shown_plan(manifest["plan"]),
        checks=(keys, *checks_of(parts, task)),
    )


def published_files(paths: Sequence[Path]) -> list[Path]:
    """Return files as they are named, and those of named folders; raise NotFound for a folder without any."""
    files = []
    for path in paths:
        inside = sorted(path.glob("*.jsonl")) if path.is_dir() else [path]
        if not inside:
            raise NotFound(f"{path} holds no .jsonl file; name published files or a folder of them")
        files += inside
    return files


def source_of_files(files: Sequence[Path], task_name: str = DEFAULT) -> ReportSource:
    """Read published files: the name of a file tells its split, its lines tell their round.

    Raises NotFound for a missing file, BadInput for a line that cannot be read, an empty file, two files of one split,
    and a file of a release of ours, whose manifest says who answered.
    """
    task = get_task(task_name)
    twice = [file for file, times in Counter(file.resolve() for file in files).items() if times > 1]
    if twice:
        raise BadInput(f"{twice[0]} is named twice; name it once")
    read = []
    for file in files:
        if release_manifest(file.parent) is not None:
            raise BadInput(f"{file} is of a release of ours; report it whole: dynaround report --release {file.parent}")
        examples = read_release(file, task)
        if not examples:
            raise BadInput(f"{file} holds no line; name a file that does")
        read.append((published_split(file, examples), str(file), examples))
    # Rounds in their order and splits in theirs, however the files were named; what is of no round comes last.
    parts = tuple(sorted(parts_of(read, task), key=lambda part: (not part.round, part.round, _place(part.split))))
    rounds = sorted({part.round for part in parts if part.round})
    return ReportSource(
        title=", ".join([f"Round {number}" for number in rounds] + [p.split for p in parts if not p.round]),
        task=task,
        responses_from=PEOPLE,
        parts=parts,
        about=(
            ("kind of task", task.name),
            *((f"target model of round {number}", _model_of(number)) for number in rounds),
            ("responses from", f"{PEOPLE}, as published (no manifest tells)"),
            *((f"SHA-256 of {file.name}", file_hash(file)) for file in files),
        ),
        checks=checks_of(parts, task),
    )


def _place(split: str) -> int:
    return SPLITS.index(split) if split in SPLITS else len(SPLITS)


def _model_of(number: int) -> str:
    return f"Model {number - 1}, as published"
