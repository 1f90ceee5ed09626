"""How far people agree: Fleiss' kappa, Krippendorff's alpha, the agreement rates of workers, and what is retained."""

from collections import Counter, defaultdict
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dynaround.errors import BadInput
from dynaround.labels import RESPONSES
from dynaround.text import natural_order

_NOT_COMPARABLE = "undefined: no example has two responses"
_NO_CHANCE = "undefined: expected agreement is 1"


class Agreement(NamedTuple):
    """A coefficient, and the observed and expected agreement it comes from; undefined is None with a reason."""

    value: float | None
    reason: str | None
    observed: float | None
    expected: float | None


@dataclass(frozen=True)
class CountTable:
    """How many responses each example (row) has for each label (column).

    Raises BadInput for a repeated label, a row of another width, and a count that is no whole number from 0 on.
    """

    labels: tuple[str, ...]
    rows: tuple[tuple[int, ...], ...]

    def __post_init__(self) -> None:
        if not self.labels or len(set(self.labels)) != len(self.labels):
            raise BadInput(f"the labels of a table of counts are {self.labels!r}; name at least one, and each once")
        for number, row in enumerate(self.rows, start=1):
            if len(row) != len(self.labels):
                raise BadInput(f"row {number} has {len(row)} counts for {len(self.labels)} labels; give one per label")
            if any(not isinstance(count, int) or isinstance(count, bool) or count < 0 for count in row):
                raise BadInput(f"row {number} is {row!r}; a table of counts holds whole numbers from 0 on")

    @classmethod
    def from_distributions(cls, distributions: Iterable[Mapping[str, int]], labels: Sequence[str]) -> "CountTable":
        """Return the table of label distributions, one row each; a label that a distribution lacks counts 0.

        Raises BadInput for a distribution with a label that `labels` does not have.
        """
        rows = []
        for number, distribution in enumerate(distributions, start=1):
            unknown = sorted(set(distribution) - set(labels))
            if unknown:
                raise BadInput(f"distribution {number} counts {unknown[0]!r}, which is none of {', '.join(labels)}")
            rows.append(tuple(distribution.get(label, 0) for label in labels))
        return cls(tuple(labels), tuple(rows))


class WorkerResponse(NamedTuple):
    """One worker's label on one example."""

    example: str
    worker: str
    label: str


class WorkerAgreement(NamedTuple):
    """On how many comparable examples a worker responded, and how often with the majority; no examples, no rate."""

    comparable: int
    agreeing: int
    rate: float | None


def fleiss_kappa(table: CountTable) -> Agreement:
    """Return Fleiss' kappa (1971): agreement of pairs of responses, corrected for chance by the pooled label shares.

    Every row counts, also those without a majority. It is undefined when all responses are one label, and without
    two responses in a row. Raises BadInput when rows have unequal numbers of responses, TypeError for bare lists:
    raw codes in the place of counts would give a number too.
    """
    counts = _counts(table)
    totals = counts.sum(axis=1)
    unequal = np.flatnonzero(totals != totals[0]) if len(totals) else totals
    if len(unequal):
        raise BadInput(
            f"row {unequal[0] + 1} has {totals[unequal[0]]} responses where row 1 has {totals[0]}; "
            "cut every example to its retained responses first, or use Krippendorff's alpha"
        )
    if not len(totals) or totals[0] < 2:
        return Agreement(None, _NOT_COMPARABLE, None, None)
    raters, responses = int(totals[0]), int(totals.sum())
    observed = Fraction(int((counts * (counts - 1)).sum()), responses * (raters - 1))
    expected = sum((Fraction(int(label), responses) ** 2 for label in counts.sum(axis=0)), Fraction(0))
    return _corrected(observed, expected)


def krippendorff_alpha(table: CountTable) -> Agreement:
    """Return Krippendorff's alpha for nominal labels (2004, ch. 11), which takes unequal numbers of responses.

    Rows with fewer than two responses are dropped. It is undefined when all remaining responses are one label, and
    when no row remains. Raises TypeError for bare lists, as `fleiss_kappa` does.
    """
    counts = _counts(table)
    counts = counts[counts.sum(axis=1) >= 2]
    if not len(counts):
        return Agreement(None, _NOT_COMPARABLE, None, None)
    totals = counts.sum(axis=1)
    responses = int(totals.sum())
    pairs = (counts * (counts - 1)).sum(axis=1)
    # One fraction per number of responses keeps the sum exact and short.
    observed = sum(
        (Fraction(int(pairs[totals == total].sum()), int(total) - 1) for total in np.unique(totals)), Fraction(0)
    )
    by_label = [int(label) for label in counts.sum(axis=0)]
    expected = Fraction(sum(label * (label - 1) for label in by_label), responses * (responses - 1))
    return _corrected(observed / responses, expected)


