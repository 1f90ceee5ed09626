"""One paragraph in plain English: why the three figures of human performance differ."""

from dynaround.human_performance import HumanPerformance, PerformanceFigure
from dynaround.labels import MAJORITY, RESPONSES


def explanation(performance: HumanPerformance, crowd: str) -> str:
    """Return a paragraph that holds whatever the figures are; `crowd` names who responded, such as "people".

    Figures are compared as printed, to four digits. A crowd that is none, scripted or replayed, is to be called that.
    """
    if performance.with_gold.scores is None:
        examples = _counted(performance.items, "example")
        return f"There is no F1 of {crowd}: of {examples}, none has a gold label that counts."
    return " ".join(
        [
            f"The macro F1 of {crowd} is given in three ways.",
            *_filtered(performance.filtered),
            *_with_gold(performance),
            *_leave_one_out(performance),
        ]
    )


def _filtered(figure: PerformanceFigure) -> list[str]:
    if figure.scores is None:
        return ["(a) On the filtered splits, dev and test, there is none: they hold no example that counts."]
    vote = figure.smallest_vote or 0
    return [
        f"(a) On the filtered splits, {_counted(figure.items, 'example')} of dev and test, it is {_shown(figure)}.",
        "This is how such an estimate was published (Potts et al. 2021), after a filter that asks at least 4 of "
        f"{RESPONSES} responses to agree. Here at least {vote} of {RESPONSES} agree with the gold label of each "
        f"example, which alone guarantees a vote accuracy of at least {vote / RESPONSES:.2f}; it is "
        f"{figure.vote_accuracy:.4f}.",
    ]


def _with_gold(performance: HumanPerformance) -> list[str]:
    figure, filtered = performance.with_gold, performance.filtered
    all_count = figure.items == performance.items - performance.without_gold
    what = "with a gold label" if all_count else "with a gold label that the model has"
    opening = f"(b) On all {_counted(figure.items, 'example')} {what} it is {_shown(figure)}"
    more = figure.items - filtered.items
    if filtered.scores is None:
        return [opening + "."]
    if not more:
        return [opening + ", as in (a): what a filter left out is not among these examples."]
    rest = (figure.agreeing - filtered.agreeing) / (figure.responses - filtered.responses)
    return [
        f"{opening}, {_compared(figure, filtered)} (a). The vote accuracy is {figure.vote_accuracy:.4f} there; it is "
        f"{rest:.4f} on the {_counted(more, 'example')} that the filtered splits do not hold."
    ]


def _leave_one_out(performance: HumanPerformance) -> list[str]:
    figure, with_gold = performance.leave_one_out, performance.with_gold
    opening = (
        "In (b) a response also counts in the majority that it is compared with. "
        f"(c) takes that out and compares it with the label that at least {MAJORITY} of the other four have."
    )
    if not figure.unusable:
        return [opening, f"Here the other four always have one, and (c) is {_shown(figure)}, {_as_b(performance)}."]
    more = ""
    if performance.unusable_of_all > figure.unusable:
        more = f"; of all examples together {performance.unusable_of_all:,} of {performance.responses:,}"
    sentences = [
        opening,
        f"{figure.unusable:,} of {figure.responses:,} responses are unusable, because the other four have no such label"
        f"{more}.",
        f"On the rest (c) is {_shown(figure)}, {_as_b(performance)}.",
    ]
    if with_gold.smallest_vote == MAJORITY:
        sentences.append(
            f"Where {MAJORITY} of {RESPONSES} made the gold label, these {MAJORITY} are unusable and those that differ "
            "stay: (c) is strict where (b) is lenient."
        )
    return sentences


def _as_b(performance: HumanPerformance) -> str:
    return f"{_compared(performance.leave_one_out, performance.with_gold)} (b)"


def _compared(figure: PerformanceFigure, other: PerformanceFigure) -> str:
    here, there = round(_f1(figure), 4), round(_f1(other), 4)
    if here == there:
        return "the same as"
    return "lower than" if here < there else "higher than"


def _shown(figure: PerformanceFigure) -> str:
    macro = figure.intervals.macro if figure.intervals else None
    if macro is None:
        return f"{_f1(figure):.4f} (without an interval: all examples are of one cluster)"
    return f"{_f1(figure):.4f} ({macro.confidence * 100:g} % interval {macro.low:.4f} to {macro.high:.4f})"


def _f1(figure: PerformanceFigure) -> float:
    return figure.scores.macro_f1 if figure.scores else 0.0


def _counted(number: int, what: str) -> str:
    return f"{number:,} {what}" if number == 1 else f"{number:,} {what}s"
