"""What the comparison of the arms says of the examples as texts: lengths, vocabulary, and how far from a prompt."""

from collections.abc import Sequence

from dynaround.tables import PROMPT_ARM
from dynaround.text_measures import Summary, text_lengths, vocabulary_diversity
from rounds.arms import ARMS, ArmExample
from rounds.report_authoring import Edited, distance_parts, prompts_table
from rounds.report_parts import Cell, Section
from rounds.report_undefined import table_with_reasons

STARTED_FROM = "their prompts"
"""The name of the sentences that the authors of the Prompt arm started from."""


def texts_of_arms(examples: Sequence[ArmExample], seed: int) -> Section:
    """Return lengths and vocabulary of the examples arm by arm and of their prompts, and how far they moved."""
    texts = {arm: [example.text for example in examples if example.arm == arm] for arm in ARMS.values()}
    edited = [Edited(example.prompt, example.text) for example in examples if example.prompt is not None]
    if edited:
        texts[STARTED_FROM] = [pair.prompt for pair in edited]
    lengths: list[tuple[Cell, ...]] = []
    drawn: list[tuple[Cell, ...]] = []
    for name, mine in texts.items():
        for measure, found in text_lengths(mine)._asdict().items():
            lengths.append((name, measure, len(mine), *_spread(found)))
        diversity = vocabulary_diversity(mine, seed=seed)
        drawn.append((name, diversity.texts, *_spread(diversity.distinct)))
    spread = ("mean", "lower quartile", "median", "upper quartile")
    tables = [
        table_with_reasons(
            "arm-lengths",
            "Lengths of the examples",
            ("arm", "measure", "texts", *spread),
            lengths,
            note="Tokens are those of NLTK's TweetTokenizer, lower-cased.",
            digits=2,
        ),
        table_with_reasons(
            "arm-vocabulary",
            "Distinct tokens of the examples",
            ("arm", "texts of 5 tokens or more", *spread),
            drawn,
            note="The number of distinct tokens among 5 tokens of each of 200 texts, over 500 draws.",
            digits=2,
        ),
    ]
    if not edited:
        return Section("texts", "Texts", tables=tuple(tables))
    distances, histogram = distance_parts({ARMS[PROMPT_ARM]: edited})
    tables += [prompts_table({ARMS[PROMPT_ARM]: edited}, "arm"), distances]
    return Section("texts", "Texts", tables=tuple(tables), plots=(histogram,))


def _spread(found: Summary) -> tuple[Cell, ...]:
    return found.mean, found.lower_quartile, found.median, found.upper_quartile, found.reason
