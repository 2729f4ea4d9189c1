"""The share networks and share servers of share groups."""

from alembic import op

revision = '0037'
down_revision = '0036'


def upgrade() -> None:
    op.create_index(None, 'share_groups', ['share_network_id'])
    op.create_index(None, 'share_groups', ['share_server_id'])


def downgrade() -> None:
    op.drop_index('ix_share_groups_share_server_id', 'share_groups')
    op.drop_index('ix_share_groups_share_network_id', 'share_groups')