def worker_agreement(
    responses: Iterable[WorkerResponse],
    *,
    at_least: int = RESPONSES,
    own_counts: bool = True,
    excused: Container[tuple[str, str]] = (),
) -> dict[str, WorkerAgreement]:
    """Return, for every worker in natural order, how often the worker responded with the majority of an example.

    The majority is more than half of all responses of the example, the worker's own among them; rule: Potts et al.
    2021, B.4. With `own_counts` false it is more than half of the others' responses (leave-one-out). An example without
    such a majority, or with fewer than `at_least` responses in all, is not comparable. A response that `excused` names
    by example and worker helps to make majorities and is not judged itself. Raises BadInput for two responses of one
    worker on one example.
    """
    examples: dict[str, dict[str, str]] = defaultdict(dict)
    comparable: Counter[str] = Counter()
    agreeing: Counter[str] = Counter()
    workers = set()
    for response in responses:
        if response.worker in examples[response.example]:
            raise BadInput(f"worker {response.worker} has two responses on example {response.example}; keep one")
        examples[response.example][response.worker] = response.label
        workers.add(response.worker)
    for example, labels in examples.items():
        if len(labels) < at_least:
            continue
        counts = Counter(labels.values())
        # Once for each label that was given: a round has many responses and few labels.
        majorities = {label: _majority(counts if own_counts else counts - Counter([label])) for label in counts}
        for worker, label in labels.items():
            majority = majorities[label]
            if majority is not None and (example, worker) not in excused:
                comparable[worker] += 1
                agreeing[worker] += label == majority
    return {
        worker: WorkerAgreement(
            comparable[worker], agreeing[worker], agreeing[worker] / comparable[worker] if comparable[worker] else None
        )
        for worker in sorted(workers, key=natural_order)
    }


def retained(
    responses: Iterable[WorkerResponse],
    agreement: Mapping[str, WorkerAgreement],
    *,
    count: int = RESPONSES,
    between_equals: Callable[[str], Any] = natural_order,
) -> tuple[WorkerResponse, ...]:
    """Return the `count` responses of one example that count, or all when there are fewer, in natural order of workers.

    Kept are those of the workers with the highest agreement rate; a worker without a rate ranks last, and between
    equal rates the worker whose `between_equals` is least is kept. Rule: Potts et al. 2021, sec. 3.3 and B.2.
    Raises BadInput when the responses are of several examples or a worker has two.
    """
    candidates = list(responses)
    if len({response.example for response in candidates}) > 1:
        raise BadInput("responses of several examples were given where one example's are to be retained; give one's")
    twice = [worker for worker, times in Counter(r.worker for r in candidates).items() if times > 1]
    if twice:
        raise BadInput(f"worker {twice[0]} has two responses on example {candidates[0].example}; keep one")

    def rank(response: WorkerResponse) -> tuple[float, Any]:
        known = agreement.get(response.worker)
        rate = -1.0 if known is None or known.rate is None else known.rate
        return -rate, between_equals(response.worker)

    return tuple(sorted(sorted(candidates, key=rank)[:count], key=lambda response: natural_order(response.worker)))


def _counts(table: CountTable) -> NDArray[np.int64]:
    if not isinstance(table, CountTable):
        raise TypeError(f"agreement is computed from a CountTable, not from {type(table).__name__}")
    return np.array(table.rows, dtype=np.int64).reshape(len(table.rows), len(table.labels))


def _corrected(observed: Fraction, expected: Fraction) -> Agreement:
    if expected == 1:
        return Agreement(None, _NO_CHANCE, float(observed), float(expected))
    return Agreement(float((observed - expected) / (1 - expected)), None, float(observed), float(expected))


def _majority(counts: Counter[str]) -> str | None:
    if not counts:
        return None
    label, most = counts.most_common(1)[0]
    return label if 2 * most > counts.total() else None
