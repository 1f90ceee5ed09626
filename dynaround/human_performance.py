"""Human F1 on the filtered splits, on all that has a gold label, and against the other four; and by worker group."""

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dynaround.answered_items import AnsweredItem, counting_items, human_items, unusable_responses
from dynaround.human import HumanScores, MixedGold, ResponseTable, expected_human_scores, response_table
from dynaround.intervals import human_interval
from dynaround.judged_responses import (
    Bootstrap,
    F1Intervals,
    JudgedResponses,
    f1_intervals,
    judge,
    majority_of_others,
    pooled_scores,
)

GROUP_STARTS = (1, 10, 50, 200)
"""From how many responses in the round on a worker belongs to the next group."""

_NO_GOLD = "undefined: no example has a gold label that counts"


class PerformanceFigure(NamedTuple):
    """One way to score responses; where nothing can be scored, scores and intervals are None and `reason` says why.

    Of `responses`, `unusable` have no reference label, and `agreeing` of the others agree with theirs, mixed included.
    `smallest_vote` is the least number of responses that an item's gold label has.
    """

    scores: HumanScores | None
    intervals: F1Intervals | None
    reason: str | None
    items: int
    responses: int
    unusable: int
    agreeing: int
    smallest_vote: int | None

    @property
    def vote_accuracy(self) -> float | None:
        """The share of the usable responses that agree with their reference label."""
        usable = self.responses - self.unusable
        return self.agreeing / usable if usable else None


class WorkerGroup(NamedTuple):
    """Workers who gave from `least` to `most` responses in the round; `most` is None for the last group.

    `responses` counts all their responses; the figure has those on examples that count, judged against gold. A label
    without such a response, given or due, has an F1 of 0 in it: a macro F1 of few responses is to be read by label.
    """

    least: int
    most: int | None
    workers: int
    responses: int
    figure: PerformanceFigure

    @property
    def name(self) -> str:
        """How many responses each of these workers gave: "10–49", "200 and more"."""
        return f"{self.least} and more" if self.most is None else f"{self.least}–{self.most}"


class HumanPerformance(NamedTuple):
    """The three figures, the worker groups, and what they were taken from.

    `items` and `responses` count everything, also what has no gold label; `without_gold` counts such items.
    `unusable_of_all` counts the responses, of all of them, whose other four have no majority.
    """

    filtered: PerformanceFigure
    with_gold: PerformanceFigure
    leave_one_out: PerformanceFigure
    groups: tuple[WorkerGroup, ...]
    items: int
    without_gold: int
    responses: int
    unusable_of_all: int
    mixed_gold: MixedGold


class _Scored(NamedTuple):
    """Items that count, the table of their responses, and what scoring them needs beside."""

    items: Sequence[AnsweredItem]
    table: ResponseTable
    model_labels: Sequence[str]
    label_order: Sequence[str]
    mixed_gold: MixedGold
    bootstrap: Bootstrap


def human_performance(
    items: Sequence[AnsweredItem],
    model_labels: Sequence[str],
    label_order: Sequence[str],
    bootstrap: Bootstrap,
    mixed_gold: MixedGold = "drop",
) -> HumanPerformance:
    """Score responses (a) on the filtered splits, (b) on all items with a gold label, (c) on (b) against the others.

    - (a) and (b) are the exact expectation of the published procedure (`human.expected_human_scores`), (a) being what
      Potts et al. 2021, sec. 3.5, publish, on items of which at least four of five responses agree.
    - (c) judges each response against the label that at least three of the other four have, and leaves out a response
      whose other four have none, as given and as support. Where no response is left out, as on (a), that label is the
      gold label and the figure the same expectation; else all usable responses are pooled, F1 = 2 agreeing / (given +
      support). References that the model lacks follow `mixed_gold`: "keep" leaves them in, where they lower precision.
    - A worker group has its responses pooled against gold, by how many its workers gave on all `items`.

    With three of five for gold, the three that agree are unusable in (c) and the two others stay: (c) is strict as (b)
    is lenient. Raises BadInput as `answered_items.counting_items`, `human.response_table` and
    `intervals.human_interval` do.
    """
    counting = counting_items(items, model_labels, label_order, mixed_gold)

    def scored(chosen: Sequence[AnsweredItem]) -> _Scored | None:
        if not chosen:
            return None
        table = response_table(human_items(chosen), model_labels, label_order, mixed_gold)
        return _Scored(chosen, table, model_labels, label_order, mixed_gold, bootstrap)

    every, held_out = scored(counting), scored([item for item in counting if item.held_out])
    return HumanPerformance(
        filtered=_against_gold(held_out) if held_out else _undefined(f"{_NO_GOLD} and stands in dev or test"),
        with_gold=_against_gold(every) if every else _undefined(_NO_GOLD),
        leave_one_out=_against_the_others(every) if every else _undefined(_NO_GOLD),
        groups=_groups(items, every),
        items=len(items),
        without_gold=sum(item.gold is None for item in items),
        responses=sum(len(item.responses) for item in items),
        unusable_of_all=unusable_responses(items, label_order),
        mixed_gold=mixed_gold,
    )


