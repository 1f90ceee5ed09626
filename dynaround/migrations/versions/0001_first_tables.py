"""First tables."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None


def upgrade() -> None:
    """Create the tables."""
    op.create_table(
        "evaluation",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("model", sa.String(), nullable=False),
        sa.Column("model_hash", sa.String(), nullable=False),
        sa.Column("data", sa.String(), nullable=False),
        sa.Column("data_hash", sa.String(), nullable=False),
        sa.Column("scores", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_evaluation")),
    )
    op.create_table(
        "round",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("task", sa.String(), nullable=False),
        sa.Column("state", sa.String(), nullable=False),
        sa.Column("plan", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("target_model", sa.String(), nullable=False),
        sa.Column("target_model_hash", sa.String(), nullable=False),
        sa.CheckConstraint("state IN ('drafted', 'open', 'closed', 'released')", name=op.f("ck_round_state")),
        sa.CheckConstraint("number >= 1", name=op.f("ck_round_number")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_round")),
        sa.UniqueConstraint("id", "task", name=op.f("uq_round_id_task")),
        sa.UniqueConstraint("number", name=op.f("uq_round_number")),
    )
    op.create_table(
        "task_label",
        sa.Column("task", sa.String(), nullable=False),
        sa.Column("label", sa.String(), nullable=False),
        sa.Column("place", sa.Integer(), nullable=False),
        sa.Column("for_model", sa.Boolean(), nullable=False),
        sa.PrimaryKeyConstraint("task", "label", name=op.f("pk_task_label")),
    )
    op.create_table(
        "worker",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("platform_id", sa.String(), nullable=False),
        sa.Column("kind", sa.String(), nullable=False),
        sa.CheckConstraint("kind IN ('person', 'scripted', 'replayed')", name=op.f("ck_worker_kind")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_worker")),
        sa.UniqueConstraint("platform_id", name=op.f("uq_worker_platform_id")),
    )
    op.create_table(
        "evaluated_item",
        sa.Column("evaluation_id", sa.Integer(), nullable=False),
        sa.Column("place", sa.Integer(), nullable=False),
        sa.Column("item", sa.String(), nullable=False),
        sa.Column("gold", sa.String(), nullable=False),
        sa.Column("prediction", sa.String(), nullable=False),
        sa.Column("probs", sa.JSON(none_as_null=True), nullable=False),
        sa.ForeignKeyConstraint(["evaluation_id"], ["evaluation.id"], name=op.f("fk_evaluated_item_evaluation_id")),
        sa.PrimaryKeyConstraint("evaluation_id", "place", name=op.f("pk_evaluated_item")),
    )
    op.create_table(
        "event",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("round_id", sa.Integer(), nullable=True),
        sa.Column("who", sa.String(), nullable=False),
        sa.Column("what", sa.String(), nullable=False),
        sa.Column("detail", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(["round_id"], ["round.id"], name=op.f("fk_event_round_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_event")),
    )
    with op.batch_alter_table("event", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_event_round_id"), ["round_id"], unique=False)

    op.create_table(
        "page",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("round_id", sa.Integer(), nullable=False),
        sa.Column("worker_id", sa.Integer(), nullable=False),
        sa.Column("given_in", sa.DateTime(timezone=True), nullable=True),
        sa.ForeignKeyConstraint(["round_id"], ["round.id"], name=op.f("fk_page_round_id")),
        sa.ForeignKeyConstraint(["worker_id"], ["worker.id"], name=op.f("fk_page_worker_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_page")),
    )
    with op.batch_alter_table("page", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_page_round_id"), ["round_id"], unique=False)

    op.create_table(
        "prompt",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("round_id", sa.Integer(), nullable=False),
        sa.Column("text", sa.String(), nullable=False),
        sa.Column("review_id", sa.String(), nullable=True),
        sa.Column("rating", sa.Integer(), nullable=True),
        sa.Column("span_start", sa.Integer(), nullable=True),
        sa.Column("span_end", sa.Integer(), nullable=True),
        sa.ForeignKeyConstraint(["round_id"], ["round.id"], name=op.f("fk_prompt_round_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_prompt")),
        sa.UniqueConstraint(
            "round_id",
            "review_id",
            "span_start",
            "span_end",
            name=op.f("uq_prompt_round_id_review_id_span_start_span_end"),
        ),
    )
    op.create_table(
        "example",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("round_id", sa.Integer(), nullable=False),
        sa.Column("task", sa.String(), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("text", sa.String(), nullable=False),
        sa.Column("text_key", sa.String(length=64), nullable=False),
        sa.Column("imported", sa.Boolean(), nullable=False),
        sa.Column("review_id", sa.String(), nullable=True),
        sa.Column("rating", sa.Integer(), nullable=True),
        sa.Column("span_start", sa.Integer(), nullable=True),
        sa.Column("span_end", sa.Integer(), nullable=True),
        sa.Column("cell", sa.String(), nullable=False),
        sa.Column("prediction", sa.String(), nullable=False),
        sa.Column("probs", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("truncated", sa.Boolean(), nullable=False),
        sa.Column("model_hash", sa.String(), nullable=False),
        sa.Column("precision", sa.String(), nullable=False),
        sa.Column("back_end", sa.String(), nullable=False),
        sa.Column("author_id", sa.Integer(), nullable=True),
        sa.Column("arm", sa.String(), nullable=True),
        sa.Column("prompt_id", sa.Integer(), nullable=True),
        sa.CheckConstraint("(author_id IS NULL) = (arm IS NULL)", name=op.f("ck_example_arm")),
        sa.ForeignKeyConstraint(["author_id"], ["worker.id"], name=op.f("fk_example_author_id")),
        sa.ForeignKeyConstraint(["prompt_id"], ["prompt.id"], name=op.f("fk_example_prompt_id")),
        sa.ForeignKeyConstraint(
            ["round_id", "task"], ["round.id", "round.task"], name=op.f("fk_example_round_id_task")
        ),
        sa.ForeignKeyConstraint(
            ["task", "prediction"], ["task_label.task", "task_label.label"], name=op.f("fk_example_task_prediction")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_example")),
        sa.UniqueConstraint("id", "task", name=op.f("uq_example_id_task")),
        sa.UniqueConstraint("round_id", "number", name=op.f("uq_example_round_id_number")),
    )
    with op.batch_alter_table("example", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_example_review_id"), ["review_id"], unique=False)
        batch_op.create_index(
            "uq_example_round_text",
            ["round_id", "text_key"],
            unique=True,
            sqlite_where=sa.text("imported = 0"),
            postgresql_where=sa.text("imported = false"),
        )

    op.create_table(
        "assignment",
        sa.Column("page_id", sa.Integer(), nullable=False),
        sa.Column("example_id", sa.Integer(), nullable=False),
        sa.Column("worker_id", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(["example_id"], ["example.id"], name=op.f("fk_assignment_example_id")),
        sa.ForeignKeyConstraint(["page_id"], ["page.id"], name=op.f("fk_assignment_page_id")),
        sa.ForeignKeyConstraint(["worker_id"], ["worker.id"], name=op.f("fk_assignment_worker_id")),
        sa.PrimaryKeyConstraint("page_id", "example_id", name=op.f("pk_assignment")),
        sa.UniqueConstraint("example_id", "worker_id", name=op.f("uq_assignment_example_id_worker_id")),
    )
    op.create_table(
        "placement",
        sa.Column("example_id", sa.Integer(), nullable=False),
        sa.Column("split", sa.String(), nullable=False),
        sa.CheckConstraint("split IN ('train', 'dev', 'test', 'withheld')", name=op.f("ck_placement_split")),
        sa.ForeignKeyConstraint(["example_id"], ["example.id"], name=op.f("fk_placement_example_id")),
        sa.PrimaryKeyConstraint("example_id", name=op.f("pk_placement")),
    )
    op.create_table(
        "response",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("example_id", sa.Integer(), nullable=False),
        sa.Column("worker_id", sa.Integer(), nullable=False),
        sa.Column("page_id", sa.Integer(), nullable=False),
        sa.Column("task", sa.String(), nullable=False),
        sa.Column("label", sa.String(), nullable=False),
        sa.Column("form", sa.JSON(none_as_null=True), nullable=True),
        sa.Column("seconds", sa.Float(), nullable=True),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(
            ["example_id", "task"], ["example.id", "example.task"], name=op.f("fk_response_example_id_task")
        ),
        sa.ForeignKeyConstraint(["page_id"], ["page.id"], name=op.f("fk_response_page_id")),
        sa.ForeignKeyConstraint(
            ["task", "label"], ["task_label.task", "task_label.label"], name=op.f("fk_response_task_label")
        ),
        sa.ForeignKeyConstraint(["worker_id"], ["worker.id"], name=op.f("fk_response_worker_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_response")),
        sa.UniqueConstraint("example_id", "worker_id", name=op.f("uq_response_example_id_worker_id")),
    )
    with op.batch_alter_table("response", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_response_worker_id"), ["worker_id"], unique=False)

    op.create_table(
        "retention",
        sa.Column("response_id", sa.Integer(), nullable=False),
        sa.Column("rule", sa.String(), nullable=False),
        sa.Column("frozen_at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(["response_id"], ["response.id"], name=op.f("fk_retention_response_id")),
        sa.PrimaryKeyConstraint("response_id", name=op.f("pk_retention")),
    )


def downgrade() -> None:
    """Drop them all."""
    op.drop_table("retention")
    with op.batch_alter_table("response", schema=None) as batch_op:
        batch_op.drop_index(batch_op.f("ix_response_worker_id"))

    op.drop_table("response")
    op.drop_table("placement")
    op.drop_table("assignment")
    with op.batch_alter_table("example", schema=None) as batch_op:
        batch_op.drop_index(
            "uq_example_round_text", sqlite_where=sa.text("imported = 0"), postgresql_where=sa.text("imported = false")
        )
        batch_op.drop_index(batch_op.f("ix_example_review_id"))

    op.drop_table("example")
    op.drop_table("prompt")
    with op.batch_alter_table("page", schema=None) as batch_op:
        batch_op.drop_index(batch_op.f("ix_page_round_id"))

    op.drop_table("page")
    with op.batch_alter_table("event", schema=None) as batch_op:
        batch_op.drop_index(batch_op.f("ix_event_round_id"))

    op.drop_table("event")
    op.drop_table("evaluated_item")
    op.drop_table("worker")
    op.drop_table("task_label")
    op.drop_table("round")
    op.drop_table("evaluation")
