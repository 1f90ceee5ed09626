"""NLTK's Punkt with words and rules of our own for reviews, and without any downloaded data."""

import re
from functools import cache

from nltk.tokenize.punkt import PunktLanguageVars, PunktParameters, PunktSentenceTokenizer

ABBREVIATIONS = frozenset(
    """
    dr drs mr mrs ms messrs prof rev fr sr jr st ste mt ft gen sgt capt cpt lt maj cmdr gov sen pres supt esq
    vs e.g i.e eg cf al viz approx incl excl misc orig avg est ca ph.d m.d d.d.s d.m.d d.v.m r.n b.a m.a b.s m.s
    j.d m.b.a inc ltd co corp bros assn dept univ bldg apt ave blvd rd hwy pkwy sq
    u.s u.s.a u.k d.c l.a n.y n.y.c s.f a.k.a w.r.t p.s b.b.q b.y.o.b r.s.v.p f.y.i tel ext
    jan feb apr aug sept oct nov tbsp tsp
    """.split()
)
"""Words whose period ends no sentence, unless one of `SENTENCE_STARTERS` follows with a capital letter.

Left out are the abbreviations that are common words of reviews as well: no, sat, sun, mar, dec, rep, gal, max, temp.
"""

CLOSING_ABBREVIATIONS = frozenset(
    "a.m p.m etc hr hrs min mins sec secs oz lb lbs appt appts mon tues thurs fri".split()
)
"""Abbreviations that no name follows: any capital letter after them starts a sentence. Digits may precede: 9:30a.m."""

_ANY_ABBREVIATION = ABBREVIATIONS | CLOSING_ABBREVIATIONS

SENTENCE_STARTERS = frozenset(
    """
    about after again all also although always an and another any anyway anyone are as ask at avoid be because
    before best both but by came can could definitely did do does don't even every everyone everything first for from
    get give go great had has have he her here highly his how however i i'd i'll i'm i've if in instead is it it's its
    just last let like looking love loved make maybe more most my never next no not nothing now of oh ok okay on once
    one only or other our overall people perfect please really save service she since so some someone soon stay still
    super thank thanks that that's the their them then there there's these they they're this those though to too truly
    try unfortunately until very was we we'll we're we've well went were what when where which while who why will with
    without worst would yes yet you you'll you're your
    """.split()
)
"""Words that are no names: with a capital letter after an abbreviation or initial they start a sentence."""

_SEEN_IN_LOWER_CASE = 1 << 5
# Punkt's orthographic context "inside a sentence, lower case", the number that its data files hold.

_NUMBERED = frozenset({"no", "nos", "p", "pp", "vol", "fig", "rm"})
# Before a number an abbreviation ("room no. 5"), elsewhere a word ("Would I go back? No.").

_PLAIN_CONTEXT = re.compile(r"(?P<word>[^\W\d_]{2,}|I)(?P<end>[.?!])[?!]*\s+[^\W\d_]")
_ELLIPSIS_CONTEXT = re.compile(r".*(?:\.\.|…)\s+(?P<next>\S)", re.DOTALL)
_CLOSING_WORD = "|".join(re.escape(word) for word in sorted(CLOSING_ABBREVIATIONS))
_CLOSING_CONTEXT = re.compile(rf"\(?(?:[\d:.,-]*\d)?(?:{_CLOSING_WORD})\.\s+(?P<next>[^\W\d_])", re.IGNORECASE)


class _ReviewLanguage(PunktLanguageVars):  # type: ignore[misc]
    """Phones write three periods as one character."""

    sent_end_chars = (".", "?", "!", "…")


class _ReviewPunkt(PunktSentenceTokenizer):  # type: ignore[misc]
    """Punkt with the rules that its published English data would otherwise have had to learn."""

    def text_contains_sentbreak(self, text: str) -> bool:
        """Decide for one possible end: the word before it, the mark, and the word after it."""
        plain = _PLAIN_CONTEXT.match(text)
        # What Punkt would say too, without its tokens: three quarters of all possible ends are of this kind.
        if plain and (plain["end"] != "." or plain["word"].lower() not in _ANY_ABBREVIATION):
            return True
        ellipsis = _ELLIPSIS_CONTEXT.match(text)
        if ellipsis:
            return ellipsis["next"].isupper()
        closing = _CLOSING_CONTEXT.match(text)
        if closing:
            return closing["next"].isupper()
        return bool(super().text_contains_sentbreak(text))


@cache
def punkt() -> _ReviewPunkt:
    """Return the one splitter of this process."""
    parameters = PunktParameters()
    parameters.abbrev_types.update(_ANY_ABBREVIATION)
    parameters.collocations.update((word, "##number##") for word in _NUMBERED)
    for word in SENTENCE_STARTERS:
        parameters.add_ortho_context(word, _SEEN_IN_LOWER_CASE)
    return _ReviewPunkt(parameters, lang_vars=_ReviewLanguage())
