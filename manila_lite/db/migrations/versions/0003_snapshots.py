"""Snapshots, their instances, and the access rules of those."""

from alembic import op
import sqlalchemy as sa

from manila_lite.db.migrations.kinds import ID, NAME, OPTIONS, STAMP

revision = '0003'
down_revision = '0002'


def upgrade() -> None:
    op.create_table(
        'share_snapshots',
        sa.Column('id', ID, primary_key=True),
        sa.Column('user_id', NAME),
        sa.Column('project_id', NAME, nullable=False),
        sa.Column('share_id', ID, sa.ForeignKey('shares.id'), nullable=False),
        sa.Column('size', sa.Integer, nullable=False),
        sa.Column('share_size', sa.Integer, nullable=False),
        sa.Column('share_proto', NAME, nullable=False),
        sa.Column('display_name', NAME),
        sa.Column('display_description', NAME),
        sa.Column('created_at', STAMP, nullable=False),
        sa.Column('updated_at', STAMP),
        **OPTIONS,
    )
    op.create_index(None, 'share_snapshots', ['created_at', 'id'])
    op.create_index(None, 'share_snapshots', ['project_id', 'created_at', 'id'])
    op.create_index(None, 'share_snapshots', ['share_id', 'created_at', 'id'])
    op.create_table(
        'share_snapshot_metadata',
        sa.Column(
            'share_snapshot_id',
            ID,
            sa.ForeignKey('share_snapshots.id', ondelete='CASCADE'),
            primary_key=True,
        ),
        sa.Column('key', NAME, primary_key=True),
        sa.Column('value', sa.String(1023), nullable=False),
        **OPTIONS,
    )
    op.create_table(
        'share_snapshot_instances',
        sa.Column('id', ID, primary_key=True),
        sa.Column(
            'snapshot_id', ID, sa.ForeignKey('share_snapshots.id'), nullable=False
        ),
        sa.Column(
            'share_instance_id', ID, sa.ForeignKey('share_instances.id'), nullable=False
        ),
        sa.Column('status', NAME, nullable=False),
        sa.Column('progress', sa.String(32)),
        sa.Column('provider_location', NAME),
        sa.Column('created_at', STAMP, nullable=False),
        sa.Column('updated_at', STAMP),
        sa.Column('access_doubted', sa.Boolean, nullable=False, server_default='0'),
        **OPTIONS,
    )
    op.create_index(None, 'share_snapshot_instances', ['created_at', 'id'])
    op.create_index(None, 'share_snapshot_instances', ['share_instance_id', 'status'])
    op.create_index(None, 'share_snapshot_instances', ['snapshot_id'])
    op.create_index(None, 'share_snapshot_instances', ['status'])
    op.create_table(
        'share_snapshot_instance_export_locations',
        sa.Column('id', ID, primary_key=True),
        sa.Column(
            'share_snapshot_instance_id',
            ID,
            sa.ForeignKey('share_snapshot_instances.id', ondelete='CASCADE'),
            nullable=False,
        ),
        sa.Column('path', sa.String(2000), nullable=False),
        sa.Column('is_admin_only', sa.Boolean, nullable=False),
        sa.Column('created_at', STAMP, nullable=False),
        sa.Column('updated_at', STAMP),
        **OPTIONS,
    )
    op.create_index(
        None, 'share_snapshot_instance_export_locations', ['share_snapshot_instance_id']
    )
    op.create_table(
        'share_snapshot_access_map',
        sa.Column('id', ID, primary_key=True),
        sa.Column(
            'share_snapshot_id',
            ID,
            sa.ForeignKey('share_snapshots.id', ondelete='CASCADE'),
            nullable=False,
        ),
        sa.Column('access_type', sa.String(64), nullable=False),
        sa.Column('access_to', NAME, nullable=False),
        sa.Column('target', NAME, nullable=False),
        sa.Column('created_at', STAMP, nullable=False),
        sa.Column('updated_at', STAMP),
        sa.UniqueConstraint('share_snapshot_id', 'access_type', 'target'),
        **OPTIONS,
    )
    op.create_table(
        'share_snapshot_instance_access_map',
        sa.Column('id', ID, primary_key=True),
        sa.Column(
            'share_snapshot_instance_id',
            ID,
            sa.ForeignKey('share_snapshot_instances.id', ondelete='CASCADE'),
            nullable=False,
        ),
        sa.Column(
            'access_id',
            ID,
            sa.ForeignKey('share_snapshot_access_map.id', ondelete='CASCADE'),
            nullable=False,
        ),
        sa.Column('state', sa.String(32), nullable=False),
        sa.Column('created_at', STAMP, nullable=False),
        sa.Column('updated_at', STAMP),
        sa.UniqueConstraint('access_id', 'share_snapshot_instance_id'),
        **OPTIONS,
    )
    op.create_index(
        None,
        'share_snapshot_instance_access_map',
        ['share_snapshot_instance_id', 'state'],
    )
    op.create_index(None, 'share_snapshot_instance_access_map', ['state'])
    # Which snapshots have shares made of them is asked for in lists.
    op.create_index(None, 'shares', ['snapshot_id'])


def downgrade() -> None:
    op.drop_index('ix_shares_snapshot_id', 'shares')
    for table in (
        'share_snapshot_instance_access_map',
        'share_snapshot_access_map',
        'share_snapshot_instance_export_locations',
        'share_snapshot_instances',
        'share_snapshot_metadata',
        'share_snapshots',
    ):
        op.drop_table(table)
