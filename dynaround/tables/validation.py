"""Validators at work: batches, places and leases, check items, flags, and removals."""

from datetime import datetime
from typing import Any

from sqlalchemy import BigInteger, CheckConstraint, Column, ForeignKeyConstraint, Index, UniqueConstraint, text
from sqlmodel import Field, SQLModel

from dynaround.tables.columns import json_column, moment_column

LATE, REMOVED = "late", "removed"
"""Why a response does not count: its place was taken, or its worker was removed from the round."""

SCREENING, SILENT = "screening", "silent"
"""What a check item is for: before the first page, or on a page among the examples."""

RELEASED_HOLD, LEFT_OUT = "released", "left out"
"""What the launcher decided on an example that was held."""


class Batch(SQLModel, table=True):
    """Examples that are served together; screening looks at it when all its places are answered.

    `filled_at` is set then, and cleared again where a removal re-opens a place.
    """

    __tablename__ = "batch"
    __table_args__ = (UniqueConstraint("round_id", "number"),)
    id: int | None = Field(default=None, primary_key=True)
    round_id: int = Field(foreign_key="round.id")
    number: int
    opened_at: datetime = Field(sa_column=moment_column())
    filled_at: datetime | None = Field(default=None, sa_column=moment_column(nullable=True))
    screened_at: datetime | None = Field(default=None, sa_column=moment_column(nullable=True))


_WAITING, _OPEN = text("batch_id IS NULL"), text("batch_id IS NOT NULL AND filled_at IS NULL")


class BatchExample(SQLModel, table=True):
    """An example in the order of serving: it waits for its one batch, and is filled when five responses count.

    `lot` is its seeded rank; `author_id` is copied from the example, which is never served to its author. A removal
    clears `filled_at` and sets `reopened` until the example is filled again.
    """

    __tablename__ = "batch_example"
    __table_args__ = (
        Index("ix_batch_example_batch_id_filled_at", "batch_id", "filled_at"),
        # The two questions of every next page, whose answers stay small however much is done.
        Index("ix_batch_example_waiting", "round_id", "lot", sqlite_where=_WAITING, postgresql_where=_WAITING),
        Index("ix_batch_example_open", "round_id", sqlite_where=_OPEN, postgresql_where=_OPEN),
    )
    example_id: int = Field(foreign_key="example.id", primary_key=True)
    round_id: int = Field(foreign_key="round.id")
    lot: int = Field(sa_column=Column(BigInteger(), nullable=False))
    author_id: int | None = Field(default=None, foreign_key="worker.id")
    batch_id: int | None = Field(default=None, foreign_key="batch.id")
    reopened: bool = False
    filled_at: datetime | None = Field(default=None, sa_column=moment_column(nullable=True))


class Lease(SQLModel, table=True):
    """The page in front of a worker, and until when it holds its places; None: they were given to others.

    Deleted when the page is given in, so that this table holds no more than there are workers.
    """

    __tablename__ = "lease"
    __table_args__ = (UniqueConstraint("round_id", "worker_id"), Index("ix_lease_round_id_until", "round_id", "until"))
    page_id: int = Field(foreign_key="page.id", primary_key=True)
    round_id: int = Field(foreign_key="round.id")
    worker_id: int = Field(foreign_key="worker.id")
    until: datetime | None = Field(default=None, sa_column=moment_column(nullable=True))


class Seat(SQLModel, table=True):
    """One of an example's places: held by a page until its lease ends, or answered by a response for good."""

    __tablename__ = "seat"
    __table_args__ = (
        UniqueConstraint("example_id", "worker_id"),
        # One key for example and page: nobody sits where they were not assigned.
        ForeignKeyConstraint(["page_id", "example_id"], ["assignment.page_id", "assignment.example_id"]),
        CheckConstraint("place BETWEEN 1 AND 5", name="place"),
    )
    example_id: int = Field(primary_key=True)
    place: int = Field(primary_key=True)
    worker_id: int = Field(foreign_key="worker.id", index=True)
    page_id: int = Field(index=True)
    response_id: int | None = Field(default=None, foreign_key="response.id", unique=True)


