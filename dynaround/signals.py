"""Signs that somebody does not read what they label: haste, one answer for all, copying. Advice for a person: nothing
acts on it, and each sign has innocent explanations too.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations, groupby
from statistics import median
from typing import NamedTuple

from dynaround.text import natural_order

LEAST_RESPONSES = 20
"""Responses, and examples that two workers share, below which nothing is said."""
LEAST_PAGES = 3
FAST = 1 / 3
"""A page is fast where a response took less than this part of the round's median."""
MOST_FAST = 0.5
LEAST_ENTROPY = 0.5
"""The part of the round's entropy below which a worker's is called low."""
RARE_RUN = 0.001
"""The chance of a run below which it is called long."""
LEAST_EXCESS, LEAST_DEVIATIONS = 0.25, 4.0
"""From where on two workers agree far beyond the expected: in parts of 1, and in standard errors."""


class TimedResponse(NamedTuple):
    """One response, with the page that it was given on and the seconds it took, where these are known."""

    example: str
    worker: str
    label: str
    page: int
    seconds: float | None


class Pair(NamedTuple):
    """Two workers who agree with each other more often than with the others who answered the same examples.

    Of the `shared` examples they agree on `agreeing`; `expected` would be as many as each agrees with the others.
    """

    one: str
    other: str
    shared: int
    agreeing: int
    expected: float


class WorkerSignals(NamedTuple):
    """What stands out in one worker's responses, as figures and (`advice`) in plain words; undefined is None.

    `page_seconds` is the median over the `pages` whose time is known, of which `fast_pages` were fast; entropies are in
    bits; `run` is the longest row of the same label, in the order given, and `run_label` that label.
    """

    worker: str
    responses: int
    page_seconds: float | None
    pages: int
    fast_pages: int
    entropy: float
    round_entropy: float
    commonest: str
    commonest_share: float
    round_share: float
    run: int
    run_label: str
    advice: tuple[str, ...]


def entropy(counts: Iterable[int]) -> float:
    """Return the entropy of a distribution that is given by counts, in bits."""
    present = [count for count in counts if count]
    total = sum(present)
    return sum(count / total * math.log2(total / count) for count in present) if len(present) > 1 else 0.0


def worker_signals(responses: Sequence[TimedResponse]) -> list[WorkerSignals]:
    """Return the signals of every worker in natural order; `responses` stand in the order in which they were given."""
    by_worker: dict[str, list[TimedResponse]] = defaultdict(list)
    for response in responses:
        by_worker[response.worker].append(response)
    all_labels = Counter(response.label for response in responses)
    paces = [pace for given in by_worker.values() for _, pace in _pages(given)]
    usual = median(paces) if paces else None
    copying = _copying(responses)
    return [
        _signals(worker, by_worker[worker], all_labels, usual, copying.get(worker, []))
        for worker in sorted(by_worker, key=natural_order)
    ]


def _signals(
    worker: str, given: Sequence[TimedResponse], all_labels: Counter[str], usual: float | None, pairs: Sequence[Pair]
) -> WorkerSignals:
    labels = Counter(response.label for response in given)
    pages = _pages(given)
    fast = sum(usual is not None and pace < FAST * usual for _, pace in pages)
    # Between equals the label that is rarer in the round tells more; then by name, so that order decides nothing.
    commonest = min(labels, key=lambda label: (-labels[label], all_labels[label], label))
    run_label, run = max(
        ((label, len(list(row))) for label, row in groupby(r.label for r in given)), key=lambda r: r[1]
    )
    found = WorkerSignals(
        worker=worker,
        responses=len(given),
        page_seconds=median(seconds for seconds, _ in pages) if pages else None,
        pages=len(pages),
        fast_pages=fast,
        entropy=entropy(labels.values()),
        round_entropy=entropy(all_labels.values()),
        commonest=commonest,
        commonest_share=labels[commonest] / len(given),
        round_share=all_labels[commonest] / all_labels.total(),
        run=run,
        run_label=run_label,
        advice=(),
    )
    return found._replace(advice=tuple(_advice(found, all_labels[run_label] / all_labels.total(), pairs)))


def _advice(found: WorkerSignals, run_share: float, pairs: Sequence[Pair]) -> list[str]:
    said = []
    if found.pages >= LEAST_PAGES and found.fast_pages > MOST_FAST * found.pages:
        said.append(
            f"answered {found.fast_pages} of {found.pages} pages in less than a third of the time that is usual here "
            f"(median {found.page_seconds:.0f} seconds a page)"
        )
    if found.responses >= LEAST_RESPONSES and found.entropy < LEAST_ENTROPY * found.round_entropy:
        said.append(
            f"answers much alike: {found.commonest_share:.0%} {found.commonest}, which is {found.round_share:.0%} of "
            "all responses of the round"
        )
    # The expected number of such runs among so many responses, where each has the round's share by chance.
    if found.responses >= LEAST_RESPONSES and found.responses * run_share**found.run < RARE_RUN:
        said.append(f"chose {found.run_label} {found.run} times in a row")
    for pair in pairs:
        other = pair.other if pair.one == found.worker else pair.one
        said.append(
            f"agrees with {other} on {pair.agreeing} of {pair.shared} sentences that both answered, where "
            f"{pair.expected:.0f} would be usual"
        )
    return said


def _pages(given: Sequence[TimedResponse]) -> list[tuple[float, float]]:
    """Return the seconds of each page and the seconds of one of its responses, where all of them are known."""
    by_page: dict[int, list[float | None]] = defaultdict(list)
    for response in given:
        by_page[response.page].append(response.seconds)
    timed = [[one for one in seconds if one is not None] for seconds in by_page.values() if None not in seconds]
    return [(sum(seconds), sum(seconds) / len(seconds)) for seconds in timed]


def _copying(responses: Iterable[TimedResponse]) -> Mapping[str, list[Pair]]:
    """Return by worker the pairs that agree far beyond the expected.

    On each shared example the pair's agreement is compared with how far the two agree with the others who answered it,
    a difference that is 0 on average where the two are like the others; it must be large, and many times its standard
    error. Two who give the same answer always are found too.
    """
    examples: dict[str, dict[str, str]] = defaultdict(dict)
    for response in responses:
        examples[response.example][response.worker] = response.label
    agreeing: Counter[tuple[str, str]] = Counter()
    expected: dict[tuple[str, str], list[float]] = defaultdict(list)
    squares: dict[tuple[str, str], float] = defaultdict(float)
    for labels in examples.values():
        counts = Counter(labels.values())
        others = len(labels) - 2
        if others < 1:
            continue
        for one, other in combinations(sorted(labels, key=natural_order), 2):
            same = labels[one] == labels[other]
            # Each of the two is no other of the pair: own labels are taken out of the counts.
            with_one, with_other = (counts[labels[w]] - 1 - same for w in (one, other))
            usual = (with_one + with_other) / (2 * others)
            agreeing[one, other] += same
            expected[one, other].append(usual)
            squares[one, other] += (same - usual) ** 2
    found: dict[str, list[Pair]] = defaultdict(list)
    for (one, other), usual_ones in sorted(expected.items(), key=lambda item: tuple(map(natural_order, item[0]))):
        shared, excess = len(usual_ones), agreeing[one, other] - math.fsum(usual_ones)
        if shared < LEAST_RESPONSES or excess < LEAST_EXCESS * shared:
            continue
        if excess >= LEAST_DEVIATIONS * math.sqrt(squares[one, other]):
            pair = Pair(one, other, shared, agreeing[one, other], math.fsum(usual_ones))
            found[one].append(pair)
            found[other].append(pair)
    return found
