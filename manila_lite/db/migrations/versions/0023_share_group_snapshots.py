"""Snapshots of share groups."""

from alembic import op
import sqlalchemy as sa

from manila_lite.db.migrations.kinds import ID, NAME, OPTIONS, STAMP

revision = '0023'
down_revision = '0022'


def upgrade() -> None:
    op.create_table(
        'share_group_snapshots',
        sa.Column('id', ID, primary_key=True),
        sa.Column(
            'share_group_id', ID, sa.ForeignKey('share_groups.id'), nullable=False
        ),
        sa.Column('project_id', NAME, nullable=False),
        sa.Column('user_id', NAME),
        sa.Column('name', NAME),
        sa.Column('description', NAME),
        sa.Column('status', NAME, nullable=False),
        sa.Column('created_at', STAMP, nullable=False),
        sa.Column('updated_at', STAMP),
        **OPTIONS,
    )
    op.create_index(None, 'share_group_snapshots', ['created_at', 'id'])
    op.create_index(None, 'share_group_snapshots', ['project_id', 'created_at', 'id'])
    op.create_index(None, 'share_group_snapshots', ['share_group_id'])
    op.create_index(None, 'share_group_snapshots', ['status'])
    op.create_table(
        'share_group_snapshot_members',
        sa.Column('id', ID, primary_key=True),
        sa.Column(
            'share_group_snapshot_id',
            ID,
            sa.ForeignKey('share_group_snapshots.id', ondelete='CASCADE'),
            nullable=False,
        ),
        sa.Column('share_id', ID, nullable=False),
        sa.Column('share_instance_id', ID, nullable=False),
        sa.Column('size', sa.Integer, nullable=False),
        sa.Column('share_proto', NAME, nullable=False),
        sa.Column('provider_location', NAME),
        sa.Column('created_at', STAMP, nullable=False),
        sa.Column('updated_at', STAMP),
        **OPTIONS,
    )
    for column in ('share_group_snapshot_id', 'share_id', 'share_instance_id'):
        op.create_index(None, 'share_group_snapshot_members', [column])


def downgrade() -> None:
    op.drop_table('share_group_snapshot_members')
    op.drop_table('share_group_snapshots')
