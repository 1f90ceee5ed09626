"""What every release must hold, checked on its lines alone, so that the published files can be checked as well.

Each check names the first offenders; a release of ours is finished only when none of them fails.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import combinations
from pathlib import Path
from typing import Any, Literal, NamedTuple

from dynaround import release_rules as rules
from dynaround.errors import NotFound
from dynaround.release_file import from_validated_line, read_examples
from dynaround.release_rules import Outcome, Release, Status, first, judge
from dynaround.splits import HELD_OUT, MINIMUM_WINNING
from dynaround.splits import SPLITS as OWN_FILES
from dynaround.task import ReleasedExample, Task
from dynaround.text import folded, group_text

RequiredBy = Literal["published rules", "dynaround rules"]
Check = Callable[[Release], Outcome]

SPLITS = ("train", "dev", "test")


class CheckResult(NamedTuple):
    """One invariant: whether it holds, a sentence with counts and first offenders, and whose rule it is.

    A "note" is advice (an evenness that was not reached) and no failure. Our rules include the published ones, so
    "dynaround rules" marks those that the published files need not keep.
    """

    name: str
    status: Status
    detail: str
    required_by: RequiredBy


def check_release(
    splits: Mapping[str, Sequence[ReleasedExample]],
    labels: Sequence[str],
    model_labels: Sequence[str],
    *,
    minimum_winning: int = MINIMUM_WINNING,
) -> list[CheckResult]:
    """Check the examples of train, dev, test and withheld (any may be missing); return one result for every check.

    Examples under any other name, as those of the validated SST file, pass the checks that every example must pass.

    Sources: Potts et al. 2021 and their dataset tests (published rules), and what this project adds (dynaround rules).
    """
    release = Release(splits, labels, model_labels, minimum_winning)
    return [CheckResult(name, *check(release), required_by) for name, required_by, check in CHECKS]


def check_rounds(
    files: Sequence[tuple[str, Sequence[ReleasedExample]]], labels: Sequence[str], model_labels: Sequence[str]
) -> list[CheckResult]:
    """Check the examples of several files, each with its split, round by round: cells and sizes are those of a round.

    Of several rounds each result is named with its round, and text ids must be unique over all of them. The validated
    SST file is a round of its own.
    """
    rounds = sorted({example.round for _, examples in files for example in examples})
    results: list[CheckResult] = []
    for number in rounds or [0]:
        splits: dict[str, list[ReleasedExample]] = {}
        for split, examples in files:
            mine = [example for example in examples if example.round == number]
            # An empty file tells no round, and that it is empty must be seen.
            if mine or not examples:
                splits.setdefault(split, []).extend(mine)
        name = f"round {number}" if number else "validated SST"
        found = check_release(splits, labels, model_labels)
        results += [r._replace(name=f"{name}: {r.name}") for r in found] if len(rounds) > 1 else found
    if len(rounds) > 1:
        everything = Release({"all": [e for _, examples in files for e in examples]}, labels, model_labels, 0)
        results.append(CheckResult("all: text ids unique", *rules.unique_ids(everything), "published rules"))
    return results


def published_split(path: Path, examples: Iterable[ReleasedExample]) -> str:
    """Return the split that the name of a published file says as a whole word, else the name without its ending.

    So for the validated SST file: it was made from a dev set and is none of a round.
    """
    words = [] if any(example.round == 0 for example in examples) else re.split(r"[\W_]+", path.stem.casefold())
    return next((word for word in words if word in OWN_FILES), path.stem)


def read_own_release(folder: Path, task: Task) -> tuple[list[tuple[str, list[ReleasedExample]]], CheckResult]:
    """Read the files of a release of ours, and judge whether the keys of its lines stand in the published order.

    A file that is missing is left out. Raises NotFound where all are, and BadInput naming file and line.
    """
    total = 0
    offenders: list[str] = []

    def read_line(line: Mapping[str, Any]) -> ReleasedExample:
        nonlocal total
        example = task.read_line(line)
        total += 1
        if _keys(line) != _keys(task.release_line(example)):
            offenders.append(example.text_id)
        return example

    places = {split: folder / f"{split}.jsonl" for split in OWN_FILES}
    files = [(split, read_examples(place, read_line)) for split, place in places.items() if place.is_file()]
    if not files:
        raise NotFound(f"{folder} is no release: there is no such file as {places['train'].name}; name another folder")
    outcome = judge(total, f"lines of {folder}", "have the published keys in their order", offenders)
    return files, CheckResult("order of keys", *outcome, "published rules")


def _keys(line: Mapping[str, Any]) -> list[tuple[str, list[str]]]:
    return [(key, list(value) if isinstance(value, dict) else []) for key, value in line.items()]


def read_release(path: Path, task: Task) -> list[ReleasedExample]:
    """Read one file of a release, ours or published; the validated SST file gives examples without prediction.

    Raises NotFound, or BadInput naming file and line.
    """

    def read_line(line: Mapping[str, Any]) -> ReleasedExample:
        return from_validated_line(line, task.labels) if "sst_label" in line else task.read_line(line)

    return read_examples(path, read_line)


def _unique(examples: Sequence[ReleasedExample], things: str, key: Callable[[ReleasedExample], str]) -> Outcome:
    ids = defaultdict(list)
    for example in examples:
        ids[key(example)].append(example.text_id)
    repeated = [" = ".join(same) for same in ids.values() if len(same) > 1]
    return judge(len(ids), things, "occur once (withheld examples apart)", repeated)


def _apart(release: Release, what: str, keys: Callable[[ReleasedExample], Iterable[str]]) -> Outcome:
    """Whether no key stands in two of train, dev and test; withheld examples are no part of this."""
    given = [name for name in SPLITS if release.splits.get(name)]
    if len(given) < 2:
        return Outcome(
            "could not be checked", f"needs two of {', '.join(SPLITS)}; given: {given[0] if given else 'none'}"
        )
    holders = {name: {key for example in release.of(name) for key in keys(example)} for name in given}
    if not any(holders.values()):
        return Outcome("could not be checked", f"there are no {what}")
    shared = {pair: sorted(holders[pair[0]] & holders[pair[1]]) for pair in combinations(given, 2)}
    offences = [
        f"{len(keys)} {what} in {a} and {b} ({first(map(repr, keys))})" for (a, b), keys in shared.items() if keys
    ]
    if offences:
        return Outcome("fails", "; ".join(offences))
    return Outcome("holds", f"no {what} in two of {', '.join(given)}")


def _reviews(example: ReleasedExample) -> Iterator[str]:
    """Yield the reviews an example comes from: its own, or its prompt's."""
    if example.review_id is not None:
        yield example.review_id
    if example.prompt is not None and example.prompt.review_id is not None:
        yield example.prompt.review_id


