"""Who takes part: workers, accounts and visits, invitations, consent, quizzes, and bars."""

from datetime import datetime
from typing import Any

from sqlalchemy import CheckConstraint, Index, UniqueConstraint
from sqlmodel import Field, SQLModel

from dynaround.tables.columns import json_column, moment_column

WORKER, LAUNCHER, MAINTAINER = "worker", "launcher", "maintainer"
"""The roles of an account."""


def public_id(worker_id: int) -> str:
    """Return the id of a worker that exports and pages may show."""
    return f"w{worker_id}"


class Worker(SQLModel, table=True):
    """Someone who labels or writes. The platform id never leaves this table; exports say `w` and the row's number."""

    __tablename__ = "worker"
    __table_args__ = (CheckConstraint("kind IN ('person', 'scripted', 'replayed')", name="kind"),)
    id: int | None = Field(default=None, primary_key=True)
    platform_id: str = Field(unique=True)
    kind: str

    @property
    def public_id(self) -> str:
        """The id that exports and pages may show."""
        assert self.id is not None
        return public_id(self.id)


class Account(SQLModel, table=True):
    """Someone who may log in. A worker's account belongs to one row of `Worker`; the other roles have none.

    `name_key` is the name folded and case-folded, so that no two look alike. Without a password only an invitation
    opens a visit.
    """

    __tablename__ = "account"
    __table_args__ = (
        CheckConstraint("role IN ('worker', 'launcher', 'maintainer')", name="role"),
        CheckConstraint("(role = 'worker') = (worker_id IS NOT NULL)", name="worker"),
    )
    id: int | None = Field(default=None, primary_key=True)
    name: str
    name_key: str = Field(unique=True)
    password_hash: str | None = None
    role: str
    worker_id: int | None = Field(default=None, foreign_key="worker.id", unique=True)
    made_at: datetime = Field(sa_column=moment_column())


class Visit(SQLModel, table=True):
    """One log-in. The cookie holds a random token, this table only its SHA-256; ended for good by logging out."""

    __tablename__ = "visit"
    token_hash: str = Field(primary_key=True, max_length=64)
    account_id: int = Field(foreign_key="account.id", index=True)
    began_at: datetime = Field(sa_column=moment_column())
    expires_at: datetime = Field(sa_column=moment_column())
    ended_at: datetime | None = Field(default=None, sa_column=moment_column(nullable=True))


class Invitation(SQLModel, table=True):
    """A signed address that lets one platform id in, once, until it expires."""

    __tablename__ = "invitation"
    id: int | None = Field(default=None, primary_key=True)
    platform_id: str
    made_at: datetime = Field(sa_column=moment_column())
    expires_at: datetime = Field(sa_column=moment_column())
    used_at: datetime | None = Field(default=None, sa_column=moment_column(nullable=True))


class LogInAttempt(SQLModel, table=True):
    """One try to log in, under a name (as its key) and from an address; counted to slow down guessing."""

    __tablename__ = "log_in_attempt"
    __table_args__ = (Index("ix_log_in_attempt_name_key_at", "name_key", "at"), Index("ix_log_in_attempt_at", "at"))
    id: int | None = Field(default=None, primary_key=True)
    name_key: str
    address: str
    succeeded: bool
    at: datetime = Field(sa_column=moment_column())


class Consent(SQLModel, table=True):
    """A worker agreed to one version of the consent text."""

    __tablename__ = "consent"
    worker_id: int = Field(foreign_key="worker.id", primary_key=True)
    version: str = Field(primary_key=True)
    at: datetime = Field(sa_column=moment_column())


class QuizAttempt(SQLModel, table=True):
    """One try at the comprehension questions of a kind of work, graded on the server."""

    __tablename__ = "quiz_attempt"
    __table_args__ = (UniqueConstraint("worker_id", "quiz", "number"),)
    id: int | None = Field(default=None, primary_key=True)
    worker_id: int = Field(foreign_key="worker.id")
    quiz: str
    number: int
    answers: dict[str, Any] = Field(sa_column=json_column())
    right: int
    questions: int
    passed: bool
    at: datetime = Field(sa_column=moment_column())


class Bar(SQLModel, table=True):
    """A worker is kept from a kind of work for a while, and why; the worker may object, the launcher may lift it."""

    __tablename__ = "bar"
    id: int | None = Field(default=None, primary_key=True)
    worker_id: int = Field(foreign_key="worker.id", index=True)
    work: str
    reason: str
    evidence: dict[str, Any] = Field(sa_column=json_column())
    began_at: datetime = Field(sa_column=moment_column())
    until: datetime = Field(sa_column=moment_column())
    objection: str | None = None
    objected_at: datetime | None = Field(default=None, sa_column=moment_column(nullable=True))
    lifted_at: datetime | None = Field(default=None, sa_column=moment_column(nullable=True))
    lifted_by: str | None = None
