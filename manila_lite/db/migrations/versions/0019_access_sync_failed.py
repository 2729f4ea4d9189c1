"""Whether sending all access rules to a back end again has failed."""

from alembic import op
import sqlalchemy as sa

revision = '0019'
down_revision = '0018'

_TABLES = ('share_instances', 'share_snapshot_instances')


def upgrade() -> None:
    for table in _TABLES:
        op.add_column(
            table,
            sa.Column(
                'access_sync_failed', sa.Boolean(), nullable=False, server_default='0'
            ),
        )


def downgrade() -> None:
    for table in _TABLES:
        op.drop_column(table, 'access_sync_failed')
