"""Share networks and servers, security services, network allocations."""

from alembic import op
import sqlalchemy as sa

from manila_lite.db.migrations.kinds import ID, NAME, OPTIONS, STAMP

revision = '0006'
down_revision = '0005'


def upgrade() -> None:
    op.create_table(
        'share_networks',
        sa.Column('id', ID, primary_key=True),
        sa.Column('project_id', NAME, nullable=False),
        sa.Column('user_id', NAME),
        sa.Column('name', NAME),
        sa.Column('description', NAME),
        sa.Column('status', NAME, nullable=False),
        sa.Column('created_at', STAMP, nullable=False),
        sa.Column('updated_at', STAMP),
        **OPTIONS,
    )
    op.create_index(None, 'share_networks', ['created_at', 'id'])
    op.create_index(None, 'share_networks', ['project_id', 'created_at', 'id'])
    op.create_index(None, 'share_networks', ['status'])
    op.create_table(
        'share_network_subnets',
        sa.Column('id', ID, primary_key=True),
        sa.Column(
            'share_network_id', ID, sa.ForeignKey('share_networks.id'), nullable=False
        ),
        sa.Column('availability_zone_id', ID, sa.ForeignKey('availability_zones.id')),
        sa.Column('neutron_net_id', ID),
        sa.Column('neutron_subnet_id', ID),
        sa.Column('network_type', sa.String(32)),
        sa.Column('cidr', sa.String(64)),
        sa.Column('segmentation_id', sa.Integer),
        sa.Column('gateway', sa.String(64)),
        sa.Column('mtu', sa.Integer),
        sa.Column('ip_version', sa.Integer),
        sa.Column('created_at', STAMP, nullable=False),
        sa.Column('updated_at', STAMP),
        **OPTIONS,
    )
    op.create_index(None, 'share_network_subnets', ['neutron_net_id'])
    op.create_index(
        None, 'share_network_subnets', ['share_network_id', 'availability_zone_id']
    )
    op.create_table(
        'share_network_subnet_metadata',
        sa.Column(
            'share_network_subnet_id',
            ID,
            sa.ForeignKey('share_network_subnets.id', ondelete='CASCADE'),
            primary_key=True,
        ),
        sa.Column('key', NAME, primary_key=True),
        sa.Column('value', sa.String(1023), nullable=False),
        **OPTIONS,
    )
    op.create_table(
        'security_services',
        sa.Column('id', ID, primary_key=True),
        sa.Column('project_id', NAME, nullable=False),
        sa.Column('type', sa.String(32), nullable=False),
        sa.Column('name', NAME),
        sa.Column('description', NAME),
        sa.Column('dns_ip', sa.String(64)),
        sa.Column('server', NAME),
        sa.Column('domain', NAME),
        sa.Column('user', NAME),
        sa.Column('password', NAME),
        sa.Column('ou', NAME),
        sa.Column('default_ad_site', NAME),
        sa.Column('created_at', STAMP, nullable=False),
        sa.Column('updated_at', STAMP),
        **OPTIONS,
    )
    op.create_index(None, 'security_services', ['created_at', 'id'])
    op.create_index(None, 'security_services', ['project_id', 'created_at', 'id'])
    op.create_table(
        'share_network_security_services',
        sa.Column(
            'share_network_id',
            ID,
            sa.ForeignKey('share_networks.id', ondelete='CASCADE'),
            primary_key=True,
        ),
        sa.Column(
            'security_service_id',
            ID,
            sa.ForeignKey('security_services.id'),
            primary_key=True,
        ),
        sa.Column('type', sa.String(32), nullable=False),
        sa.UniqueConstraint('share_network_id', 'type'),
        **OPTIONS,
    )
    op.create_index(None, 'share_network_security_services', ['security_service_id'])
    op.create_table(
        'share_network_checks',
        sa.Column(
            'share_network_id',
            ID,
            sa.ForeignKey('share_networks.id', ondelete='CASCADE'),
            primary_key=True,
        ),
        sa.Column('operation', sa.String(64), primary_key=True),
        sa.Column('host', NAME, primary_key=True),
        sa.Column('compatible', sa.Boolean),
        sa.Column('created_at', STAMP, nullable=False),
        **OPTIONS,
    )
    op.create_table(
        'share_servers',
        sa.Column('id', ID, primary_key=True),
        sa.Column('host', NAME, nullable=False),
        sa.Column('share_network_id', ID, sa.ForeignKey('share_networks.id')),
        sa.Column('status', NAME, nullable=False),
        sa.Column('task_state', NAME),
        sa.Column('identifier', NAME),
        sa.Column('is_auto_deletable', sa.Boolean, nullable=False),
        sa.Column('source_share_server_id', ID),
        sa.Column('security_service_update_support', sa.Boolean, nullable=False),
        sa.Column('network_allocation_update_support', sa.Boolean, nullable=False),
        sa.Column('share_replicas_migration_support', sa.Boolean, nullable=False),
        sa.Column('encryption_key_ref', ID),
        sa.Column('founding', sa.String(64)),
        sa.Column('idle_since', STAMP),
        sa.Column('created_at', STAMP, nullable=False),
        sa.Column('updated_at', STAMP),
        sa.UniqueConstraint('founding'),
        **OPTIONS,
    )
    op.create_index(None, 'share_servers', ['created_at', 'id'])
    op.create_index(None, 'share_servers', ['host', 'status'])
    op.create_index(None, 'share_servers', ['share_network_id'])
    op.create_index(None, 'share_servers', ['source_share_server_id'])
    op.create_index(None, 'share_servers', ['status'])
    op.create_index(None, 'share_servers', ['task_state'])
    op.create_table(
        'share_server_backend_details',
        sa.Column(
            'share_server_id',
            ID,
            sa.ForeignKey('share_servers.id', ondelete='CASCADE'),
            primary_key=True,
        ),
        sa.Column('key', NAME, primary_key=True),
        sa.Column('value', sa.String(1023), nullable=False),
        **OPTIONS,
    )
    op.create_table(
        'share_server_subnets',
        sa.Column(
            'share_server_id',
            ID,
            sa.ForeignKey('share_servers.id', ondelete='CASCADE'),
            primary_key=True,
        ),
        sa.Column(
            'share_network_subnet_id',
            ID,
            sa.ForeignKey('share_network_subnets.id'),
            primary_key=True,
        ),
        **OPTIONS,
    )
    op.create_index(None, 'share_server_subnets', ['share_network_subnet_id'])
    op.create_table(
        'network_segments',
        sa.Column('segment', sa.String(128), primary_key=True),
        **OPTIONS,
    )
    op.create_table(
        'network_allocations',
        sa.Column('id', ID, primary_key=True),
        sa.Column(
            'share_server_id', ID, sa.ForeignKey('share_servers.id'), nullable=False
        ),
        sa.Column(
            'share_network_subnet_id', ID, sa.ForeignKey('share_network_subnets.id')
        ),
        sa.Column('label', sa.String(32), nullable=False),
        sa.Column('segment', sa.String(128), nullable=False),
        sa.Column('ip_address', sa.String(64), nullable=False),
        sa.Column('ip_version', sa.Integer),
        sa.Column('cidr', sa.String(64)),
        sa.Column('gateway', sa.String(64)),
        sa.Column('mtu', sa.Integer),
        sa.Column('network_type', sa.String(32)),
        sa.Column('segmentation_id', sa.Integer),
        sa.Column('mac_address', sa.String(32)),
        sa.Column('created_at', STAMP, nullable=False),
        sa.Column('updated_at', STAMP),
        sa.UniqueConstraint('segment', 'ip_address'),
        **OPTIONS,
    )
    op.create_index(None, 'network_allocations', ['share_network_subnet_id'])
    op.create_index(None, 'network_allocations', ['share_server_id'])
    for column in ('share_network_id', 'share_server_id'):
        op.create_index(None, 'share_instances', [column])


def downgrade() -> None:
    for column in ('share_network_id', 'share_server_id'):
        op.drop_index(f'ix_share_instances_{column}', 'share_instances')
    for table in (
        'network_allocations',
        'network_segments',
        'share_server_subnets',
        'share_server_backend_details',
        'share_servers',
        'share_network_checks',
        'share_network_security_services',
        'security_services',
        'share_network_subnet_metadata',
        'share_network_subnets',
        'share_networks',
    ):
        op.drop_table(table)
