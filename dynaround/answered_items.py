"""Examples as plain records of who answered what: which of them count for a score, and what is refused."""

from collections.abc import Sequence
from typing import NamedTuple

from dynaround.errors import BadInput
from dynaround.human import HumanItem, MixedGold
from dynaround.judged_responses import majority_of_others
from dynaround.labels import RESPONSES
from dynaround.scoring import label_indices


class AnsweredItem(NamedTuple):
    """An example with its gold label or None, its retained responses as (worker, label), and where it stands.

    `cluster` is what the example comes from (its review or prompt), None for nothing shared; `held_out` says that it
    stands in dev or test, the filtered splits. Workers go by public ids.
    """

    gold: str | None
    responses: tuple[tuple[str, str], ...]
    cluster: str | None
    held_out: bool


def counting_items(
    items: Sequence[AnsweredItem], model_labels: Sequence[str], label_order: Sequence[str], mixed_gold: MixedGold
) -> list[AnsweredItem]:
    """Return the items with a gold label, with ("keep") or without ("drop") gold labels that the model lacks.

    Raises BadInput for a label that `label_order` lacks, a worker twice on one item, more than five responses, and
    fewer on an item that counts.
    """
    known = set(label_order)
    counting = []
    for number, item in enumerate(items, start=1):
        golds = {item.gold} if item.gold is not None else set()
        unknown = sorted(golds.union(label for _, label in item.responses) - known)
        if unknown:
            raise BadInput(f"item {number} has the label {unknown[0]!r}, which is none of {', '.join(label_order)}")
        if len({worker for worker, _ in item.responses}) < len(item.responses):
            raise BadInput(f"item {number} has two responses of one worker; keep one")
        counts = bool(golds) and (mixed_gold == "keep" or item.gold in model_labels)
        if len(item.responses) > RESPONSES or (counts and len(item.responses) < RESPONSES):
            raise BadInput(
                f"item {number} has {len(item.responses)} responses; each is compared with the other four, "
                f"so give exactly the {RESPONSES} retained ones"
            )
        if counts:
            counting.append(item)
    return counting


def human_items(items: Sequence[AnsweredItem]) -> list[HumanItem]:
    """Return gold label and responses alone, as the functions of `human` take them."""
    return [(item.gold, [label for _, label in item.responses]) for item in items]


def unusable_responses(items: Sequence[AnsweredItem], label_order: Sequence[str]) -> int:
    """Count the responses, of all items, whose other four have no majority; without four others there is none."""
    whole = [labels for _, labels in human_items(items) if len(labels) == RESPONSES]
    short = sum(len(item.responses) for item in items if len(item.responses) < RESPONSES)
    places = label_indices((label for labels in whole for label in labels), label_order, "response")
    usable = majority_of_others(places.reshape(-1, RESPONSES), len(label_order)).usable
    return short + int((~usable).sum())
