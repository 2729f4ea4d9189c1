"""The log of recovery, and the index it finds broken rule sets by."""

from alembic import op
import sqlalchemy as sa

from manila_lite.db.migrations.kinds import COUNTER, ID, NAME, OPTIONS, STAMP

revision = '0005'
down_revision = '0004'


def upgrade() -> None:
    op.create_table(
        'recovery_log',
        sa.Column('id', COUNTER, primary_key=True, autoincrement=True),
        sa.Column('resource', sa.String(64), nullable=False),
        sa.Column('resource_id', ID, nullable=False),
        sa.Column('host', NAME),
        sa.Column('status_before', NAME),
        sa.Column('evidence', sa.Text),
        sa.Column('action', sa.String(32), nullable=False),
        sa.Column('status_after', NAME),
        sa.Column('reason', sa.Text),
        sa.Column('duration', sa.Double, nullable=False),
        sa.Column('made_by', NAME),
        sa.Column('asked_by', NAME),
        sa.Column('request_id', NAME),
        sa.Column('made_at', STAMP, nullable=False),
        **OPTIONS,
    )
    op.create_index(None, 'recovery_log', ['resource_id', 'id'])
    op.create_index(None, 'recovery_log', ['made_at'])
    op.create_index(None, 'share_instances', ['access_rules_status'])


def downgrade() -> None:
    op.drop_index('ix_share_instances_access_rules_status', 'share_instances')
    op.drop_table('recovery_log')
