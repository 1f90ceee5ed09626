"""How fast the measures of a round are, beside the usual procedure with pandas, statsmodels and scikit-learn.

Run: python -m benchmarks.measures. Each way runs in a process of its own on one core, from plain Python lists of label
strings, and is measured in processor time, which other work on the machine changes little. The usual bootstrap makes 50
resamples and is extrapolated to 10,000. Where both ways compute the same quantity they must agree to 1e-9.
"""

import argparse
import json
import os
import random
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from dynaround.agreement import CountTable, fleiss_kappa, krippendorff_alpha
from dynaround.human import expected_human_scores, response_table, shuffled_human_scores
from dynaround.human_moments import response_moments
from dynaround.intervals import confusion_cells, confusion_f1
from dynaround.labels import label_distribution
from dynaround.paired_resampling import bounds_of, differences, model_counts
from dynaround.resampling import resampled_sums, sums_by_cluster
from dynaround.scoring import label_indices
from dynaround.tasks.sentiment import SENTIMENT

EXAMPLES = 100_000
REVIEWS = 100_000
"""Reviews that examples are drawn from; some 63,000 then have one example or more, as a harvest does."""
RESAMPLES, USUAL_RESAMPLES = 10_000, 50
SEED = 1
TOLERANCE = 1e-9
LABELS, MODEL_LABELS = SENTIMENT.labels, SENTIMENT.model_labels
TRUE_SHARES = (0.31, 0.29, 0.33, 0.07)
RIGHT = 0.75
"""Share of responses and predictions that repeat the true label; the others are drawn from all labels."""


class Examples(NamedTuple):
    """One entry per example in each: five responses, the model's prediction, the review it is from."""

    responses: list[list[str]]
    predictions: list[str]
    reviews: list[str]


class Found(NamedTuple):
    """What one way found: seconds by part, peak MB, and figures; both ways must agree on `same`."""

    seconds: dict[str, float]
    peak: float
    same: dict[str, Any]
    human: float
    standard_error: float
    clusters: int


def make_examples() -> Examples:
    """Draw examples with about the agreement of DynaSent's training part."""
    rng = random.Random(0)

    def said(truth: str, labels: tuple[str, ...]) -> str:
        return truth if truth in labels and rng.random() < RIGHT else rng.choice(labels)

    truths = rng.choices(LABELS, TRUE_SHARES, k=EXAMPLES)
    return Examples(
        [[said(truth, LABELS) for _ in range(5)] for truth in truths],
        [said(truth, MODEL_LABELS) for truth in truths],
        [f"review {rng.randrange(REVIEWS)}" for _ in truths],
    )


def draws(clusters: int) -> Iterator[Any]:
    """Yield the clusters of each usual resample, the same for both ways."""
    generator = np.random.default_rng(SEED)
    return (generator.integers(clusters, size=clusters) for _ in range(USUAL_RESAMPLES))


def ours(examples: Examples) -> Found:
    """Measure this project's functions."""
    start = time.process_time()
    gold = [SENTIMENT.gold(responses).label for responses in examples.responses]
    distributions = [label_distribution(responses, LABELS) for responses in examples.responses]
    table = CountTable.from_distributions(distributions, LABELS)
    kappa, alpha = fleiss_kappa(table).value, krippendorff_alpha(table).value
    items = list(zip(gold, examples.responses, strict=True))
    human = expected_human_scores(items, MODEL_LABELS, LABELS).macro_f1
    labels_done = time.process_time()
    judged = response_table(items, MODEL_LABELS, LABELS)
    predictions = [examples.predictions[place] for place in judged.used]
    reviews = [examples.reviews[place] for place in judged.used]
    people = response_moments(judged)
    model = model_counts(judged, label_indices(predictions, MODEL_LABELS, "prediction"))
    per_cluster = sums_by_cluster(np.concatenate([people, model], axis=1), reviews)
    sums = resampled_sums(per_cluster, seed=SEED, resamples=RESAMPLES)
    bounds = bounds_of(differences(*np.split(sums, [people.shape[1]], axis=1)))
    bootstrap_done, peak = time.process_time(), own_peak()
    cells = confusion_cells([LABELS[place] for place in judged.gold], predictions, MODEL_LABELS)
    cells_by_review = sums_by_cluster(cells, reviews)
    same = {
        "gold labels": [gold.count(label) for label in LABELS],
        "label totals": np.sum(table.rows, axis=0).tolist(),
        "Fleiss' kappa": kappa,
        "Krippendorff's alpha": alpha,
        "human F1, shuffled with seed 1": shuffled_human_scores(items, MODEL_LABELS, LABELS, 1).macro_f1,
        "model F1 in 50 resamples": [
            float(confusion_f1(cells_by_review[drawn].sum(axis=0)[None]).mean()) for drawn in draws(len(per_cluster))
        ],
    }
    seconds = {"labels": labels_done - start, "bootstrap": bootstrap_done - labels_done}
    return Found(seconds, peak, same, human, bounds.standard_error, len(per_cluster))


