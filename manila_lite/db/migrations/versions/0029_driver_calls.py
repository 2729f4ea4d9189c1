"""Calls of drivers."""

from alembic import op
import sqlalchemy as sa

from manila_lite.db.migrations.kinds import ID, NAME, OPTIONS, STAMP

revision = '0029'
down_revision = '0028'


def upgrade() -> None:
    op.create_table(
        'driver_calls',
        sa.Column('id', ID, primary_key=True),
        sa.Column('resource', sa.String(64), nullable=False),
        sa.Column('resource_id', ID, nullable=False),
        sa.Column('method', sa.String(128), nullable=False),
        sa.Column('host', NAME, nullable=False),
        sa.Column('work_id', ID, nullable=False),
        sa.Column('attempt', sa.Integer, nullable=False),
        sa.Column('request_id', NAME),
        sa.Column('started_at', STAMP, nullable=False),
        sa.Column('ended_at', STAMP),
        sa.Column('outcome', sa.String(16)),
        sa.Column('error', sa.Text),
        **OPTIONS,
    )
    op.create_index(None, 'driver_calls', ['resource', 'resource_id', 'started_at'])
    op.create_index(None, 'driver_calls', ['started_at'])


def downgrade() -> None:
    op.drop_table('driver_calls')
