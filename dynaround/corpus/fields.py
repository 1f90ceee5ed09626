"""The fields of reviews and labelled sentences: each value is checked and returned as it stands, or refused."""

import re

from dynaround.corpus.sources import why_unstorable
from dynaround.errors import BadInput

_RATING = re.compile(r"\s*([1-5])(?:\.0*)?\s*", re.ASCII)


def text_of(value: object) -> str:
    """Return the text unchanged; raise BadInput for one that is empty, blank, no string, or cannot be stored."""
    if not isinstance(value, str):
        raise BadInput(f"the text is not a string but {shown(value)}")
    if not value or value.isspace():
        raise BadInput("the text is empty")
    problem = why_unstorable(value)
    if problem:
        raise BadInput(f"the text has {problem}")
    return value


def rating_of(value: object) -> int:
    """Return 4 for 4, 4.0, "4" and "4.0"; raise BadInput for what equals no integer from 1 to 5."""
    if isinstance(value, str):
        match = _RATING.fullmatch(value)
        if match:
            return int(match.group(1))
    elif isinstance(value, int | float) and not isinstance(value, bool) and value in (1, 2, 3, 4, 5):
        return int(value)
    raise BadInput(f"the rating is {shown(value)}, not one of 1 to 5")


def review_id_of(value: object) -> str:
    """Return the id as a string; raise BadInput for one that is empty, no string or integer, or cannot be stored."""
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise BadInput(f"the review_id is {shown(value)}, not a string or an integer")
    review_id = str(value)
    if not review_id.strip():
        raise BadInput("the review_id is empty")
    problem = why_unstorable(review_id)
    if problem:
        raise BadInput(f"the review_id has {problem}")
    return review_id


def shown(value: object) -> str:
    """Show a short value and name a long one."""
    shown = ascii(value)
    return shown if len(shown) <= 40 else f"a {type(value).__name__} of {len(shown)} characters"
