"""Authors, accounts and onboarding."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    """Create the tables."""
    op.create_table(
        "invitation",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("platform_id", sa.String(), nullable=False),
        sa.Column("made_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("expires_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("used_at", sa.DateTime(timezone=True), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_invitation")),
    )
    op.create_table(
        "log_in_attempt",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("name_key", sa.String(), nullable=False),
        sa.Column("address", sa.String(), nullable=False),
        sa.Column("succeeded", sa.Boolean(), nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_log_in_attempt")),
    )
    op.create_index("ix_log_in_attempt_at", "log_in_attempt", ["at"], unique=False)
    op.create_index("ix_log_in_attempt_name_key_at", "log_in_attempt", ["name_key", "at"], unique=False)

    op.create_table(
        "account",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("name_key", sa.String(), nullable=False),
        sa.Column("password_hash", sa.String(), nullable=True),
        sa.Column("role", sa.String(), nullable=False),
        sa.Column("worker_id", sa.Integer(), nullable=True),
        sa.Column("made_at", sa.DateTime(timezone=True), nullable=False),
        sa.CheckConstraint("(role = 'worker') = (worker_id IS NOT NULL)", name=op.f("ck_account_worker")),
        sa.CheckConstraint("role IN ('worker', 'launcher', 'maintainer')", name=op.f("ck_account_role")),
        sa.ForeignKeyConstraint(["worker_id"], ["worker.id"], name=op.f("fk_account_worker_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_account")),
        sa.UniqueConstraint("name_key", name=op.f("uq_account_name_key")),
        sa.UniqueConstraint("worker_id", name=op.f("uq_account_worker_id")),
    )
    op.create_table(
        "author_session",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("round_id", sa.Integer(), nullable=False),
        sa.Column("worker_id", sa.Integer(), nullable=False),
        sa.Column("arm", sa.String(), nullable=False),
        sa.Column("started_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("last_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("ended_at", sa.DateTime(timezone=True), nullable=True),
        sa.CheckConstraint("arm IN ('prompt', 'no prompt')", name=op.f("ck_author_session_arm")),
        sa.ForeignKeyConstraint(["round_id"], ["round.id"], name=op.f("fk_author_session_round_id")),
        sa.ForeignKeyConstraint(["worker_id"], ["worker.id"], name=op.f("fk_author_session_worker_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_author_session")),
    )
    op.create_index(
        "uq_author_session_open",
        "author_session",
        ["round_id", "worker_id"],
        unique=True,
        sqlite_where=sa.text("ended_at IS NULL"),
        postgresql_where=sa.text("ended_at IS NULL"),
    )

    op.create_table(
        "bar",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("worker_id", sa.Integer(), nullable=False),
        sa.Column("work", sa.String(), nullable=False),
        sa.Column("reason", sa.String(), nullable=False),
        sa.Column("evidence", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("began_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("until", sa.DateTime(timezone=True), nullable=False),
        sa.Column("objection", sa.String(), nullable=True),
        sa.Column("objected_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("lifted_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("lifted_by", sa.String(), nullable=True),
        sa.ForeignKeyConstraint(["worker_id"], ["worker.id"], name=op.f("fk_bar_worker_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_bar")),
    )
    op.create_index(op.f("ix_bar_worker_id"), "bar", ["worker_id"], unique=False)

    op.create_table(
        "consent",
        sa.Column("worker_id", sa.Integer(), nullable=False),
        sa.Column("version", sa.String(), nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(["worker_id"], ["worker.id"], name=op.f("fk_consent_worker_id")),
        sa.PrimaryKeyConstraint("worker_id", "version", name=op.f("pk_consent")),
    )
    op.create_table(
        "quiz_attempt",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("worker_id", sa.Integer(), nullable=False),
        sa.Column("quiz", sa.String(), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("answers", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("right", sa.Integer(), nullable=False),
        sa.Column("questions", sa.Integer(), nullable=False),
        sa.Column("passed", sa.Boolean(), nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(["worker_id"], ["worker.id"], name=op.f("fk_quiz_attempt_worker_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_quiz_attempt")),
        sa.UniqueConstraint("worker_id", "quiz", "number", name=op.f("uq_quiz_attempt_worker_id_quiz_number")),
    )
    op.create_table(
        "visit",
        sa.Column("token_hash", sa.String(length=64), nullable=False),
        sa.Column("account_id", sa.Integer(), nullable=False),
        sa.Column("began_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("expires_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("ended_at", sa.DateTime(timezone=True), nullable=True),
        sa.ForeignKeyConstraint(["account_id"], ["account.id"], name=op.f("fk_visit_account_id")),
        sa.PrimaryKeyConstraint("token_hash", name=op.f("pk_visit")),
    )
    op.create_index(op.f("ix_visit_account_id"), "visit", ["account_id"], unique=False)

    op.create_table(
        "writing",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("session_id", sa.Integer(), nullable=False),
        sa.Column("worker_id", sa.Integer(), nullable=False),
        sa.Column("task", sa.String(), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("target_label", sa.String(), nullable=False),
        sa.Column("prompt_id", sa.Integer(), nullable=True),
        sa.Column("draft", sa.String(), nullable=False),
        sa.Column("started_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("ended_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("outcome", sa.String(), nullable=True),
        sa.CheckConstraint("outcome IN ('completed', 'left', 'duplicate')", name=op.f("ck_writing_outcome")),
        sa.CheckConstraint("(outcome IS NULL) = (ended_at IS NULL)", name=op.f("ck_writing_ended")),
        sa.ForeignKeyConstraint(["prompt_id"], ["prompt.id"], name=op.f("fk_writing_prompt_id")),
        sa.ForeignKeyConstraint(["session_id"], ["author_session.id"], name=op.f("fk_writing_session_id")),
        sa.ForeignKeyConstraint(
            ["task", "target_label"], ["task_label.task", "task_label.label"], name=op.f("fk_writing_task_target_label")
        ),
        sa.ForeignKeyConstraint(["worker_id"], ["worker.id"], name=op.f("fk_writing_worker_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_writing")),
        sa.UniqueConstraint("session_id", "number", name=op.f("uq_writing_session_id_number")),
    )
    op.create_index(op.f("ix_writing_worker_id"), "writing", ["worker_id"], unique=False)
    op.create_index(
        "uq_writing_open",
        "writing",
        ["session_id"],
        unique=True,
        sqlite_where=sa.text("ended_at IS NULL"),
        postgresql_where=sa.text("ended_at IS NULL"),
    )

    op.create_table(
        "attempt",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("writing_id", sa.Integer(), nullable=False),
        sa.Column("round_id", sa.Integer(), nullable=False),
        sa.Column("worker_id", sa.Integer(), nullable=False),
        sa.Column("task", sa.String(), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("text", sa.String(), nullable=False),
        sa.Column("text_key", sa.String(length=64), nullable=False),
        sa.Column("target_label", sa.String(), nullable=False),
        sa.Column("arm", sa.String(), nullable=False),
        sa.Column("prompt_id", sa.Integer(), nullable=True),
        sa.Column("form", sa.JSON(none_as_null=True), nullable=True),
        sa.Column("prediction", sa.String(), nullable=False),
        sa.Column("probs", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("truncated", sa.Boolean(), nullable=False),
        sa.Column("model_hash", sa.String(), nullable=False),
        sa.Column("precision", sa.String(), nullable=False),
        sa.Column("back_end", sa.String(), nullable=False),
        sa.Column("latency", sa.Float(), nullable=False),
        sa.Column("pasted", sa.Integer(), nullable=True),
        sa.Column("keystrokes", sa.Integer(), nullable=True),
        sa.Column("seconds", sa.Float(), nullable=True),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.CheckConstraint("(arm = 'prompt') = (prompt_id IS NOT NULL)", name=op.f("ck_attempt_prompt")),
        sa.CheckConstraint("number >= 1", name=op.f("ck_attempt_number")),
        sa.ForeignKeyConstraint(["prompt_id"], ["prompt.id"], name=op.f("fk_attempt_prompt_id")),
        sa.ForeignKeyConstraint(
            ["round_id", "task"], ["round.id", "round.task"], name=op.f("fk_attempt_round_id_task")
        ),
        sa.ForeignKeyConstraint(
            ["task", "prediction"], ["task_label.task", "task_label.label"], name=op.f("fk_attempt_task_prediction")
        ),
        sa.ForeignKeyConstraint(
            ["task", "target_label"], ["task_label.task", "task_label.label"], name=op.f("fk_attempt_task_target_label")
        ),
        sa.ForeignKeyConstraint(["worker_id"], ["worker.id"], name=op.f("fk_attempt_worker_id")),
        sa.ForeignKeyConstraint(["writing_id"], ["writing.id"], name=op.f("fk_attempt_writing_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_attempt")),
        sa.UniqueConstraint("id", "task", name=op.f("uq_attempt_id_task")),
        sa.UniqueConstraint("writing_id", "number", name=op.f("uq_attempt_writing_id_number")),
    )
    op.create_index(op.f("ix_attempt_round_id"), "attempt", ["round_id"], unique=False)
    op.create_index("ix_attempt_worker_id_at", "attempt", ["worker_id", "at"], unique=False)

    op.create_table(
        "prompt_showing",
        sa.Column("prompt_id", sa.Integer(), nullable=False),
        sa.Column("showing", sa.Integer(), nullable=False),
        sa.Column("worker_id", sa.Integer(), nullable=False),
        sa.Column("writing_id", sa.Integer(), nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(["prompt_id"], ["prompt.id"], name=op.f("fk_prompt_showing_prompt_id")),
        sa.ForeignKeyConstraint(["worker_id"], ["worker.id"], name=op.f("fk_prompt_showing_worker_id")),
        sa.ForeignKeyConstraint(["writing_id"], ["writing.id"], name=op.f("fk_prompt_showing_writing_id")),
        sa.PrimaryKeyConstraint("prompt_id", "showing", name=op.f("pk_prompt_showing")),
        sa.UniqueConstraint("prompt_id", "worker_id", name=op.f("uq_prompt_showing_prompt_id_worker_id")),
    )
    op.create_index(op.f("ix_prompt_showing_writing_id"), "prompt_showing", ["writing_id"], unique=False)

    op.create_table(
        "attempt_decision",
        sa.Column("attempt_id", sa.Integer(), nullable=False),
        sa.Column("decision", sa.String(), nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.CheckConstraint("decision IN ('confirmed', 'taken back')", name=op.f("ck_attempt_decision_decision")),
        sa.ForeignKeyConstraint(["attempt_id"], ["attempt.id"], name=op.f("fk_attempt_decision_attempt_id")),
        sa.PrimaryKeyConstraint("attempt_id", name=op.f("pk_attempt_decision")),
    )
    op.create_table(
        "authored_example",
        sa.Column("example_id", sa.Integer(), nullable=False),
        sa.Column("attempt_id", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(["attempt_id"], ["attempt.id"], name=op.f("fk_authored_example_attempt_id")),
        sa.ForeignKeyConstraint(["example_id"], ["example.id"], name=op.f("fk_authored_example_example_id")),
        sa.PrimaryKeyConstraint("example_id", name=op.f("pk_authored_example")),
        sa.UniqueConstraint("attempt_id", name=op.f("uq_authored_example_attempt_id")),
    )
    op.create_table(
        "submission",
        sa.Column("token", sa.String(length=64), nullable=False),
        sa.Column("writing_id", sa.Integer(), nullable=False),
        sa.Column("worker_id", sa.Integer(), nullable=False),
        sa.Column("claimed_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("leased_until", sa.DateTime(timezone=True), nullable=False),
        sa.Column("attempt_id", sa.Integer(), nullable=True),
        sa.ForeignKeyConstraint(["attempt_id"], ["attempt.id"], name=op.f("fk_submission_attempt_id")),
        sa.ForeignKeyConstraint(["worker_id"], ["worker.id"], name=op.f("fk_submission_worker_id")),
        sa.ForeignKeyConstraint(["writing_id"], ["writing.id"], name=op.f("fk_submission_writing_id")),
        sa.PrimaryKeyConstraint("token", name=op.f("pk_submission")),
        sa.UniqueConstraint("attempt_id", name=op.f("uq_submission_attempt_id")),
    )
    op.create_index(op.f("ix_submission_writing_id"), "submission", ["writing_id"], unique=False)


def downgrade() -> None:
    """Drop the tables."""
    op.drop_index(op.f("ix_submission_writing_id"), table_name="submission")

    op.drop_table("submission")
    op.drop_table("authored_example")
    op.drop_table("attempt_decision")
    op.drop_index(op.f("ix_prompt_showing_writing_id"), table_name="prompt_showing")

    op.drop_table("prompt_showing")
    op.drop_index("ix_attempt_worker_id_at", table_name="attempt")
    op.drop_index(op.f("ix_attempt_round_id"), table_name="attempt")

    op.drop_table("attempt")
    op.drop_index(
        "uq_writing_open",
        table_name="writing",
        sqlite_where=sa.text("ended_at IS NULL"),
        postgresql_where=sa.text("ended_at IS NULL"),
    )
    op.drop_index(op.f("ix_writing_worker_id"), table_name="writing")

    op.drop_table("writing")
    op.drop_index(op.f("ix_visit_account_id"), table_name="visit")

    op.drop_table("visit")
    op.drop_table("quiz_attempt")
    op.drop_table("consent")
    op.drop_index(op.f("ix_bar_worker_id"), table_name="bar")

    op.drop_table("bar")
    op.drop_index(
        "uq_author_session_open",
        table_name="author_session",
        sqlite_where=sa.text("ended_at IS NULL"),
        postgresql_where=sa.text("ended_at IS NULL"),
    )

    op.drop_table("author_session")
    op.drop_table("account")
    op.drop_index("ix_log_in_attempt_name_key_at", table_name="log_in_attempt")
    op.drop_index("ix_log_in_attempt_at", table_name="log_in_attempt")

    op.drop_table("log_in_attempt")
    op.drop_table("invitation")
