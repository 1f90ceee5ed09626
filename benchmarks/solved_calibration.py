"""How often `dynaround solved` gives which answer when the truth is known: the tables of docs/solved.md.

Run: python -m benchmarks.solved_calibration [ROUND_1_DEV ROUND_2_DEV]; without them the published files of the shared
data folder are read. About two and a half minutes on one core; everything is seeded.
"""

import math
import sys
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import bisect
from scipy.special import ndtr, ndtri

from dynaround.corpus.labelled import read_labelled
from dynaround.corpus.rejects import Rejected
from dynaround.errors import BadInput
from dynaround.human import ResponseTable, response_table
from dynaround.human_moments import response_moments
from dynaround.labels import RESPONSES
from dynaround.paired_resampling import Bounds, bounds_of, differences, model_counts
from dynaround.resampling import resampled_sums, sums_by_cluster
from dynaround.solved import NOT_SOLVED, SOLVED, UNDECIDED, answer_at
from dynaround.solved_power import chance_called_solved
from dynaround.tasks.sentiment import SENTIMENT

DATA = Path(__file__).resolve().parents[2] / "shared" / "data" / "dynasent"
ROUND_1 = DATA / "dynasent-v1.1-round01-yelp-dev.jsonl"
ROUND_2 = DATA / "dynasent-v1.1-round02-dynabench-dev.jsonl"

ROUNDS = 1_000
RESAMPLES = 2_000
MARGIN = 0.02
SPLIT_SIZES = (720, 3_600)
PLANNED_SIZES = (90, 360, 720, 1_440, 3_600, 7_200)
TRUE_DIFFERENCES = (0.02, 0.0, -MARGIN, -MARGIN - 0.01, -0.05)

# Facts: Round 1 dev of DynaSent v1.1 (Potts et al. 2021), counted from its file. 1,200 items of each gold label
# (positive, negative, neutral), all with four or five of five responses for it: how many are unanimous, and how many
# have which fifth response (positive, negative, neutral, mixed).
PATTERNS = np.array([[472, 0, 155, 422, 151], [340, 249, 0, 433, 178], [432, 442, 225, 0, 101]])
GOLD_LABELS = len(PATTERNS)

# Sources of one, two and three items; the published splits have 1.04 items a review, where clustering hardly matters.
SOURCE_SIZES = (0.5, 0.3, 0.2)
# The part of the latent variance that items of one source share, for the people's unanimity and the model's errors.
SHARED = 1 / 3


class Errors(NamedTuple):
    """How far a model's errors follow the people's.

    Unanimous items are `easier` by so many latent standard deviations. On the others the share `siding` of its errors
    takes the side of the fifth response; all other errors fall evenly on the two labels that are left.
    """

    easier: float
    siding: float


FOLLOWING = Errors(0.6, 0.5)
INDEPENDENT = Errors(0.0, 0.0)


class Responses(NamedTuple):
    """Simulated items: `table` as for human scores, `fifth` (items,) the dissenting label or -1, `source` (items,)."""

    table: ResponseTable
    fifth: NDArray[np.int64]
    source: NDArray[np.int64]


def people_macro_f1(patterns: NDArray[Any]) -> float:
    """Return the human macro F1 of a population with these patterns, gold labels being equally frequent."""
    shares = patterns / patterns.sum(axis=1, keepdims=True)
    agreeing = 1 - shares[:, 1:].sum(axis=1) / RESPONSES
    given = agreeing + shares[:, 1:4].sum(axis=0) / RESPONSES
    return float((2 * agreeing / (given + 1)).mean())


