"""One transaction at a time decides in a round who may answer what, also when several processes serve it."""

from sqlalchemy import bindparam, func, select
from sqlmodel import Session

# PostgreSQL's advisory locks are told apart by two numbers; this one says that the other is a round ("dyna" as bytes).
_OF_A_ROUND = int.from_bytes(b"dyna", "big")
_TAKE_TURN = select(func.pg_advisory_xact_lock(_OF_A_ROUND, bindparam("round")))


def take_turn(session: Session, round_id: int) -> None:
    """Wait until no other transaction has its turn in a round, and keep it until this one ends.

    Whoever hands out, takes in, removes or closes takes it before any other lock, so that nobody waits in a circle. On
    SQLite every write transaction is alone already.
    """
    connection = session.connection()
    if connection.dialect.name == "postgresql":
        connection.execute(_TAKE_TURN, {"round": round_id})
