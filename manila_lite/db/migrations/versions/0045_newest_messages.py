"""The newest messages of all projects are found by an index."""

from alembic import op

revision = '0045'
down_revision = '0044'


def upgrade() -> None:
    op.create_index(None, 'messages', ['created_at', 'id'])


def downgrade() -> None:
    op.drop_index('ix_messages_created_at_id', 'messages')
