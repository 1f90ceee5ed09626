"""What every page and attempt asks is found without reading what others have done."""

from alembic import op

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    """Find pages and attempts by round and worker, and examples by round and text."""
    op.drop_index(op.f("ix_page_round_id"), table_name="page")
    op.create_index("ix_page_round_id_worker_id", "page", ["round_id", "worker_id"], unique=False)
    op.drop_index(op.f("ix_attempt_round_id"), table_name="attempt")
    op.create_index("ix_attempt_round_id_worker_id", "attempt", ["round_id", "worker_id"], unique=False)
    op.create_index("ix_example_round_id_text_key", "example", ["round_id", "text_key"], unique=False)


def downgrade() -> None:
    """Find them by round alone."""
    op.drop_index("ix_example_round_id_text_key", table_name="example")
    op.drop_index("ix_attempt_round_id_worker_id", table_name="attempt")
    op.create_index(op.f("ix_attempt_round_id"), "attempt", ["round_id"], unique=False)
    op.drop_index("ix_page_round_id_worker_id", table_name="page")
    op.create_index(op.f("ix_page_round_id"), "page", ["round_id"], unique=False)