class Uncounted(SQLModel, table=True):
    """A response that is kept and does not count, and why."""

    __tablename__ = "uncounted"
    __table_args__ = (CheckConstraint("reason IN ('late', 'removed')", name="reason"),)
    response_id: int = Field(foreign_key="response.id", primary_key=True)
    reason: str
    at: datetime = Field(sa_column=moment_column())


class Flag(SQLModel, table=True):
    """A validator could not judge an example, and why."""

    __tablename__ = "flag"
    __table_args__ = (UniqueConstraint("example_id", "worker_id"),)
    id: int | None = Field(default=None, primary_key=True)
    example_id: int = Field(foreign_key="example.id")
    worker_id: int = Field(foreign_key="worker.id")
    page_id: int = Field(foreign_key="page.id")
    reason: str
    at: datetime = Field(sa_column=moment_column())


class Hold(SQLModel, table=True):
    """An example that is kept from validators until the launcher has looked at it."""

    __tablename__ = "hold"
    __table_args__ = (CheckConstraint("decision IN ('released', 'left out')", name="decision"),)
    example_id: int = Field(foreign_key="example.id", primary_key=True)
    held_at: datetime = Field(sa_column=moment_column())
    decision: str | None = None
    decided_by: str | None = None
    decided_at: datetime | None = Field(default=None, sa_column=moment_column(nullable=True))


class PageComment(SQLModel, table=True):
    """What a validator wrote beside a page; it never leaves the database."""

    __tablename__ = "page_comment"
    page_id: int = Field(foreign_key="page.id", primary_key=True)
    text: str


class CheckItem(SQLModel, table=True):
    """A text of a round whose right answer is known."""

    __tablename__ = "check_item"
    __table_args__ = (
        UniqueConstraint("round_id", "use", "text_key"),
        UniqueConstraint("id", "task"),
        ForeignKeyConstraint(["round_id", "task"], ["round.id", "round.task"]),
        ForeignKeyConstraint(["task", "label"], ["task_label.task", "task_label.label"]),
        CheckConstraint("use IN ('screening', 'silent')", name="use"),
    )
    id: int | None = Field(default=None, primary_key=True)
    round_id: int
    task: str
    use: str
    text: str
    text_key: str = Field(max_length=64)
    label: str


class CheckPlace(SQLModel, table=True):
    """A check item on a page; a worker meets each of them once."""

    __tablename__ = "check_place"
    __table_args__ = (UniqueConstraint("check_item_id", "worker_id"),)
    page_id: int = Field(foreign_key="page.id", primary_key=True)
    check_item_id: int = Field(foreign_key="check_item.id", primary_key=True)
    worker_id: int = Field(foreign_key="worker.id")


class CheckAnswer(SQLModel, table=True):
    """What a worker answered to a check item; never a response, never exported."""

    __tablename__ = "check_answer"
    __table_args__ = (
        UniqueConstraint("check_item_id", "worker_id"),
        ForeignKeyConstraint(["check_item_id", "task"], ["check_item.id", "check_item.task"]),
        ForeignKeyConstraint(["task", "label"], ["task_label.task", "task_label.label"]),
    )
    id: int | None = Field(default=None, primary_key=True)
    check_item_id: int
    worker_id: int = Field(foreign_key="worker.id", index=True)
    task: str
    label: str
    form: dict[str, Any] | None = Field(default=None, sa_column=json_column(nullable=True))
    at: datetime = Field(sa_column=moment_column())


class CheckFlag(SQLModel, table=True):
    """A worker said that a check item cannot be judged, and why; never exported."""

    __tablename__ = "check_flag"
    check_item_id: int = Field(foreign_key="check_item.id", primary_key=True)
    worker_id: int = Field(foreign_key="worker.id", primary_key=True)
    reason: str
    at: datetime = Field(sa_column=moment_column())


class Removal(SQLModel, table=True):
    """A worker was removed from a round, by which rule, on what evidence; perhaps reinstated later."""

    __tablename__ = "removal"
    id: int | None = Field(default=None, primary_key=True)
    round_id: int = Field(foreign_key="round.id")
    worker_id: int = Field(foreign_key="worker.id", index=True)
    rule: str
    evidence: dict[str, Any] = Field(sa_column=json_column())
    at: datetime = Field(sa_column=moment_column())
    reinstated_at: datetime | None = Field(default=None, sa_column=moment_column(nullable=True))
    reinstated_by: str | None = None
