"""From responses to a gold label and a label distribution: pure counting, the same for any order of arrival."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from dynaround.errors import BadInput

RESPONSES = 5
"""Retained responses an example needs."""
MAJORITY = 3
"""Retained responses that make a label the gold label."""


class Gold(NamedTuple):
    """What the responses of one example say: the gold label or none, or that responses are still missing."""

    label: str | None
    pending: bool
    responses: int

    def __str__(self) -> str:
        return f"pending ({self.responses} answers)" if self.pending else str(self.label)


def label_distribution(labels: Iterable[str], order: Sequence[str]) -> dict[str, int]:
    """Count `labels` into a mapping that has every label of `order`, in that order.

    Raises BadInput for a label that `order` does not have.
    """
    counts = Counter(labels)
    unknown = sorted(set(counts) - set(order))
    if unknown:
        raise BadInput(f"label {unknown[0]!r} is none of {', '.join(order)}")
    return {label: counts[label] for label in order}


def gold_label(distribution: Mapping[str, int], *, majority: int = MAJORITY, responses: int = RESPONSES) -> Gold:
    """Return the label with at least `majority` of exactly `responses` retained responses, else none.

    Fewer responses are pending, even when three already agree: the fifth person may not be dropped for being late.
    Raises BadInput for more: which ones count must be decided first (see `agreement.retained`).
    Rule: Potts et al. 2021, sec. 3.3.
    """
    total = sum(distribution.values())
    if total > responses:
        raise BadInput(
            f"an example has {total} responses where {responses} are retained; choose the retained ones first"
        )
    if total < responses:
        return Gold(None, True, total)
    winners = [label for label, count in distribution.items() if count >= majority]
    return Gold(winners[0] if winners else None, False, total)
