"""Mount point names in use are found by an index."""

from alembic import op

revision = '0043'
down_revision = '0042'


def upgrade() -> None:
    op.create_index(None, 'share_instances', ['mount_point_name'])


def downgrade() -> None:
    op.drop_index('ix_share_instances_mount_point_name', 'share_instances')
