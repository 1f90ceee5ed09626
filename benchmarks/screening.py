"""What screening by batch finds in a scripted crowd, and what it does to gold: python benchmarks/screening.py
[EXAMPLES SEEDS].

No pages and no database: batches are filled page by page by workers drawn at random, screened by the default rule, and
filled again where a removal freed places. The door (screening items) is left open, so that whoever answers badly is
found by the work alone. Beside each other: the default crowd, as hard as Round 1 of DynaSent; the same people without
those who always pick at random or always the same; and 20 % of such people.
"""

import random
import sys
from collections import Counter, defaultdict
from dataclasses import dataclass, field, replace
from statistics import mean, stdev
from typing import Literal

from dynaround.agreement import WorkerResponse
from dynaround.labels import RESPONSES
from dynaround.screening_measures import CheckRate, ScreeningRule, removing_rule, worker_measures
from dynaround.tasks.sentiment import SENTIMENT
from workers.crowds import KINDS, CrowdMix, kind_of_worker, scripted_label

BATCH, PLACES, SILENT_SHARE = 500, 10, 0.3
RULES: tuple[Literal["leave-one-out", "published", "none"], ...] = ("leave-one-out", "published", "none")
# Shares of gold labels in Round 1 of DynaSent, train: the same answer always, "neutral", is right half of the time.
TRUE_SHARES = (0.25, 0.17, 0.53, 0.05)
LABELS = SENTIMENT.labels


def with_spammers(share: float) -> CrowdMix:
    """Return the default crowd with another share of spamming workers; the other kinds keep their proportions."""
    mix = CrowdMix()
    others = [kind for kind in KINDS if kind != "spamming"]
    rest = sum(getattr(mix, kind) for kind in others)
    return replace(mix, spamming=share, **{kind: getattr(mix, kind) * (1 - share) / rest for kind in others})


def habit(number: int, mix: CrowdMix, seed: int) -> str:
    """Return the kind of a worker; a spamming one by what they do."""
    kind = kind_of_worker(number, mix, seed)
    if kind != "spamming":
        return kind
    answers = {answer(number, f"habit {place}", LABELS[0], mix, seed) for place in range(40)}
    return f"always {answers.pop()}" if len(answers) == 1 else "random"


def answer(number: int, sentence: str, truth: str, mix: CrowdMix, seed: int) -> str:
    """Return what a worker says of a sentence."""
    kind = kind_of_worker(number, mix, seed)
    return scripted_label(truth, LABELS, kind, f"scripted-{number + 1}", sentence, mix, seed)


@dataclass
class Collection:
    """A round in the making: who answered what, who met how many check items, and who is gone."""

    mix: CrowdMix
    seed: int
    rule: ScreeningRule
    examples: int
    truths: list[str] = field(default_factory=list)
    given: dict[int, dict[int, str]] = field(default_factory=lambda: defaultdict(dict))
    seen: dict[int, set[int]] = field(default_factory=lambda: defaultdict(set))
    checks: dict[int, list[bool]] = field(default_factory=lambda: defaultdict(list))
    gone: dict[int, str] = field(default_factory=dict)
    freed: int = 0

    def collect(self) -> None:
        """Fill, screen and fill again, batch by batch."""
        draw = random.Random(self.seed)
        self.truths = draw.choices(LABELS, TRUE_SHARES, k=self.examples)
        for start in range(0, self.examples, BATCH):
            begun = range(min(start + BATCH, self.examples))
            self.fill(begun, draw)
            while self.screen(begun):
                self.fill(begun, draw)

    def fill(self, examples: range, draw: random.Random) -> None:
        """Let workers in random order take pages, fewest responses first, until every example has five."""
        waiting = {e for e in examples if len(self.given[e]) < RESPONSES}
        idle: set[int] = set()
        while waiting:
            worker = draw.choice([n for n in range(self.mix.workers) if n not in self.gone and n not in idle])
            mine = sorted(waiting - self.seen[worker], key=lambda e: (len(self.given[e]), draw.random()))[:PLACES]
            if not mine:
                idle.add(worker)
                continue
            if draw.random() < SILENT_SHARE:
                self.check(worker)
                mine = mine[: PLACES - 1]
            for example in mine:
                said = answer(worker, f"sentence {example}", self.truths[example], self.mix, self.seed)
                self.given[example][worker] = said
                self.seen[worker].add(example)
                if len(self.given[example]) == RESPONSES:
                    waiting.discard(example)

    def check(self, worker: int) -> None:
        """Put a clear sentence with a known answer in front of a worker; the labels in turn."""
        place = len(self.checks[worker])
        truth = LABELS[(place + worker) % len(LABELS)]
        clear = replace(self.mix, ambiguity_limit=0.0)
        self.checks[worker].append(answer(worker, f"check {place}", truth, clear, self.seed) == truth)

    def screen(self, examples: range) -> bool:
        """Remove whoever breaks the rule, all by the same picture; whether anybody went."""
        responses = [WorkerResponse(str(e), str(w), said) for e in examples for w, said in self.given[e].items()]
        checks = {str(worker): CheckRate(len(right), sum(right)) for worker, right in self.checks.items()}
        reasons = {int(m.worker): removing_rule(m, self.rule) for m in worker_measures(responses, checks)}
        removed = {worker: reason for worker, reason in reasons.items() if reason is not None}
        self.gone |= removed
        for example in examples:
            for worker in removed.keys() & self.given[example].keys():
                del self.given[example][worker]
                self.freed += 1
        return bool(removed)

    def gold(self) -> tuple[float, float]:
        """Return accuracy of gold against the truth, and coverage."""
        golds = [SENTIMENT.gold(list(self.given[example].values())).label for example in range(self.examples)]
        right = [gold == truth for gold, truth in zip(golds, self.truths, strict=True) if gold is not None]
        return mean(right), len(right) / self.examples


def shown(values: list[float]) -> str:
    """Return mean and spread."""
    return f"{mean(values):.3f} ({stdev(values) if len(values) > 1 else 0:.3f})"


def tell(mix: CrowdMix, rule: ScreeningRule, examples: int, seeds: int) -> None:
    """Print accuracy and coverage of gold, what was collected again, and who was removed by which rule."""
    accuracy, coverage, again = [], [], []
    found: Counter[str] = Counter()
    there: Counter[str] = Counter()
    for seed in range(seeds):
        made = Collection(mix, seed, rule, examples)
        made.collect()
        for number in range(mix.workers):
            there[habit(number, mix, seed)] += 1
            found[habit(number, mix, seed)] += number in made.gone
        for values, value in zip((accuracy, coverage, again), (*made.gold(), made.freed / examples), strict=True):
            values.append(value)
    print(
        f"  rule {rule.rule}: accuracy {shown(accuracy)}, coverage {shown(coverage)}, freed {shown(again)} an example"
    )
    print("    removed: " + ", ".join(f"{found[kind]} of {there[kind]} {kind}" for kind in sorted(there)))


def main(examples: int, seeds: int) -> None:
    """Print for each crowd and rule what was found."""
    print(f"{examples} examples, batches of {BATCH}, {CrowdMix().workers} workers, {seeds} seeds: mean (spread)")
    for name, share in (("no spammers", 0.0), ("the default crowd", CrowdMix().spamming), ("20 % spammers", 0.2)):
        print(name)
        for rule in RULES:
            tell(with_spammers(share), ScreeningRule(rule=rule), examples, seeds)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:] or ("2000", "5")))