def _undefined(reason: str) -> PerformanceFigure:
    return PerformanceFigure(None, None, reason, items=0, responses=0, unusable=0, agreeing=0, smallest_vote=None)


def _against_gold(scored: _Scored) -> PerformanceFigure:
    return _figure(scored, _gold(scored.table), np.ones(scored.table.responses.shape, dtype=bool))


def _against_the_others(scored: _Scored) -> PerformanceFigure:
    references, usable = majority_of_others(scored.table.responses, len(scored.label_order))
    figure = _figure(scored, references, usable)
    return figure._replace(responses=usable.size, unusable=int((~usable).sum()))


def _gold(table: ResponseTable) -> NDArray[np.int64]:
    return np.broadcast_to(table.gold[:, None], table.responses.shape)


def _figure(scored: _Scored, references: NDArray[np.int64], counted: NDArray[np.bool_]) -> PerformanceFigure:
    """Score the responses that are `counted`: exactly where all count and are judged against gold, else pooled."""
    items, table, model_labels, label_order, mixed_gold, bootstrap = scored
    taken = np.flatnonzero(counted.any(axis=1))
    if not len(taken):
        return _undefined("undefined: none of these responses is on an example that counts")
    judged = JudgedResponses(*(part[taken] for part in judge(table.responses, references, counted, table.columns)))
    clusters = [items[place].cluster for place in taken.tolist()]
    right, gold = table.responses == references, _gold(table)
    exact = bool(counted.all() and (references == gold).all())
    if exact:
        scores = expected_human_scores(human_items(items), model_labels, label_order, mixed_gold)
    else:
        gold_items = (table.gold[taken, None] == table.columns).sum(axis=0)
        scores = pooled_scores(judged, model_labels, gold_items, len(taken), mixed_gold)
    intervals = f1_intervals(judged, scores, clusters, bootstrap)
    if exact and intervals.macro is not None:
        macro = human_interval(
            human_items(items), model_labels, label_order, clusters, mixed_gold=mixed_gold, **bootstrap._asdict()
        )
        intervals = intervals._replace(macro=macro)
    return PerformanceFigure(
        scores=scores,
        intervals=intervals,
        reason=None,
        items=len(taken),
        responses=int(counted.sum()),
        unusable=0,
        agreeing=int((right & counted).sum()),
        smallest_vote=int((table.responses == gold)[taken].sum(axis=1).min()),
    )


def _groups(items: Sequence[AnsweredItem], scored: _Scored | None) -> tuple[WorkerGroup, ...]:
    loads = Counter(worker for item in items for worker, _ in item.responses)
    ends: list[int | None] = [start - 1 for start in GROUP_STARTS[1:]] + [None]
    groups = []
    for least, most in zip(GROUP_STARTS, ends, strict=True):
        members = {worker: load for worker, load in loads.items() if least <= load <= (most or load)}
        figure = _undefined(_NO_GOLD)
        if scored is not None:
            theirs = np.array([[worker in members for worker, _ in item.responses] for item in scored.items])
            figure = _figure(scored, _gold(scored.table), theirs)
        groups.append(WorkerGroup(least, most, len(members), sum(members.values()), figure))
    return tuple(groups)
