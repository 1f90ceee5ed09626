"""Who did what, when: the one way in which an event is appended."""

from datetime import datetime

from sqlmodel import Session

from dynaround.tables import Event


def record(session: Session, round_id: int | None, who: str, what: str, at: datetime, **detail: object) -> None:
    """Append an event with its detail, which must be plain data."""
    session.add(Event(round_id=round_id, who=who, what=what, detail=detail, at=at))
