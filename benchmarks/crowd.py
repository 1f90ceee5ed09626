"""How hard the scripted crowd is, beside Round 1 of DynaSent: python benchmarks/crowd.py [SEED]."""

import random
import sys
from collections import Counter

from dynaround.labels import label_distribution
from dynaround.scoring import winning_votes
from dynaround.tasks.sentiment import SENTIMENT
from workers.crowds import CrowdMix, crowd_of_page, kind_of_worker, scripted_label

SENTENCES = 12_000
# Shares of true labels as in the demo's reviews of 1 and 5 stars.
TRUE_SHARES = (0.31, 0.29, 0.33, 0.07)
# Round 1 train of DynaSent: published counts of the winning vote and of examples without majority, of 94,459.
PUBLISHED = {3: 36_795 / 94_459, 4: 30_112 / 94_459, 5: 17_481 / 94_459, "none": 10_071 / 94_459, "accuracy": 0.7542}


def main(seed: int) -> None:
    """Print the shares of the default mix beside the published ones."""
    mix, labels = CrowdMix(), SENTIMENT.labels
    truths = random.Random(seed).choices(labels, TRUE_SHARES, k=SENTENCES)
    distributions = []
    for place, truth in enumerate(truths):
        workers = crowd_of_page(place // 10, mix, seed)
        answers = [
            scripted_label(
                truth, labels, kind_of_worker(w, mix, seed), f"scripted-{w + 1}", f"sentence {place}", mix, seed
            )
            for w in workers
        ]
        distributions.append(label_distribution(answers, labels))
    votes = winning_votes(distributions)
    print(f"{'':24}scripted  DynaSent Round 1 train")
    for size in (3, 4, 5):
        print(f"winning vote {size} of 5     {votes.sizes[size] / SENTENCES:8.3f}  {PUBLISHED[size]:8.3f}")
    print(f"no majority             {votes.no_majority / SENTENCES:8.3f}  {PUBLISHED['none']:8.3f}")
    print(f"vote accuracy           {votes.accuracy:8.3f}  {PUBLISHED['accuracy']:8.3f}")
    print("workers:", dict(Counter(kind_of_worker(w, mix, seed) for w in range(mix.workers))))


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 0)
