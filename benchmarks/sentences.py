"""How fast reviews are read and split into sentences, beside a plain `re.split` on the same file in the same run.

Run: python -m benchmarks.sentences [SPEC]; without SPEC the Yelp file of the shared data folder is read.
"""

import argparse
import re
import resource
import sys
import time
from collections.abc import Callable
from pathlib import Path

from dynaround.corpus.reviews import read_rated_sentences, read_reviews

DEFAULT = f"csv:{Path(__file__).resolve().parents[2] / 'shared/data/reviews/yelp_1_and_5_star.csv'}"
ROUNDS = 5
"""Runs of each; the best counts, for other work on the machine only ever slows a run down."""

_BASELINE = re.compile(r"(?<=[.!?])\s+|\n+")


def ours(spec: str) -> int:
    """Return the number of sentences that the harvest would see."""
    return sum(1 for _ in read_rated_sentences(spec, on_reject=lambda rejected: None))


def baseline(spec: str) -> int:
    """Return the number of pieces between end marks and blanks; "Dr. Ito" makes two."""
    reviews = read_reviews(spec, on_reject=lambda rejected: None)
    return sum(len(_BASELINE.split(review.text)) for review in reviews)


def reading(spec: str) -> int:
    """Return the number of reviews, nothing split."""
    return sum(1 for _ in read_reviews(spec, on_reject=lambda rejected: None))


def best(count: Callable[[str], int], spec: str) -> tuple[int, float]:
    """Return what was counted and the seconds of processor time of the fastest run."""
    seconds = []
    for _ in range(ROUNDS):
        start = time.process_time()
        counted = count(spec)
        seconds.append(time.process_time() - start)
    return counted, min(seconds)


def peak_megabytes() -> float:
    """Return the most memory this process has held so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main() -> None:
    """Print sentences a second, the ratio to the baseline, and the peak memory of this process."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("spec", nargs="?", default=DEFAULT, metavar="SPEC")
    spec = parser.parse_args().spec
    memory_before = peak_megabytes()
    sentences, ours_seconds = best(ours, spec)
    pieces, baseline_seconds = best(baseline, spec)
    reviews, reading_seconds = best(reading, spec)
    print(f"{spec}: {reviews:,} reviews, one core, Python {sys.version.split()[0]}, best of {ROUNDS} runs")
    print(f"read and split:          {sentences:7,} sentences  {sentences / ours_seconds:9,.0f} /s")
    print(f"read and plain re.split: {pieces:7,} pieces     {pieces / baseline_seconds:9,.0f} /s")
    print(f"read alone:              {reviews:7,} reviews    {reviews / reading_seconds:9,.0f} /s")
    print(f"time as a multiple of the plain split: {ours_seconds / baseline_seconds:.2f}")
    print(f"peak memory: {peak_megabytes():.0f} MB, {memory_before:.0f} MB of it before the first line was read")


if __name__ == "__main__":
    main()
