"""Authors against the live model: sessions with their arm, the example in the making, attempts and decisions."""

from datetime import datetime
from typing import Any

from sqlalchemy import CheckConstraint, ForeignKeyConstraint, Index, UniqueConstraint, text
from sqlmodel import Field, SQLModel

from dynaround.tables.columns import json_column, moment_column

PROMPT_ARM, NO_PROMPT_ARM = "prompt", "no prompt"
"""Whether an author's session starts from natural sentences; it is drawn once a session."""

CONFIRMED, TAKEN_BACK = "confirmed", "taken back"
"""What an author says of an attempt that fooled the model."""

COMPLETED, LEFT, DUPLICATE = "completed", "left", "duplicate"
"""How the making of an example ended: with an example, with none, or beaten by another author with the same text."""


class AuthorSession(SQLModel, table=True):
    """One sitting of an author in a round; the arm stays for the session. A person has one open session a round."""

    __tablename__ = "author_session"
    __table_args__ = (
        CheckConstraint("arm IN ('prompt', 'no prompt')", name="arm"),
        Index(
            "uq_author_session_open",
            "round_id",
            "worker_id",
            unique=True,
            sqlite_where=text("ended_at IS NULL"),
            postgresql_where=text("ended_at IS NULL"),
        ),
    )
    id: int | None = Field(default=None, primary_key=True)
    round_id: int = Field(foreign_key="round.id")
    worker_id: int = Field(foreign_key="worker.id")
    arm: str
    started_at: datetime = Field(sa_column=moment_column())
    last_at: datetime = Field(sa_column=moment_column())
    ended_at: datetime | None = Field(default=None, sa_column=moment_column(nullable=True))


class Writing(SQLModel, table=True):
    """One example in the making: its target label, its prompt, its draft, and how it ended."""

    __tablename__ = "writing"
    __table_args__ = (
        UniqueConstraint("session_id", "number"),
        ForeignKeyConstraint(["task", "target_label"], ["task_label.task", "task_label.label"]),
        CheckConstraint("outcome IN ('completed', 'left', 'duplicate')", name="outcome"),
        CheckConstraint("(outcome IS NULL) = (ended_at IS NULL)", name="ended"),
        Index(
            "uq_writing_open",
            "session_id",
            unique=True,
            sqlite_where=text("ended_at IS NULL"),
            postgresql_where=text("ended_at IS NULL"),
        ),
    )
    id: int | None = Field(default=None, primary_key=True)
    session_id: int = Field(foreign_key="author_session.id")
    worker_id: int = Field(foreign_key="worker.id", index=True)
    task: str
    number: int
    target_label: str
    prompt_id: int | None = Field(default=None, foreign_key="prompt.id")
    draft: str = ""
    started_at: datetime = Field(sa_column=moment_column())
    ended_at: datetime | None = Field(default=None, sa_column=moment_column(nullable=True))
    outcome: str | None = None


class PromptShowing(SQLModel, table=True):
    """One time that a prompt was put in front of an author; `showing` counts from 1 up to the plan's limit."""

    __tablename__ = "prompt_showing"
    __table_args__ = (UniqueConstraint("prompt_id", "worker_id"),)
    prompt_id: int = Field(foreign_key="prompt.id", primary_key=True)
    showing: int = Field(primary_key=True)
    worker_id: int = Field(foreign_key="worker.id")
    writing_id: int = Field(foreign_key="writing.id", index=True)
    at: datetime = Field(sa_column=moment_column())


class Submission(SQLModel, table=True):
    """One press of Submit, by the token of its form: claimed with a lease before the model runs.

    Without `attempt_id` the holder of the lease is at work, has died, or got no answer of the model.
    """

    __tablename__ = "submission"
    token: str = Field(primary_key=True, max_length=64)
    writing_id: int = Field(foreign_key="writing.id", index=True)
    worker_id: int = Field(foreign_key="worker.id")
    claimed_at: datetime = Field(sa_column=moment_column())
    leased_until: datetime = Field(sa_column=moment_column())
    attempt_id: int | None = Field(default=None, foreign_key="attempt.id", unique=True)


class Attempt(SQLModel, table=True):
    """One text an author submitted, with the prediction made for it; inserted complete and never changed.

    `latency` is in seconds, from the call of the model to its answer. `pasted` (characters), `keystrokes` and `seconds`
    of writing come from the browser, where script was on: advice, never proof.
    """

    __tablename__ = "attempt"
    __table_args__ = (
        UniqueConstraint("writing_id", "number"),
        UniqueConstraint("id", "task"),
        ForeignKeyConstraint(["round_id", "task"], ["round.id", "round.task"]),
        ForeignKeyConstraint(["task", "prediction"], ["task_label.task", "task_label.label"]),
        ForeignKeyConstraint(["task", "target_label"], ["task_label.task", "task_label.label"]),
        CheckConstraint("number >= 1", name="number"),
        CheckConstraint("(arm = 'prompt') = (prompt_id IS NOT NULL)", name="prompt"),
        Index("ix_attempt_worker_id_at", "worker_id", "at"),
        Index("ix_attempt_round_id_worker_id", "round_id", "worker_id"),
    )
    id: int | None = Field(default=None, primary_key=True)
    writing_id: int = Field(foreign_key="writing.id")
    round_id: int
    worker_id: int = Field(foreign_key="worker.id")
    task: str
    number: int
    text: str
    text_key: str = Field(max_length=64)
    target_label: str
    arm: str
    prompt_id: int | None = Field(default=None, foreign_key="prompt.id")
    form: dict[str, Any] | None = Field(default=None, sa_column=json_column(nullable=True))
    prediction: str
    probs: dict[str, float] = Field(sa_column=json_column())
    truncated: bool
    model_hash: str
    precision: str
    back_end: str
    latency: float
    pasted: int | None = None
    keystrokes: int | None = None
    seconds: float | None = None
    at: datetime = Field(sa_column=moment_column())

    @property
    def fooled(self) -> bool:
        """Whether the model's label differs from the target label: a claim until people have validated it."""
        return self.prediction != self.target_label


class AttemptDecision(SQLModel, table=True):
    """What its author said of an attempt that fooled the model; said once."""

    __tablename__ = "attempt_decision"
    __table_args__ = (CheckConstraint("decision IN ('confirmed', 'taken back')", name="decision"),)
    attempt_id: int = Field(foreign_key="attempt.id", primary_key=True)
    decision: str
    at: datetime = Field(sa_column=moment_column())


class AuthoredExample(SQLModel, table=True):
    """Which attempt an example of an author is."""

    __tablename__ = "authored_example"
    example_id: int = Field(foreign_key="example.id", primary_key=True)
    attempt_id: int = Field(foreign_key="attempt.id", unique=True)