def _prompts(example: ReleasedExample) -> Iterator[str]:
    if example.prompt is not None:
        yield folded(example.prompt.sentence)


def _sizes(release: Release) -> Outcome:
    counts = {name: len(examples) for name, examples in release.splits.items()}
    sizes = ", ".join(f"{name} {count}" for name, count in counts.items()) or "nothing is given"
    if not all(name in counts for name in HELD_OUT):
        return Outcome("could not be checked", f"dev and test are not both given: {sizes}")
    if counts["dev"] and counts["dev"] == counts["test"]:
        return Outcome("holds", f"dev and test have one size: {sizes}")
    return Outcome("fails", f"dev and test are not of one size, or empty: {sizes}")


def _prompts_once(release: Release) -> Outcome:
    uses = Counter(example.prompt.sentence for example in release.all if example.prompt is not None)
    used = Counter(example.prompt.sentence for example in release.of(*HELD_OUT) if example.prompt is not None)
    rule = f"are used once among the {len(release.all)} examples given"
    return judge(len(used), "prompts of dev and test", rule, [repr(prompt) for prompt in used if uses[prompt] > 1])


def _withheld_apart(release: Release) -> Outcome:
    if not release.splits.get("withheld") or not release.splits.get("train"):
        return Outcome("could not be checked", "train and withheld examples are not both given")

    def ties(example: ReleasedExample) -> set[tuple[str, str]]:
        keys = {("text id", example.text_id), ("group text", group_text(example.sentence))}
        keys |= {("review", review) for review in _reviews(example)}
        return keys | {("prompt", text) for text in _prompts(example)}

    train = {key for example in release.of("train") for key in ties(example)}
    sharing = [example.text_id for example in release.of("withheld") if ties(example) & train]
    return judge(len(release.of("withheld")), "withheld examples", "share nothing with train", sharing)


def _unique_by(things: str, key: Callable[[ReleasedExample], str]) -> Check:
    return lambda release: _unique(release.of(*(name for name in release.splits if name != "withheld")), things, key)


def _apart_by(things: str, keys: Callable[[ReleasedExample], Iterable[str]]) -> Check:
    return lambda release: _apart(release, things, keys)


CHECKS: tuple[tuple[str, RequiredBy, Check], ...] = (
    ("sizes", "published rules", _sizes),
    ("text ids", "published rules", rules.text_ids),
    ("text ids unique", "published rules", rules.unique_ids),
    ("sentences filled", "dynaround rules", rules.filled),
    ("sentences unique", "published rules", _unique_by("sentences", lambda example: example.sentence)),
    ("folded texts unique", "dynaround rules", _unique_by("folded texts", lambda example: folded(example.sentence))),
    ("group texts in one split", "dynaround rules", _apart_by("group texts", lambda e: [group_text(e.sentence)])),
    ("reviews in one split", "dynaround rules", _apart_by("reviews of sentences or prompts", _reviews)),
    ("prompts in one split", "dynaround rules", _apart_by("prompts", _prompts)),
    ("prompts of dev and test unique", "published rules", _prompts_once),
    ("dev and test from the prompt arm", "published rules", rules.prompt_arm),
    ("withheld apart from train", "dynaround rules", _withheld_apart),
    ("five responses", "published rules", rules.five_responses),
    ("worker ids", "published rules", rules.worker_ids),
    ("hit ids", "published rules", rules.hit_ids),
    ("authors not their own validators", "published rules", rules.own_validators),
    ("gold rule", "published rules", rules.gold_rule),
    ("dev and test gold", "published rules", rules.held_out_gold),
    ("dev and test majority", "published rules", rules.held_out_winning),
    ("gold x prediction cells", "published rules", rules.model_cells),
    ("gold x rating cells", "published rules", rules.rating_cells),
    ("target model at chance", "published rules", rules.model_at_chance),
    ("ratings", "published rules", rules.ratings),
    ("spans", "published rules", rules.spans),
    ("probabilities", "published rules", rules.probabilities),
)
"""Name, whose rule, and function of every check, in the order of the report."""