def model_macro_f1(skill: float, patterns: NDArray[Any], kind: Errors) -> float:
    """Return the macro F1 of a model of this (latent) skill on such a population."""
    shares = patterns / patterns.sum(axis=1, keepdims=True)
    wrong, wrong_on_unanimous = 1 - ndtr([skill, skill + kind.easier])
    sided = kind.siding * wrong * shares[:, 1:4]
    errors = wrong_on_unanimous * shares[:, 0] + wrong * shares[:, 1:].sum(axis=1)
    evenly = (errors - sided.sum(axis=1)) / 2
    off_gold = 1 - np.eye(GOLD_LABELS)
    given = (1 - errors) + (sided + off_gold * evenly[:, None]).sum(axis=0)
    return float((2 * (1 - errors) / (given + 1)).mean())


def skill_for(macro_f1: float, patterns: NDArray[Any] = PATTERNS, kind: Errors = FOLLOWING) -> float:
    """Return the skill at which the model has this macro F1 on the population, by bisection."""
    return float(bisect(lambda skill: model_macro_f1(skill, patterns, kind) - macro_f1, -3, 6))


def shared_normal(generator: np.random.Generator, source: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return a standard normal value per item, correlated within a source."""
    of_source = generator.standard_normal(int(source.max()) + 1)[source]
    of_item = generator.standard_normal(len(source))
    values: NDArray[np.float64] = math.sqrt(SHARED) * of_source + math.sqrt(1 - SHARED) * of_item
    return values


def simulated_responses(generator: np.random.Generator, items: int) -> Responses:
    """Draw the items of a round: equally many of each gold label, in sources of one to three items."""
    gold = generator.permutation(np.arange(items) % GOLD_LABELS)
    sizes = generator.choice(len(SOURCE_SIZES), size=items, p=SOURCE_SIZES) + 1
    source = np.repeat(np.arange(items), sizes)[:items]
    unanimous = shared_normal(generator, source) < ndtri(PATTERNS[:, 0] / PATTERNS.sum(axis=1))[gold]
    fifth = np.full(items, -1)
    for label in range(GOLD_LABELS):
        open_ = (gold == label) & ~unanimous
        fifth[open_] = generator.choice(4, size=open_.sum(), p=PATTERNS[label, 1:] / PATTERNS[label, 1:].sum())
    responses = np.repeat(gold[:, None], RESPONSES, axis=1)
    responses[:, -1] = np.where(unanimous, gold, fifth)
    return Responses(ResponseTable(gold, responses, np.arange(items), np.arange(GOLD_LABELS)), fifth, source)


def simulated_predictions(
    generator: np.random.Generator, people: Responses, skill: float, kind: Errors = FOLLOWING
) -> NDArray[np.int64]:
    """Draw the model's predictions for these items."""
    gold = people.table.gold
    wrong = shared_normal(generator, people.source) > skill + kind.easier * (people.fifth == -1)
    other = (gold + generator.integers(1, GOLD_LABELS, size=len(gold))) % GOLD_LABELS
    sides = (people.fifth != -1) & (people.fifth < GOLD_LABELS) & (generator.random(len(gold)) < kind.siding)
    predicted: NDArray[np.int64] = np.where(wrong, np.where(sides, people.fifth, other), gold)
    return predicted


def bounds_of_models(people: Responses, models: Sequence[NDArray[np.int64]], seed: int) -> list[Bounds]:
    """Return the bounds of `dynaround.solved.decide` for several models on one round, from the same resamples."""
    sides = [response_moments(people.table), *(model_counts(people.table, predicted) for predicted in models)]
    per_cluster = sums_by_cluster(np.concatenate(sides, axis=1), people.source.astype(str).tolist())
    sums = resampled_sums(per_cluster, seed=seed, resamples=RESAMPLES)
    human, *parts = np.split(sums, np.cumsum([side.shape[1] for side in sides])[:-1], axis=1)
    return [bounds_of(differences(human, model)) for model in parts]


def shares_of_answers(split_size: int, rounds: int = ROUNDS) -> list[tuple[float, Counter[str], float, float]]:
    """Simulate rounds; return true difference, answers, mean half-width and mean spread for each difference."""
    human = people_macro_f1(PATTERNS)
    skills = [skill_for(human + difference) for difference in TRUE_DIFFERENCES]
    answers: list[Counter[str]] = [Counter() for _ in skills]
    half_widths, spreads = np.zeros(len(skills)), np.zeros(len(skills))
    items = 2 * split_size
    for round_ in range(rounds):
        generator = np.random.default_rng([split_size, round_])
        people = simulated_responses(generator, items)
        models = [simulated_predictions(generator, people, skill) for skill in skills]
        for place, bounds in enumerate(bounds_of_models(people, models, round_)):
            answers[place][answer_at(bounds, MARGIN)] += 1
            half_widths[place] += bounds.half_width / rounds
            spreads[place] += bounds.standard_error * math.sqrt(items) / rounds
    return list(zip(TRUE_DIFFERENCES, answers, half_widths.tolist(), spreads.tolist(), strict=True))


def published_spread(path: Path, kind: Errors, models: int = 20) -> float:
    """Return the mean spread of models as good as a published file's people: standard error times root of items."""
    items = list(read_labelled(f"dynasent:{path}", label_of=SENTIMENT.label_of, on_reject=_refuse))
    table = response_table([(i.gold, i.responses) for i in items], SENTIMENT.model_labels, SENTIMENT.labels)
    odd = (table.responses != table.gold[:, None]).argmax(axis=1)
    fifth = table.responses[np.arange(len(items)), odd]
    fifth = np.where(fifth == table.gold, -1, fifth)
    keys: dict[Any, int] = {}
    source = np.array([keys.setdefault(i.review_id or i.identity, len(keys)) for i in items])
    people = Responses(table, fifth, source)
    patterns = np.zeros_like(PATTERNS)
    np.add.at(patterns, (table.gold, fifth + 1), 1)
    equal = skill_for(people_macro_f1(patterns), patterns, kind)
    generator = np.random.default_rng(1)
    predictions = [simulated_predictions(generator, people, equal, kind) for _ in range(models)]
    errors = [bounds.standard_error for bounds in bounds_of_models(people, predictions, seed=1)]
    return float(np.mean(errors)) * math.sqrt(len(items))


def _refuse(row: Rejected) -> None:
    raise BadInput(f"line {row.line} of a published file: {row.reason}")


def main(round_1: Path, round_2: Path) -> None:
    """Print the tables."""
    started = time.perf_counter()
    print(f"{ROUNDS:,} rounds of each size, {RESAMPLES:,} resamples each, margin {MARGIN}\n")
    print("| items a split | true difference | solved | undecided | not solved | half-width | spread |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for split_size in SPLIT_SIZES:
        for difference, answers, half_width, spread in shares_of_answers(split_size):
            shares = " | ".join(f"{answers[word] / ROUNDS:.1%}" for word in (SOLVED, UNDECIDED, NOT_SOLVED))
            true = f"{difference:+.2f}" if difference else "0"
            print(f"| {split_size:,} | {true} | {shares} | {half_width:.4f} | {spread:.3f} |", flush=True)
    print("\n| spread of models as good as people | errors follow the people's | independent errors |")
    print("| --- | --- | --- |")
    for name, path in (("Round 1 dev", round_1), ("Round 2 dev", round_2)):
        print(f"| {name} | {published_spread(path, FOLLOWING):.3f} | {published_spread(path, INDEPENDENT):.3f} |")
    print("\n| items, dev and test together | chance that a model as good as people is called solved |")
    print("| --- | --- |")
    for items in PLANNED_SIZES:
        print(f"| {items:,} | {chance_called_solved(items, MARGIN):.0%} |")
    print(f"\n{time.perf_counter() - started:.0f} s", file=sys.stderr)


if __name__ == "__main__":
    main(*(map(Path, sys.argv[1:]) if len(sys.argv) == 3 else (ROUND_1, ROUND_2)))
