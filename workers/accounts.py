"""Accounts: names that no two people share, roles, and passwords under a memory-hard hash."""

import re
import unicodedata
from datetime import datetime

from argon2 import PasswordHasher
from argon2.exceptions import VerifyMismatchError
from sqlalchemy.exc import IntegrityError
from sqlmodel import Session, select

from dynaround.errors import BadInput, NotFound
from dynaround.tables import WORKER, Account, Worker
from dynaround.text import folded
from workers.roster import PERSON, enlist

NAME_CHARACTERS = 64
PASSWORD_CHARACTERS = (10, 1000)
"""The least and the greatest length of a password."""

# The package's current defaults (argon2id, 64 MiB): they rise with its releases, and log-ins raise old hashes.
_HASHER = PasswordHasher()
_PUBLIC_ID = re.compile(r"w[0-9]+")


def name_key(name: str) -> str:
    """Return a name folded and case-folded: names that agree in it are the same name."""
    return folded(folded(name).casefold())


def is_name(name: str) -> bool:
    """Whether a folded text can be a name: not empty, not long, and without characters that nobody sees."""
    return 0 < len(name) <= NAME_CHARACTERS and not any(unicodedata.category(c).startswith("C") for c in name)


def hashed_password(password: str) -> str:
    """Return the hash of a new password; raise BadInput where it is too short or too long."""
    least, most = PASSWORD_CHARACTERS
    if not least <= len(password) <= most:
        raise BadInput(f"the password has {len(password)} characters; take {least} to {most}, such as a few words")
    return _HASHER.hash(_typed(password))


def password_fits(password_hash: str | None, password: str) -> bool:
    """Whether a password is the one that was hashed.

    Where there is nothing to compare with the same work is done, so that the time tells nobody which names exist.
    """
    if password_hash is None:
        _HASHER.hash(_typed(password))
        return False
    try:
        return _HASHER.verify(password_hash, _typed(password))
    except VerifyMismatchError:
        return False


def rehashed(password_hash: str, password: str) -> str:
    """Return the hash of a fitting password by today's parameters: the same one where it was made by these."""
    return _HASHER.hash(_typed(password)) if _HASHER.check_needs_rehash(password_hash) else password_hash


def make_account(
    session: Session, name: str, role: str, password_hash: str, now: datetime, platform_id: str | None = None
) -> Account:
    """Add an account; that of a worker belongs to a platform id, which is enlisted where it is new.

    Raises BadInput for a name that cannot be one or is taken, a worker without platform id or with an account, and
    any other role with a platform id.
    """
    if (role == WORKER) != (platform_id is not None):
        raise BadInput(f"an account of a {WORKER} needs a platform id, and no other role has one; check --platform-id")
    worker = None if platform_id is None else enlist(session, platform_id, PERSON)
    if worker is not None and _of_worker(session, worker) is not None:
        raise BadInput(f"worker {worker.public_id} has an account already; invite them again to let them in")
    account = Account(
        name="",
        name_key="",
        password_hash=password_hash,
        role=role,
        worker_id=None if worker is None else worker.id,
        made_at=now,
    )
    set_name(session, account, name)
    return account


def account_of_invited(session: Session, worker: Worker, now: datetime) -> Account:
    """Return the account of a worker; a new one is named by the public id and has no password yet."""
    known = _of_worker(session, worker)
    if known is not None:
        return known
    account = Account(name="", name_key="", role=WORKER, worker_id=worker.id, made_at=now)
    set_name(session, account, worker.public_id)
    return account


def set_name(session: Session, account: Account, name: str) -> None:
    """Store an account under a name; raise BadInput where it cannot be one, is taken, or is another's public id."""
    shown = folded(name)
    if not is_name(shown):
        raise BadInput(
            f"the name cannot be used; take 1 to {NAME_CHARACTERS} characters, without any that cannot be seen"
        )
    own = None if account.worker_id is None else f"w{account.worker_id}"
    if _PUBLIC_ID.fullmatch(name_key(shown)) and name_key(shown) != own:
        raise BadInput("names like w12 are given by the server; choose another")
    try:
        # Whoever stores a name first has it: the constraint decides, also between two processes.
        with session.begin_nested():
            account.name, account.name_key = shown, name_key(shown)
            session.add(account)
    except IntegrityError:
        raise BadInput("this name is taken; choose another") from None


def find_account(session: Session, name: str) -> Account:
    """Return the account of a name; raise NotFound."""
    account = session.exec(select(Account).where(Account.name_key == name_key(name)).with_for_update()).one_or_none()
    if account is None:
        raise NotFound("there is no account of this name; make one with: dynaround workers account NAME --role ROLE")
    return account


def _of_worker(session: Session, worker: Worker) -> Account | None:
    return session.exec(select(Account).where(Account.worker_id == worker.id)).one_or_none()


def _typed(password: str) -> str:
    # The same characters typed on another system may arrive as other code points.
    return unicodedata.normalize("NFKC", password)
