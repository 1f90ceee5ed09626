"""What the core's commands do beside training: load a model of a workspace, judge models on sets, check files."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any

from dynaround.corpus.labelled import LabelledSentence, read_labelled
from dynaround.corpus.rejects import Rejected
from dynaround.database import writing
from dynaround.errors import BadInput, NotFound
from dynaround.evaluation import evaluation_specs, judge, read_set, store_reading, summary_of
from dynaround.folders import MANIFEST, read_manifest, require_unchanged
from dynaround.human import MixedGold
from dynaround.model_training import model_folder as model_folder
from dynaround.release_check import (
    CheckResult,
    check_rounds,
    published_split,
    read_own_release,
    read_release,
)
from dynaround.release_rules import Outcome
from dynaround.serving import load_served_model
from dynaround.settings import Workspace
from dynaround.splits import SPLITS
from dynaround.target_model import TargetModel
from dynaround.task import ReleasedExample, Task
from dynaround.tasks import DEFAULT, get_task
from dynaround.text import folded

MIXED_WORDS: Mapping[MixedGold, str] = {"drop": "left out", "keep": "kept"}
"""What became of sentences whose gold label the model lacks, in the scores of those who labelled."""


def load_model(workspace: Workspace, name: str, task_name: str | None = None) -> TargetModel:
    """Load a model of a workspace; raise NotFound with the models there are."""
    folder = model_folder(workspace, name)
    if not folder.is_dir():
        known = sorted(p.parent.name for p in workspace.models.glob(f"[!.]*/{MANIFEST}"))
        raise NotFound(f"there is no model {name!r} in {workspace.models}; there is {', '.join(known) or 'none yet'}")
    task = get_task(task_name or read_manifest(folder).get("task", DEFAULT))
    settings = workspace.settings
    return load_served_model(
        folder,
        task.model_labels,
        back_end=settings.back_end,
        precision=settings.precision,
        threads=settings.threads,
    )


def evaluate_models(
    workspace: Workspace,
    names: Sequence[str],
    specs: Sequence[str],
    *,
    without: Sequence[str],
    seed: int,
    who: str,
    now: Callable[[], datetime],
    on_reject: Callable[[str, Rejected], None],
    on_reading: Callable[[], None],
    task_name: str | None = None,
    mixed_gold: MixedGold = "drop",
    shuffle_seed: int | None = None,
) -> list[dict[str, Any]]:
    """Judge every model on every set, store each reading, and return them as plain data, set by set.

    `mixed_gold` and `shuffle_seed` are those of `evaluation.judge`. Raises BadInput for a set of `without` that has a
    rejected row.
    """
    engine = workspace.engine()
    models = [load_model(workspace, name, task_name) for name in names]
    task = get_task(task_name or models[0].manifest["task"])
    barred = {folded(sentence.text) for given in without for sentence in _all_of(given, task.label_of)}
    summaries = []
    for spec in [single for given in specs for single in evaluation_specs(given)]:
        data = read_set(spec, task, partial(on_reject, spec), barred, name=workspace.recorded(spec))
        for model in models:
            reading = judge(
                model, model.name, model.hash, data, task, seed=seed, mixed_gold=mixed_gold, shuffle_seed=shuffle_seed
            )
            with writing(engine) as session:
                store_reading(session, reading, who, now())
            summaries.append(summary_of(reading))
            on_reading()
    return summaries


def _all_of(spec: str, label_of: Callable[[str], str]) -> Iterator[LabelledSentence]:
    kind, _, path = spec.partition(":")
    singles = [spec]
    if kind == "release" and Path(path).is_dir():
        files = [Path(path) / f"{split}.jsonl" for split in SPLITS]
        # A release that withheld nothing has an empty file, which a reader of corpora refuses.
        singles = [f"{kind}:{file}" for file in files if not file.is_file() or file.stat().st_size]
    for single in singles:
        yield from read_labelled(single, label_of=label_of, on_reject=partial(_refuse, single))


def _refuse(spec: str, row: Rejected) -> None:
    raise BadInput(
        f"{spec}, line {row.line}: {row.reason}; mend it, since its sentence could not be left out of what is judged"
    )


def reading_lines(summaries: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Yield the readings as lines of text: set by set, the models, then those who labelled it."""
    for spec in dict.fromkeys(summary["on"] for summary in summaries):
        mine = [summary for summary in summaries if summary["on"] == spec]
        first = mine[0]
        yield f"{spec}: {first['sentences']} sentences ({first['left_out']} left out, {first['rejected']} rejected)"
        for summary in mine:
            yield _score_line(summary["model"], summary) + f"  accuracy {summary['accuracy']:.3f}"
        if "labelled_by" in first:
            people = first["labelled_by"]
            mixed = f"gold labels that the model lacks are {MIXED_WORDS[people['mixed_gold']]}"
            yield _score_line(people["who"], people) + f"  ({mixed})"
            if "shuffled" in people:
                shuffled = people["shuffled"]
                yield _score_line(people["who"], shuffled) + f"  ({shuffled['procedure']}; {mixed})"


