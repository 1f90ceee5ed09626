"""What a report says of sentences as texts: their lengths, and how many different words they draw on."""

from functools import cache

from dynaround.text_measures import text_lengths, tweet_tokens, vocabulary_diversity
from rounds.report_parts import Cell, Section
from rounds.report_source import ReportSource
from rounds.report_undefined import table_with_reasons


def texts_section(source: ReportSource, seed: int) -> Section:
    """Return the lengths of the sentences, and how many different words they draw on."""
    rows: list[tuple[Cell, ...]] = []
    # Each sentence is wanted four times, by two measures of its split and of its round.
    tokens = cache(tweet_tokens)
    for part in source.rows:
        texts = [example.sentence for example in part.examples]
        lengths = text_lengths(texts, tokens)
        drawn = vocabulary_diversity(texts, seed=seed, tokens=tokens).distinct
        of_each = [(one.mean, one.median) for one in (lengths.characters, lengths.tokens)]
        rows.append((part.name, len(texts), *of_each[0], *of_each[1], drawn.mean, drawn.reason))
    columns = ("split", "sentences", "mean characters", "median characters", "mean tokens", "median tokens")
    table = table_with_reasons(
        "text-lengths",
        "Lengths and vocabulary",
        (*columns, "distinct tokens"),
        rows,
        note="Tokens are those of NLTK's TweetTokenizer, lower-cased. Distinct tokens: the mean number of distinct "
        "ones among 5 tokens of each of 200 sentences that have so many, over 500 draws.",
        digits=2,
    )
    return Section("texts", "Sentences", tables=(table,))