def usual(examples: Examples) -> Found:
    """Measure the usual procedure; labels are codes in its bootstrap, which is faster than strings."""
    # Only here: memory is measured for each way alone.
    import krippendorff
    import pandas as pd
    from sklearn.metrics import f1_score
    from statsmodels.stats.inter_rater import fleiss_kappa as statsmodels_kappa

    def macro_f1(gold: Any, said: Any, labels: list[Any]) -> float:
        return float(f1_score(gold, said, labels=labels, average="macro", zero_division=0))

    start = time.process_time()
    long = pd.DataFrame(examples.responses).melt(ignore_index=False, value_name="label")
    counts = pd.crosstab(long.index, long["label"]).reindex(columns=list(LABELS), fill_value=0)
    gold = counts.idxmax(axis=1).where(counts.max(axis=1) >= 3)
    kappa = statsmodels_kappa(counts.to_numpy())
    alpha = krippendorff.alpha(value_counts=counts.to_numpy(), level_of_measurement="nominal")
    frame = pd.DataFrame({"gold": gold, "model": examples.predictions, "review": examples.reviews})
    frame = frame[frame["gold"].isin(MODEL_LABELS)]
    codes = {label: code for code, label in enumerate(LABELS)}
    shuffled = [sorted(examples.responses[example], key=codes.__getitem__) for example in frame.index]
    shuffler = random.Random(1)
    for row in shuffled:
        shuffler.shuffle(row)
    annotators = pd.DataFrame(shuffled, index=frame.index)
    human = [macro_f1(frame["gold"], annotators[number], list(MODEL_LABELS)) for number in annotators]
    labels_done = time.process_time()
    model_codes = [codes[label] for label in MODEL_LABELS]
    gold_said, model_said = (frame[column].map(codes).to_numpy() for column in ("gold", "model"))
    people_said = [annotators[number].map(codes).to_numpy() for number in annotators]
    review_codes, reviews = pd.factorize(frame["review"])
    members = pd.Series(range(len(frame))).groupby(review_codes).indices
    model_f1, human_f1 = [], []
    for drawn in draws(len(reviews)):
        taken = np.concatenate([members[review] for review in drawn])
        model_f1.append(macro_f1(gold_said[taken], model_said[taken], model_codes))
        human_f1.append(np.mean([macro_f1(gold_said[taken], said[taken], model_codes) for said in people_said]))
    bootstrap_seconds = (time.process_time() - labels_done) * RESAMPLES / USUAL_RESAMPLES
    same = {
        "gold labels": [int((gold == label).sum()) for label in LABELS],
        "label totals": counts.sum().tolist(),
        "Fleiss' kappa": float(kappa),
        "Krippendorff's alpha": float(alpha),
        "human F1, shuffled with seed 1": float(np.mean(human)),
        "model F1 in 50 resamples": model_f1,
    }
    seconds = {"labels": labels_done - start, "bootstrap": bootstrap_seconds}
    error = float(np.std(np.subtract(model_f1, human_f1)))
    return Found(seconds, own_peak(), same, float(np.mean(human)), error, len(reviews))


WAYS = {"ours": ours, "usual": usual}


def own_peak() -> float:
    """Return the most memory of this process in MB so far."""
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return int(next(line for line in status.splitlines() if line.startswith("VmHWM:")).split()[1]) / 1024


def run_alone(way: str) -> Found:
    """Run one way in a process of its own on one core."""
    command = [sys.executable, "-m", "benchmarks.measures", "--way", way]
    alone = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
    return Found(**json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, env=alone).stdout))


def compare() -> None:
    """Print seconds, ratios and memory of both ways, and stop with an error where they differ."""
    mine, theirs = run_alone("ours"), run_alone("usual")
    for name, value in mine.same.items():
        apart = float(np.abs(np.subtract(value, theirs.same[name])).max())
        print(f"{name}: differ by at most {apart:.1e}")
        if apart > TOLERANCE:
            sys.exit(f"{name} differs by more than {TOLERANCE}: {value} and {theirs.same[name]}")
    print(f"human F1: {mine.human:.6f} exact expectation, {theirs.human:.6f} one shuffle")
    errors = [way.standard_error for way in (mine, theirs)]
    print(
        f"standard error of model minus human F1: {errors[0]:.5f}, of {USUAL_RESAMPLES} usual resamples {errors[1]:.5f}"
    )
    print()
    print(f"{EXAMPLES:,} examples, five responses each, {mine.clusters:,} clusters judged; one core")
    print(f"{'':52}{'ours s':>9}{'usual s':>10}{'ratio':>8}")
    rows = {
        "labels": "gold, distribution, kappa, alpha, human F1",
        "bootstrap": f"{RESAMPLES:,} resamples (usual: {USUAL_RESAMPLES}, extrapolated)",
    }
    for key, name in rows.items():
        seconds = [way.seconds[key] for way in (mine, theirs)]
        print(f"{name:52}{seconds[0]:9.2f}{seconds[1]:10,.2f}{seconds[1] / seconds[0]:8,.0f}")
    print(f"{'peak memory, MB':52}{mine.peak:9,.0f}{theirs.peak:10,.0f}")


def main() -> None:
    """Compare both ways, or run one and print its figures as JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--way", choices=WAYS, help=argparse.SUPPRESS)
    way = parser.parse_args().way
    if way:
        print(json.dumps(WAYS[way](make_examples())._asdict()))
        return
    compare()


if __name__ == "__main__":
    main()
