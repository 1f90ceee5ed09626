"""What a model may be judged on when a round is asked about: its held-out items, without those the model has seen."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from sqlmodel import Session, select

from dynaround.corpus.labelled import LabelledSentence
from dynaround.errors import BadInput
from dynaround.leaks import CHANCE_SHARE
from dynaround.release_file import lines_hash
from dynaround.splits import HELD_OUT
from dynaround.tables import RELEASED, Placement
from dynaround.task import ReleasedExample, Task
from dynaround.tasks import get_task
from rounds.labelling import labelled_examples
from rounds.lifecycle import find_round, require_state
from rounds.plan import RoundPlan
from rounds.releasing import responses_from


class Asked(NamedTuple):
    """What a round is judged on: the released examples of each split and who answered them."""

    round_number: int
    target_hash: str
    margin: float
    task: Task
    by_split: Mapping[str, Sequence[ReleasedExample]]
    responses_from: str


class Judged(NamedTuple):
    """The items a model may be judged on, split by split, and in sentences what had to be left out."""

    by_split: Mapping[str, Sequence[ReleasedExample]]
    notes: Sequence[str]


def asked_about(session: Session, number: int) -> Asked:
    """Return what a released round is judged on; raise IllegalMove for a round in another state."""
    round_ = find_round(session, number)
    require_state(round_, RELEASED)
    assert round_.id is not None
    task = get_task(round_.task)
    placed = {p.example_id: p.split for p in session.exec(select(Placement))}
    by_split: dict[str, list[ReleasedExample]] = {split: [] for split in HELD_OUT}
    kinds: set[str] = set()
    for one in labelled_examples(session, round_.id, number, task):
        kinds |= one.worker_kinds
        split = placed.get(one.example.id or 0)
        if split in by_split:
            by_split[split].append(one.released)
    margin = RoundPlan.model_validate(round_.plan).margin
    # A round that was drawn anew from a published file has no dev.
    filled = {split: examples for split, examples in by_split.items() if examples}
    return Asked(number, round_.target_model_hash, margin, task, filled, responses_from(sorted(kinds)))


def all_of(asked: Asked) -> list[ReleasedExample]:
    """Return the examples of all splits."""
    return [example for examples in asked.by_split.values() for example in examples]


def without_seen(asked: Asked, manifest: Mapping[str, Any], known: Sequence[bool] | None) -> Judged:
    """Leave out what the model has seen or was chosen by; raise BadInput where that leaves no fair judgement."""
    name, number = manifest["name"], asked.round_number
    notes = []
    seen: set[str] = set()
    if known is None:
        notes.append(f"{name} keeps no prints of its training texts, so nothing tells whether it was trained on these.")
    else:
        seen = {example.text_id for example, found in zip(all_of(asked), known, strict=True) if found}
    total = len(all_of(asked))
    if len(seen) > CHANCE_SHARE * total:
        raise BadInput(
            f"{name} was trained on {len(seen)} of the {total} sentences in dev and test of round {number}; "
            "train a model without them to ask about"
        )
    if seen:
        notes.append(f"{len(seen)} of {total} sentences are left out: their text also stands in its training rows.")
    by_split = {
        split: [example for example in examples if example.text_id not in seen]
        for split, examples in asked.by_split.items()
    }
    chosen_on = _chosen_on(manifest)
    if chosen_on is None:
        notes.append(f"{name} does not say what it was chosen on, so nothing tells whether it was chosen on these.")
        chosen_on = {}
    for split, examples in asked.by_split.items():
        use = chosen_on.get(lines_hash(asked.task.release_line(example) for example in examples))
        if use is not None and split == HELD_OUT[-1]:
            raise BadInput(
                f"{name} used the {split} split of round {number} for {use}; train a model that did not, to ask about"
            )
        if use is not None:
            del by_split[split]
            notes.append(f"{name} used the {split} split for {use}, so it is judged on {' and '.join(by_split)} alone.")
    for split, examples in by_split.items():
        golds = {example.gold for example in examples}
        if lacking := [label for label in asked.task.model_labels if label not in golds]:
            notes.append(
                f"No sentence in {split} has the gold label {' or '.join(lacking)}, which counts 0 on both sides."
            )
    return Judged(by_split, notes)


def _chosen_on(manifest: Mapping[str, Any]) -> dict[str, str] | None:
    """Return what each file was used for, by its hash, or None where a model does not say."""
    if manifest.get("selected_on") is None:
        return None
    try:
        return {chosen["sha256"]: chosen["use"] for chosen in manifest["selected_on"]}
    except (KeyError, TypeError):
        raise BadInput(
            f"the manifest of {manifest['name']} says selected_on without use and sha256 of each file; "
            "write both there, or train the model again"
        ) from None


def sentence_of(example: ReleasedExample) -> LabelledSentence:
    """Return an example as a reader of its release gives it."""
    labels = tuple(response.label for response in example.responses)
    return LabelledSentence(example.sentence, example.gold, labels, source_of(example), example.text_id)


def source_of(example: ReleasedExample) -> str | None:
    """Return what an example comes from, for resampling: its review, its prompt's, or the prompt; None: itself."""
    if example.prompt is None:
        return example.review_id
    return example.prompt.review_id or f"prompt: {example.prompt.sentence}"
