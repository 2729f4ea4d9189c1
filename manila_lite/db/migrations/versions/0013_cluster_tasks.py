"""Periodic tasks that one process of the cluster runs at a time."""

from alembic import op
import sqlalchemy as sa

from manila_lite.db.migrations.kinds import NAME, OPTIONS

revision = '0013'
down_revision = '0012'


def upgrade() -> None:
    op.create_table(
        'cluster_tasks',
        sa.Column('name', NAME, primary_key=True),
        sa.Column('due_at', sa.Double, nullable=False),
        sa.Column('owner', NAME),
        sa.Column('lease_until', sa.Double),
        **OPTIONS,
    )


def downgrade() -> None:
    op.drop_table('cluster_tasks')
