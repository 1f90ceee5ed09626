"""Log-ins and visits: guessing is slowed down, a visit is known by a token of which only the hash is stored."""

import hashlib
import ipaddress
import secrets
from datetime import datetime, timedelta
from typing import NamedTuple

from sqlalchemy import Engine, bindparam
from sqlalchemy import select as select_columns
from sqlmodel import Session, col, delete, func, select, update

from dynaround.database import columns, reading, writing
from dynaround.errors import NotAllowed
from dynaround.tables import Account, LogInAttempt, Visit
from workers.accounts import hashed_password, is_name, name_key, password_fits, rehashed, set_name

FAILURES_OF_NAME, FAILURES_OF_ADDRESS = 10, 50
"""Failed log-ins within `WINDOW` after which no further one is looked at."""
WINDOW = timedelta(minutes=15)
KEPT = timedelta(days=1)
"""How long attempts to log in are kept: names and addresses of people, needed for the limits alone."""

# One sentence for a wrong name and a wrong password: it tells nobody which names exist.
_WRONG = "name and password do not fit; try again"
_TOO_MANY = f"too many failed attempts to log in; wait {WINDOW.seconds // 60} minutes, then try again"


class Visitor(NamedTuple):
    """The account behind a request, as plain values; `worker_id` is None for all roles but a worker's."""

    account_id: int
    name: str
    role: str
    worker_id: int | None
    has_password: bool


class Client(NamedTuple):
    """From where and when somebody asks, and how long a visit lasts that is opened for them."""

    address: str
    now: datetime
    lifetime: timedelta


_VISITOR = (
    select_columns(
        col(Account.id),
        col(Account.name),
        col(Account.role),
        col(Account.worker_id),
        col(Account.password_hash).is_not(None),
    )
    .join(Visit, col(Visit.account_id) == col(Account.id))
    .where(
        col(Visit.token_hash) == bindparam("token_hash"),
        col(Visit.ended_at).is_(None),
        col(Visit.expires_at) > bindparam("now"),
    )
)


def open_visit(session: Session, account: Account, now: datetime, lifetime: timedelta) -> str:
    """Begin a visit and return its token, 256 random bits that are stored nowhere."""
    assert account.id is not None
    token = secrets.token_urlsafe(32)
    session.add(Visit(token_hash=_hash(token), account_id=account.id, began_at=now, expires_at=now + lifetime))
    return token


def find_visitor(session: Session, token: str, now: datetime) -> Visitor | None:
    """Return who visits with a token; None where the visit has expired, was ended or never was."""
    found = columns(session, _VISITOR, token_hash=_hash(token), now=now).one_or_none()
    return None if found is None else Visitor._make(found)


def end_visit(session: Session, token: str, now: datetime) -> None:
    """End one visit, if it has not ended."""
    session.exec(
        update(Visit).where(col(Visit.token_hash) == _hash(token), col(Visit.ended_at).is_(None)).values(ended_at=now)
    )


def end_visits(session: Session, account_id: int, now: datetime) -> None:
    """End all visits of an account."""
    session.exec(
        update(Visit).where(col(Visit.account_id) == account_id, col(Visit.ended_at).is_(None)).values(ended_at=now)
    )


def count_visits(session: Session, account_id: int, now: datetime) -> int:
    """Return how many visits of an account are open."""
    wanted = (Visit.account_id == account_id, col(Visit.ended_at).is_(None), Visit.expires_at > now)
    return session.exec(select(func.count()).select_from(Visit).where(*wanted)).one()


def log_in(engine: Engine, name: str, password: str, client: Client) -> str:
    """Open a visit for whoever knows name and password, and return its token.

    Raises NotAllowed where they do not fit or too many attempts failed before; both tell nothing of the name.
    """
    proven = _prove(engine, name, password, client)
    with writing(engine) as session:
        account = _unchanged(session, proven.account_id, proven.old_hash)
        account.password_hash = proven.new_hash
        session.add(account)
        _succeed(session, proven.attempt_id)
        return open_visit(session, account, client.now, client.lifetime)


