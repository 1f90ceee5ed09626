"""Where the sentences of a review stand: NLTK's Punkt over each line, with our own words and no downloaded data."""

import re

from dynaround.task import Span

WINDOW = 20_000
"""Characters given to Punkt at once; reviews have at most about 5,000 on Yelp. Its expressions have a time limit (NLTK
3.10: five seconds for all matches on one text), which a line of a megabyte would run into on a slow machine."""

_LINE = re.compile(r"[^\n\r\v\f\x1c-\x1e\x85\u2028\u2029]+")
# Every line break that str.splitlines knows.

_ANY_END = re.compile(r"[.?!…][^\w.]")
# A superset of Punkt's possible ends: a line without one is one sentence.

_LEAD_IN = re.compile(r"\s*(?:[(#]?\d{1,2}\.|p\.?\s?s\.)\s*", re.IGNORECASE)
# "1." or "P.S." is no sentence but the beginning of one.
_LETTER_OR_DIGIT = re.compile(r"\w")


def sentence_spans(text: str) -> list[Span]:
    """Return where the sentences of `text` stand, in order: code points, end exclusive, no outer white space.

    The spans are disjoint and hold every character that is not white space; a repeated sentence keeps its own place.
    Every line break ends a sentence, so headings and lists come apart; the published Round 1, split by NLTK's
    `sent_tokenize`, has line breaks inside about one sentence in a hundred instead. A mark without white space after
    it ends nothing ("Wow...just wow"); marks and smileys that stand alone belong to the sentence before them.
    The algorithm is Punkt (Kiss and Strunk 2006, Computational Linguistics 32); no file is opened.
    """
    spans = []
    for match in _LINE.finditer(text):
        line = match.group()
        starts = _sentence_starts(line)
        for start, end in zip(starts, [*starts[1:], len(line)], strict=True):
            piece = line[start:end]
            sentence = piece.strip()
            if sentence:
                begin = match.start() + start + len(piece) - len(piece.lstrip())
                spans.append(Span(begin, begin + len(sentence)))
    return spans


def _sentence_starts(line: str) -> list[int]:
    """Cut points alone are taken from Punkt, so that no character can fall between two sentences."""
    if not _ANY_END.search(line):
        return [0]
    cuts = _punkt_starts(line)
    starts = [0]
    for start, end in zip(cuts, [*cuts[1:], len(line)], strict=True):
        only_marks = not _LETTER_OR_DIGIT.search(line, start, end)
        if start and not only_marks and not _LEAD_IN.fullmatch(line, starts[-1], start):
            starts.append(start)
    return starts


def _punkt_starts(line: str) -> list[int]:
    """Punkt's sentence starts; a long line goes in by windows, each from the last start that the one before found.

    A window without a further start is cut at its end: what runs over 20,000 characters is no sentence anyway.
    """
    # NLTK takes about a second to import, and most commands and servers split nothing.
    from dynaround.corpus.review_punkt import punkt

    starts: list[int] = []
    begin = 0
    while True:
        end = begin + WINDOW
        if end < len(line):
            # Half a word could look like one that starts sentences.
            blank = line.rfind(" ", begin + 1, end)
            end = blank if blank > 0 else end
        found = [begin + start for start, _ in punkt().span_tokenize(line[begin:end])]
        if end >= len(line):
            return starts + found
        starts += found[:-1] or [begin]
        begin = found[-1] if len(found) > 1 else end
