"""Rounds and what is collected in them: examples, pages, responses, splits, readings, checks, events."""

from datetime import datetime
from typing import Any

from sqlalchemy import CheckConstraint, ForeignKeyConstraint, Index, UniqueConstraint, text
from sqlmodel import Field, SQLModel

from dynaround.tables.columns import json_column, moment_column


class TaskLabel(SQLModel, table=True):
    """One label of one kind of task; composite keys to it make the database refuse any other word."""

    __tablename__ = "task_label"
    task: str = Field(primary_key=True)
    label: str = Field(primary_key=True)
    place: int
    for_model: bool


DRAFTED, OPEN, CLOSED, RELEASED = "drafted", "open", "closed", "released"
"""The states of a round; only `rounds/lifecycle.py` moves them."""


class Round(SQLModel, table=True):
    """One collection against one target model; the plan is frozen when the round opens."""

    __tablename__ = "round"
    __table_args__ = (
        CheckConstraint("state IN ('drafted', 'open', 'closed', 'released')", name="state"),
        CheckConstraint("number >= 1", name="number"),
        UniqueConstraint("id", "task"),
    )
    id: int | None = Field(default=None, primary_key=True)
    number: int = Field(unique=True)
    task: str
    state: str
    plan: dict[str, Any] = Field(sa_column=json_column())
    target_model: str
    target_model_hash: str


class Prompt(SQLModel, table=True):
    """A natural sentence that authors may start from; its text never changes."""

    __tablename__ = "prompt"
    __table_args__ = (UniqueConstraint("round_id", "review_id", "span_start", "span_end"),)
    id: int | None = Field(default=None, primary_key=True)
    round_id: int = Field(foreign_key="round.id")
    text: str
    review_id: str | None = None
    rating: int | None = None
    span_start: int | None = None
    span_end: int | None = None


class Example(SQLModel, table=True):
    """One sentence to be validated, with the prediction as it was made; the text is never changed once stored."""

    __tablename__ = "example"
    __table_args__ = (
        UniqueConstraint("round_id", "number"),
        UniqueConstraint("id", "task"),
        ForeignKeyConstraint(["round_id", "task"], ["round.id", "round.task"]),
        ForeignKeyConstraint(["task", "prediction"], ["task_label.task", "task_label.label"]),
        CheckConstraint("(author_id IS NULL) = (arm IS NULL)", name="arm"),
        Index(
            "uq_example_round_text",
            "round_id",
            "text_key",
            unique=True,
            sqlite_where=text("imported = 0"),
            postgresql_where=text("imported = false"),
        ),
        # The other one does not find what was imported.
        Index("ix_example_round_id_text_key", "round_id", "text_key"),
    )
    id: int | None = Field(default=None, primary_key=True)
    round_id: int
    task: str
    number: int
    text: str
    text_key: str = Field(max_length=64)
    imported: bool = False
    review_id: str | None = Field(default=None, index=True)
    rating: int | None = None
    span_start: int | None = None
    span_end: int | None = None
    cell: str
    prediction: str
    probs: dict[str, float] = Field(sa_column=json_column())
    truncated: bool
    model_hash: str
    precision: str
    back_end: str
    author_id: int | None = Field(default=None, foreign_key="worker.id")
    arm: str | None = None
    prompt_id: int | None = Field(default=None, foreign_key="prompt.id")


class Page(SQLModel, table=True):
    """Up to ten places in front of one validator (a HIT); `given_in` is when the answers came."""

    __tablename__ = "page"
    __table_args__ = (Index("ix_page_round_id_worker_id", "round_id", "worker_id"),)
    id: int | None = Field(default=None, primary_key=True)
    round_id: int = Field(foreign_key="round.id")
    worker_id: int = Field(foreign_key="worker.id")
    given_in: datetime | None = Field(default=None, sa_column=moment_column(nullable=True))


class Assignment(SQLModel, table=True):
    """One place of a page: one example in front of one worker, once."""

    __tablename__ = "assignment"
    __table_args__ = (UniqueConstraint("example_id", "worker_id"),)
    page_id: int = Field(foreign_key="page.id", primary_key=True)
    example_id: int = Field(foreign_key="example.id", primary_key=True)
    worker_id: int = Field(foreign_key="worker.id")


class Response(SQLModel, table=True):
    """One validator's label on one example; `form` is what the task's form holds beyond the label. Only appended."""

    __tablename__ = "response"
    __table_args__ = (
        UniqueConstraint("example_id", "worker_id"),
        ForeignKeyConstraint(["example_id", "task"], ["example.id", "example.task"]),
        ForeignKeyConstraint(["task", "label"], ["task_label.task", "task_label.label"]),
    )
    id: int | None = Field(default=None, primary_key=True)
    example_id: int
    worker_id: int = Field(foreign_key="worker.id", index=True)
    page_id: int = Field(foreign_key="page.id")
    task: str
    label: str
    form: dict[str, Any] | None = Field(default=None, sa_column=json_column(nullable=True))
    seconds: float | None = None
    at: datetime = Field(sa_column=moment_column())


class Retention(SQLModel, table=True):
    """One of the five responses of an example that count, by which rule, frozen when the round closed."""

    __tablename__ = "retention"
    response_id: int = Field(foreign_key="response.id", primary_key=True)
    rule: str
    frozen_at: datetime = Field(sa_column=moment_column())


class Placement(SQLModel, table=True):
    """The split in which an example was released; an example that was left out of the round has none."""

    __tablename__ = "placement"
    __table_args__ = (CheckConstraint("split IN ('train', 'dev', 'test', 'withheld')", name="split"),)
    example_id: int = Field(foreign_key="example.id", primary_key=True)
    split: str


class Evaluation(SQLModel, table=True):
    """One reading of a model on a labelled set, with all its predictions in `EvaluatedItem`."""

    __tablename__ = "evaluation"
    id: int | None = Field(default=None, primary_key=True)
    model: str
    model_hash: str
    data: str
    data_hash: str
    scores: dict[str, Any] = Field(sa_column=json_column())
    at: datetime = Field(sa_column=moment_column())


class EvaluatedItem(SQLModel, table=True):
    """The prediction made for one item of an evaluation."""

    __tablename__ = "evaluated_item"
    evaluation_id: int = Field(foreign_key="evaluation.id", primary_key=True)
    place: int = Field(primary_key=True)
    item: str
    gold: str
    prediction: str
    probs: dict[str, float] = Field(sa_column=json_column())


class SolvedCheck(SQLModel, table=True):
    """One time that someone asked whether a model does as well as people on a round; numbered within the round.

    `answer` is solved, not solved or undecided; `figures` is all that stood beside it, `data_hash` says of which items.
    """

    __tablename__ = "solved_check"
    __table_args__ = (UniqueConstraint("round_id", "number"),)
    id: int | None = Field(default=None, primary_key=True)
    round_id: int = Field(foreign_key="round.id")
    number: int
    model: str
    model_hash: str
    data_hash: str
    margin: float
    seed: int
    answer: str
    figures: dict[str, Any] = Field(sa_column=json_column())
    at: datetime = Field(sa_column=moment_column())


class Event(SQLModel, table=True):
    """Who did what, when. Only appended."""

    __tablename__ = "event"
    id: int | None = Field(default=None, primary_key=True)
    round_id: int | None = Field(default=None, foreign_key="round.id", index=True)
    who: str
    what: str
    detail: dict[str, Any] = Field(sa_column=json_column())
    at: datetime = Field(sa_column=moment_column())