def _score_line(name: str, scores: Mapping[str, Any]) -> str:
    low, high = scores.get("macro_f1_interval", (None, None))
    interval = " " * 14 if low is None else f"[{low:.3f}, {high:.3f}]"
    labels = "  ".join(f"{label} {row['f1']:.3f}" for label, row in scores["per_label"].items())
    return f"  {name:36} macro F1 {scores['macro_f1']:.3f} {interval}  {labels}"


def check_paths(paths: Sequence[Path], task_name: str | None) -> list[CheckResult]:
    """Check folders of our releases (with a manifest), folders of published files, and published files, by round.

    Raises NotFound for a missing file and a folder with neither, BadInput for a line that cannot be read, unless it
    stands in a file that has changed since it was released: then that is a check that fails.
    """
    own = [path for path in paths if (path / MANIFEST).is_file()]
    task = get_task(task_name or next((read_manifest(path).get("task") for path in own), None) or DEFAULT)
    results: list[CheckResult] = []
    files: list[tuple[str, list[ReleasedExample]]] = []
    for path in paths:
        if path in own:
            found, read = _own_release(path, task)
            results += found
            files += read
            continue
        for file in _published_files(path):
            examples = read_release(file, task)
            files.append((published_split(file, examples), examples))
    return [*results, *check_rounds(files, task.labels, task.model_labels)]


def _published_files(path: Path) -> list[Path]:
    if not path.is_dir():
        return [path]
    files = sorted(path.glob("*.jsonl"))
    if not files:
        raise NotFound(
            f"{path} has no {MANIFEST} and no .jsonl file; name the folder of a release, or files of a published one"
        )
    return files


def _own_release(folder: Path, task: Task) -> tuple[list[CheckResult], list[tuple[str, list[ReleasedExample]]]]:
    frozen = CheckResult("files as released", *_as_released(folder), "dynaround rules")
    try:
        files, keys = read_own_release(folder, task)
    except BadInput as error:
        if frozen.status != "fails":
            raise
        return [frozen, CheckResult("lines of the format", "fails", str(error), "published rules")], []
    return [frozen, keys], files


def _as_released(folder: Path) -> Outcome:
    place, files = folder / MANIFEST, read_manifest(folder).get("files")
    if not isinstance(files, dict):
        return Outcome("fails", f"{place} holds no hashes of files; release the round again")
    unlisted = [f"{split}.jsonl" for split in SPLITS if f"{split}.jsonl" not in files]
    if unlisted:
        return Outcome("fails", f"{place} holds no hash of {', '.join(unlisted)}; release the round again")
    try:
        require_unchanged(folder, files)
    except BadInput as error:
        return Outcome("fails", str(error))
    return Outcome("holds", f"{', '.join(files)} have the hashes of {place}")
