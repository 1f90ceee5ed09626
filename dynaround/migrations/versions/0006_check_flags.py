"""Check items that somebody said cannot be judged."""

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"


def upgrade() -> None:
    """Create the table."""
    op.create_table(
        "check_flag",
        sa.Column("check_item_id", sa.Integer(), nullable=False),
        sa.Column("worker_id", sa.Integer(), nullable=False),
        sa.Column("reason", sa.String(), nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(["check_item_id"], ["check_item.id"], name=op.f("fk_check_flag_check_item_id")),
        sa.ForeignKeyConstraint(["worker_id"], ["worker.id"], name=op.f("fk_check_flag_worker_id")),
        sa.PrimaryKeyConstraint("check_item_id", "worker_id", name=op.f("pk_check_flag")),
    )


def downgrade() -> None:
    """Drop the table."""
    op.drop_table("check_flag")
