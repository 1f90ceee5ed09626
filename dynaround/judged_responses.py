"""Single responses against a reference label: the gold label, or the majority of the other responses; pooled scores."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dynaround.human import HumanScores, MixedGold
from dynaround.intervals import CONFIDENCE, Interval, percentile_interval
from dynaround.labels import MAJORITY
from dynaround.resampling import RESAMPLES, resampled_sums, sums_by_cluster
from dynaround.scoring import label_scores, ratio_or_zero


class Bootstrap(NamedTuple):
    """How intervals are resampled: by which seed, how often, and at which confidence."""

    seed: int
    resamples: int = RESAMPLES
    confidence: float = CONFIDENCE


class OthersMajority(NamedTuple):
    """For each response (items, responses) the place of the majority label of the others, and whether they have one."""

    references: NDArray[np.int64]
    usable: NDArray[np.bool_]


class JudgedResponses(NamedTuple):
    """Per item and model label (items, labels): responses with it, those that agree, and those it is the reference of.

    Responses that do not count add to none of the three.
    """

    given: NDArray[np.int64]
    agreeing: NDArray[np.int64]
    support: NDArray[np.int64]


class F1Intervals(NamedTuple):
    """Intervals of the macro F1 and of each model label's F1, resampled over so many clusters.

    A single cluster cannot be resampled: then there are no intervals, and `reason` says so.
    """

    macro: Interval | None
    per_label: tuple[Interval, ...]
    clusters: int
    reason: str | None


def majority_of_others(responses: NDArray[np.int64], labels: int) -> OthersMajority:
    """Compare each response with the other four: their majority is the label that at least three of them have.

    `responses` (items, 5) are places among so many `labels`. Three of four is never a tie.
    """
    one_hot = np.eye(labels, dtype=np.int64)[responses]
    others = one_hot.sum(axis=1, keepdims=True) - one_hot
    return OthersMajority(others.argmax(axis=2), others.max(axis=2) >= MAJORITY)


def judge(
    responses: NDArray[np.int64],
    references: NDArray[np.int64],
    counted: NDArray[np.bool_],
    columns: NDArray[np.int64],
) -> JudgedResponses:
    """Count by item and label of `columns`, over the responses (items, 5) that are `counted`."""
    given = (responses[:, :, None] == columns) & counted[:, :, None]
    support = (references[:, :, None] == columns) & counted[:, :, None]
    return JudgedResponses(given.sum(axis=1), (given & support).sum(axis=1), support.sum(axis=1))


def pooled_scores(
    judged: JudgedResponses, model_labels: Sequence[str], gold_items: NDArray[np.int64], items: int, mixed: MixedGold
) -> HumanScores:
    """Score all judged responses as one annotator's: P = agreeing / given, R = agreeing / support, F1 of their sum.

    `gold_items` has the number of gold items of each model label. A division by zero is 0. Where all five responses
    of each item count and are judged against gold, it is `human.pooled_human_scores`.
    """
    given, agreeing, support = (part.sum(axis=0) for part in judged)
    precision, recall = ratio_or_zero(agreeing, given), ratio_or_zero(agreeing, support)
    f1 = ratio_or_zero(2 * agreeing, given + support)
    rows = label_scores(model_labels, precision, recall, f1, gold_items)
    means = float(precision.mean()), float(recall.mean()), float(f1.mean())
    return HumanScores(rows, *means, "responses pooled", mixed, items, ())


def f1_intervals(
    judged: JudgedResponses, scores: HumanScores, clusters: Sequence[str | None], bootstrap: Bootstrap
) -> F1Intervals:
    """Bootstrap F1 by label and as their mean over clusters of items; an item with the key None is one of its own.

    The estimates are those of `scores`; the resamples are pooled, which lies within 1e-4 of an expectation on the
    published rounds, far less than the intervals are wide. Raises BadInput as `intervals.human_interval` does.
    """
    number = len(set(clusters) - {None}) + sum(key is None for key in clusters)
    if number < 2:
        return F1Intervals(None, (), number, "undefined: all examples are of one cluster, which cannot be resampled")
    per_item = np.concatenate([2 * judged.agreeing, judged.given + judged.support], axis=1)
    sums = resampled_sums(sums_by_cluster(per_item, clusters), seed=bootstrap.seed, resamples=bootstrap.resamples)
    twice_agreeing, of = np.split(sums, 2, axis=1)
    f1 = ratio_or_zero(twice_agreeing, of)
    return F1Intervals(
        percentile_interval(scores.macro_f1, f1.mean(axis=1), bootstrap.confidence),
        tuple(
            percentile_interval(row.f1, values, bootstrap.confidence)
            for row, values in zip(scores.per_label, f1.T, strict=True)
        ),
        number,
        None,
    )
