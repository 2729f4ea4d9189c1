"""Backups of shares."""

from alembic import op
import sqlalchemy as sa

from manila_lite.db.migrations.kinds import ID, NAME, OPTIONS, STAMP

revision = '0030'
down_revision = '0029'


def upgrade() -> None:
    op.create_table(
        'share_backups',
        sa.Column('id', ID, primary_key=True),
        sa.Column('share_id', ID, sa.ForeignKey('shares.id'), nullable=False),
        sa.Column('project_id', NAME, nullable=False),
        sa.Column('user_id', NAME),
        sa.Column('name', NAME),
        sa.Column('description', NAME),
        sa.Column('status', NAME, nullable=False),
        sa.Column('size', sa.Integer, nullable=False),
        sa.Column('host', NAME),
        sa.Column('topic', NAME, nullable=False),
        sa.Column('backup_type', NAME),
        sa.Column('progress', sa.Integer, nullable=False),
        sa.Column('restore_progress', sa.Integer, nullable=False),
        sa.Column('restore_share_id', ID),
        sa.Column('availability_zone_id', ID, sa.ForeignKey('availability_zones.id')),
        sa.Column('created_at', STAMP, nullable=False),
        sa.Column('updated_at', STAMP),
        **OPTIONS,
    )
    for columns in (
        ['project_id', 'created_at', 'id'],
        ['created_at', 'id'],
        ['status'],
        ['share_id'],
        ['restore_share_id'],
    ):
        op.create_index(None, 'share_backups', columns)


def downgrade() -> None:
    op.drop_table('share_backups')
