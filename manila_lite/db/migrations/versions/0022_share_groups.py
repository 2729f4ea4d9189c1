"""Share groups."""

from alembic import op
import sqlalchemy as sa

from manila_lite.db.migrations.kinds import ID, NAME, OPTIONS, STAMP

revision = '0022'
down_revision = '0021'

_SERVICE_HOST = {
    'sqlite': "substr(host, 1, instr(host || '#', '#') - 1)",
    'mysql': "substring_index(host, '#', 1)",
    'postgresql': "split_part(host, '#', 1)",
}


def upgrade() -> None:
    dialect = op.get_bind().dialect.name
    op.create_table(
        'share_groups',
        sa.Column('id', ID, primary_key=True),
        sa.Column('project_id', NAME, nullable=False),
        sa.Column('user_id', NAME),
        sa.Column('name', NAME),
        sa.Column('description', NAME),
        sa.Column('status', NAME, nullable=False),
        sa.Column('host', NAME),
        sa.Column(
            'service_host',
            NAME,
            sa.Computed(_SERVICE_HOST[dialect], persisted=dialect != 'sqlite'),
        ),
        sa.Column(
            'share_group_type_id',
            ID,
            sa.ForeignKey('share_group_types.id'),
            nullable=False,
        ),
        sa.Column('availability_zone_id', ID, sa.ForeignKey('availability_zones.id')),
        sa.Column('source_share_group_snapshot_id', ID),
        sa.Column('share_network_id', ID),
        sa.Column('share_server_id', ID),
        sa.Column('consistent_snapshot_support', sa.String(16)),
        sa.Column('created_at', STAMP, nullable=False),
        sa.Column('updated_at', STAMP),
        **OPTIONS,
    )
    op.create_index(None, 'share_groups', ['created_at', 'id'])
    op.create_index(None, 'share_groups', ['project_id', 'created_at', 'id'])
    op.create_index(None, 'share_groups', ['service_host', 'status'])
    op.create_index(None, 'share_groups', ['share_group_type_id'])
    op.create_index(None, 'share_groups', ['status'])
    op.create_table(
        'share_group_share_type_mappings',
        sa.Column(
            'share_group_id',
            ID,
            sa.ForeignKey('share_groups.id', ondelete='CASCADE'),
            primary_key=True,
        ),
        sa.Column(
            'share_type_id', ID, sa.ForeignKey('share_types.id'), primary_key=True
        ),
        **OPTIONS,
    )
    op.create_index(None, 'share_group_share_type_mappings', ['share_type_id'])
    op.create_index(None, 'shares', ['share_group_id'])


def downgrade() -> None:
    op.drop_index('ix_shares_share_group_id', 'shares')
    op.drop_table('share_group_share_type_mappings')
    op.drop_table('share_groups')
