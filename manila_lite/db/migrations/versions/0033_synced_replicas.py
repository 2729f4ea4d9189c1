"""When replicas had the content of their shares."""

from alembic import op
import sqlalchemy as sa

from manila_lite.db.migrations.kinds import STAMP

revision = '0033'
down_revision = '0032'


def upgrade() -> None:
    op.add_column(
        'share_instances',
        sa.Column(
            'synced_at',
            STAMP,
            nullable=False,
            server_default='9999-12-31 00:00:00.000000',
        ),
    )
    op.create_index(None, 'share_instances', ['service_host', 'synced_at'])


def downgrade() -> None:
    op.drop_index('ix_share_instances_service_host_synced_at', 'share_instances')
    op.drop_column('share_instances', 'synced_at')
