"""What each corpus of a mixture gave, before and after leaks and draws: for the manifest, and as a small table."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from dynaround.leaks import CHANCE_SHARE, Leak

LISTED_LEAKS = 20
"""Leaks of one corpus that stand in the manifest; the file in work/ lists all."""


@dataclass
class CorpusReport:
    """What one corpus gave.

    Of `sentences` read, `usable` give rows. `rows_read` and `labels_read` are before leaks are left out and a part is
    drawn, `rows` and `labels` after; labels are sums of shares. `share` is the weighted part of the whole mixture.
    """

    spec: str
    file: str
    sha256: str
    unit: str = "sentences"
    weight: float = 1.0
    most: int | None = None
    sentences: int = 0
    rejected: int = 0
    dropped_no_majority: int = 0
    dropped_mixed: int = 0
    usable: int = 0
    rows_read: int = 0
    labels_read: dict[str, float] = field(default_factory=dict)
    leaks: int = 0
    first_leaks: list[dict[str, str]] = field(default_factory=list)
    rows: int = 0
    labels: dict[str, float] = field(default_factory=dict)
    share: float = 0.0

    @property
    def beyond_chance(self) -> bool:
        """Whether more of the corpus is judged on elsewhere than short sentences explain."""
        return self.leaks > CHANCE_SHARE * self.usable

    def add_leak(self, leak: Leak) -> None:
        """Count a leak, and keep it if it is among the first."""
        self.leaks += 1
        if len(self.first_leaks) < LISTED_LEAKS:
            self.first_leaks.append({"sentence": leak.sentence, "text": leak.text, "stands_in": leak.stands_in})


def as_counted(masses: Mapping[str, float], labels: Sequence[str]) -> dict[str, float]:
    """Return sums of shares as manifests keep them, every label in its order: an integer where it is one."""
    rounded = {label: round(masses.get(label, 0.0), 6) for label in labels}
    return {label: int(mass) if mass == int(mass) else mass for label, mass in rounded.items()}


def mixture_lines(origin: Mapping[str, Any]) -> Iterator[str]:
    """Yield the mixture in a model's `origin` as lines: rows and labels of each corpus before and after, and shares."""
    labels = list(origin["label_shares"])
    table = [("corpus", "", "rows", *labels, "weight", "share")]
    for corpus in origin["corpora"]:
        name = corpus["spec"] + (" (phrases)" if corpus["unit"] == "phrases" else "")
        read = [_shown(count) for count in (corpus["rows_read"], *corpus["labels_read"].values())]
        used = [_shown(count) for count in (corpus["rows"], *corpus["labels"].values())]
        table.append((name, "read", *read, "", ""))
        table.append(("", "used", *used, f"{corpus['weight']:g}", f"{corpus['share']:.3f}"))
    table.append(("all, weighted", "", "", *(f"{share:.3f}" for share in origin["label_shares"].values()), "", "1.000"))
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    for row in table:
        cells = [
            cell.ljust(width) if place < 2 else cell.rjust(width)
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        yield "  ".join(cells).rstrip()
    yield from _notes(origin)


def _notes(origin: Mapping[str, Any]) -> Iterator[str]:
    for corpus in origin["corpora"]:
        left_out = {
            "without majority": corpus["dropped_no_majority"],
            "mixed": corpus["dropped_mixed"],
            "rejected": corpus["rejected"],
            "judged on elsewhere": corpus["leaks"],
        }
        if any(left_out.values()):
            yield f"{corpus['spec']}: left out " + ", ".join(f"{n} {why}" for why, n in left_out.items() if n)
    if origin["leaks"]["allowed"]:
        yield "marked: a corpus shares more with what is judged on than chance explains (--allow-leaks)"


def _shown(count: float) -> str:
    return f"{count:,.0f}" if count == int(count) else f"{count:,.1f}"
