"""Find the messages about a resource among many."""

from alembic import op

revision = '0038'
down_revision = '0037'


def upgrade() -> None:
    op.create_index(None, 'messages', ['resource_id', 'created_at'])


def downgrade() -> None:
    op.drop_index('ix_messages_resource_id_created_at', 'messages')