def change_password(engine: Engine, visitor: Visitor, name: str, current: str, new: str, client: Client) -> str:
    """Give an account a new password, end all its visits, and return the token of a new one.

    One that has none yet chooses its name too; any other proves the current password. Raises BadInput for a name or
    password that cannot be used, NotAllowed for a wrong current one.
    """
    new_hash = hashed_password(new)
    proven = _prove(engine, visitor.name, current, client) if visitor.has_password else None
    with writing(engine) as session:
        account = _unchanged(session, visitor.account_id, proven.old_hash if proven else None)
        if proven is None:
            set_name(session, account, name)
        else:
            _succeed(session, proven.attempt_id)
        reset_password(session, account, new_hash, client.now)
        return open_visit(session, account, client.now, client.lifetime)


def reset_password(session: Session, account: Account, password_hash: str, now: datetime) -> None:
    """Store a new password and end all visits of the account."""
    assert account.id is not None
    account.password_hash = password_hash
    session.add(account)
    session.flush()
    end_visits(session, account.id, now)


class _Proven(NamedTuple):
    account_id: int
    old_hash: str
    new_hash: str
    attempt_id: int


def _prove(engine: Engine, name: str, password: str, client: Client) -> _Proven:
    # Names that no account can have share one key: a control character or a megabyte is nothing for the database.
    key = name_key(name) if is_name(name_key(name)) else ""
    attempt_id = _claim_attempt(engine, key, _network(client.address), client.now)
    with reading(engine) as session:
        account = session.exec(select(Account).where(Account.name_key == key)).one_or_none()
    # Outside any transaction, since it takes a tenth of a second on purpose.
    if not password_fits(account.password_hash if account else None, password):
        raise NotAllowed(_WRONG)
    assert account is not None and account.id is not None and account.password_hash is not None
    return _Proven(account.id, account.password_hash, rehashed(account.password_hash, password), attempt_id)


def _claim_attempt(engine: Engine, key: str, address: str, now: datetime) -> int:
    # Stored as failed before it is counted: of attempts that come at once, in whatever process, no more than the limit
    # see a count within it.
    with writing(engine) as session:
        session.exec(delete(LogInAttempt).where(col(LogInAttempt.at) < now - KEPT))
        attempt = LogInAttempt(name_key=key, address=address, succeeded=False, at=now)
        session.add(attempt)
        session.flush()
        assert attempt.id is not None
    with reading(engine) as session:
        failed = (col(LogInAttempt.at) > now - WINDOW, col(LogInAttempt.succeeded).is_(False))
        count = select(func.count()).select_from(LogInAttempt)
        of_name = session.exec(count.where(*failed, LogInAttempt.name_key == key)).one()
        of_address = session.exec(count.where(*failed, LogInAttempt.address == address)).one()
    if of_name > FAILURES_OF_NAME or of_address > FAILURES_OF_ADDRESS:
        # No password was looked at, so it is no failure: else whoever goes on trying would be kept out for ever.
        with writing(engine) as session:
            session.exec(delete(LogInAttempt).where(col(LogInAttempt.id) == attempt.id))
        raise NotAllowed(_TOO_MANY)
    return attempt.id


def _unchanged(session: Session, account_id: int, password_hash: str | None) -> Account:
    # Locked and compared: a password that was reset a moment ago opens no visit.
    account = session.exec(select(Account).where(Account.id == account_id).with_for_update()).one()
    if account.password_hash != password_hash:
        raise NotAllowed(_WRONG)
    return account


def _succeed(session: Session, attempt_id: int) -> None:
    session.exec(update(LogInAttempt).where(col(LogInAttempt.id) == attempt_id).values(succeeded=True))


def _network(address: str) -> str:
    # Whoever has one IPv6 address has the 2**64 of its network.
    try:
        found = ipaddress.ip_address(address)
    except ValueError:
        return ""
    return str(found if found.version == 4 else ipaddress.ip_network((found, 64), strict=False))


def _hash(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()
