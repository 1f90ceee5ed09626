"""Measures of texts: lengths, how far an author moved from the prompt, and diversity of vocabulary."""

import random
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import numpy as np
from nltk.tokenize import TweetTokenizer
from rapidfuzz.distance import Levenshtein

_NOTHING = "undefined: there is no value to sum up"
_TOKENIZER = TweetTokenizer(preserve_case=False)


class Summary(NamedTuple):
    """Mean, median and quartiles of so many values; of none they are None, and `reason` says why."""

    values: int
    mean: float | None
    median: float | None
    lower_quartile: float | None
    upper_quartile: float | None
    reason: str | None


class TextLengths(NamedTuple):
    """The lengths of texts in characters (code points) and in tokens."""

    characters: Summary
    tokens: Summary


class VocabularyDiversity(NamedTuple):
    """How many distinct tokens repeated draws hold; `texts` are those long enough to be drawn."""

    texts: int
    distinct: Summary


def summary(values: Iterable[float]) -> Summary:
    """Return mean, median and quartiles, the latter linear between neighbours (Hyndman and Fan 1996, type 7)."""
    known = np.sort(np.array(list(values), dtype=np.float64))
    if not len(known):
        return Summary(0, None, None, None, None, _NOTHING)
    lower, median, upper = np.quantile(known, [0.25, 0.5, 0.75]).tolist()
    return Summary(len(known), float(known.mean()), median, lower, upper, None)


def edit_distance(text: str, other: str) -> float:
    """Return the Levenshtein distance in characters over the longer length: 0 for equal texts, at most 1.

    Source: `dynasent_utils.py` of the DynaSent authors. Two empty texts are equal.
    """
    return Levenshtein.normalized_distance(text, other)


def tweet_tokens(text: str) -> list[str]:
    """Return the lower-cased tokens of NLTK's TweetTokenizer (case is kept in emoticons), as the authors count them."""
    return _TOKENIZER.tokenize(text)  # type: ignore[no-any-return]


def text_lengths(texts: Sequence[str], tokens: Callable[[str], list[str]] = tweet_tokens) -> TextLengths:
    """Summarise lengths; nothing is stripped or folded."""
    return TextLengths(summary(len(text) for text in texts), summary(len(tokens(text)) for text in texts))


def vocabulary_diversity(
    texts: Iterable[str],
    *,
    seed: int,
    texts_drawn: int = 200,
    tokens_drawn: int = 5,
    repetitions: int = 500,
    tokens: Callable[[str], list[str]] = tweet_tokens,
) -> VocabularyDiversity:
    """Count the distinct tokens among `tokens_drawn` of each of `texts_drawn` texts, all drawn without replacement.

    Texts with fewer tokens are left out first; too few remaining texts leave the figure undefined. The order of the
    texts does not matter. Procedure and defaults: `dynasent_utils.py` of the DynaSent authors.
    """
    long_enough = sorted(words for words in map(tokens, texts) if len(words) >= tokens_drawn)
    if len(long_enough) < texts_drawn:
        reason = f"undefined: {len(long_enough)} texts have {tokens_drawn} tokens or more, and {texts_drawn} are drawn"
        return VocabularyDiversity(len(long_enough), Summary(0, None, None, None, None, reason))
    generator = random.Random(seed)
    distinct = [
        len(
            {
                word
                for words in generator.sample(long_enough, texts_drawn)
                for word in generator.sample(words, tokens_drawn)
            }
        )
        for _ in range(repetitions)
    ]
    return VocabularyDiversity(len(long_enough), summary(distinct))
