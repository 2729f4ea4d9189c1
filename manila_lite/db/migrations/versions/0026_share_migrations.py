"""Migrations of shares."""

from alembic import op
import sqlalchemy as sa

from manila_lite.db.migrations.kinds import DOCUMENT, ID, NAME, OPTIONS, STAMP

revision = '0026'
down_revision = '0025'


def upgrade() -> None:
    op.create_table(
        'share_migrations',
        sa.Column('id', ID, primary_key=True),
        sa.Column(
            'share_id',
            ID,
            sa.ForeignKey('shares.id', ondelete='CASCADE'),
            nullable=False,
            unique=True,
        ),
        sa.Column('open_for', ID, unique=True),
        sa.Column('source_instance_id', ID, nullable=False),
        sa.Column('destination_instance_id', ID),
        sa.Column('source_host', NAME, nullable=False),
        sa.Column('destination_host', NAME, nullable=False),
        sa.Column('writable', sa.Boolean, nullable=False),
        sa.Column('nondisruptive', sa.Boolean, nullable=False),
        sa.Column('preserve_metadata', sa.Boolean, nullable=False),
        sa.Column('preserve_snapshots', sa.Boolean, nullable=False),
        sa.Column('phase', sa.Integer, nullable=False),
        sa.Column('casts_rules', sa.Boolean, nullable=False),
        sa.Column('progress', sa.Integer),
        sa.Column('progress_details', DOCUMENT),
        sa.Column('heard_at', STAMP),
        sa.Column('error', sa.String(1000)),
        sa.Column('created_at', STAMP, nullable=False),
        sa.Column('updated_at', STAMP),
        sa.Column('ended_at', STAMP),
        **OPTIONS,
    )
    op.create_index(None, 'share_migrations', ['source_host'])
    op.create_index(None, 'shares', ['task_state'])


def downgrade() -> None:
    op.drop_index('ix_shares_task_state', 'shares')
    op.drop_table('share_migrations')
