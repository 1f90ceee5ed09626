"""Stored checks whether a round is solved: as plain data for pages and reports, as lines for the terminal."""

from collections.abc import Iterator, Mapping
from typing import Any

from sqlmodel import Session, col, select

from dynaround.solved import answer_lines
from dynaround.tables import Round, SolvedCheck
from rounds.releasing import responses_from


def stored_check(check: SolvedCheck) -> dict[str, Any]:
    """Return a stored check as plain data, its number first."""
    return {"number": check.number, **check.figures}


def solved_checks(session: Session, round_: Round) -> list[dict[str, Any]]:
    """Return all checks of a round as plain data, the newest first."""
    rows = session.exec(
        select(SolvedCheck).where(SolvedCheck.round_id == round_.id).order_by(col(SolvedCheck.number).desc())
    )
    return [{**stored_check(row), "ordinal": ordinal(row.number), "at": row.at} for row in rows]


def check_lines(check: Mapping[str, Any]) -> Iterator[str]:
    """Yield a check as lines of text, who answered first where that was not people."""
    who = check["responses_from"]
    if who != responses_from(["person"]):
        yield f"note: the responses are from {who}: this answer says nothing about people"
    yield f"{ordinal(check['number'])} check of round {check['round']}: {check['model']} beside {who}"
    yield from check["notes"]
    yield from answer_lines(check)


def ordinal(number: int) -> str:
    """Return first, second, third, then 4th, 5th and so on."""
    words = {1: "first", 2: "second", 3: "third"}
    if number in words:
        return words[number]
    ending = "th" if number % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{ending}"
