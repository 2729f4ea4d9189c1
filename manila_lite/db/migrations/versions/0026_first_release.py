"""The schema of the first release.

Databases of before were not released.
"""

from collections.abc import Iterator
import typing

from alembic import op
import sqlalchemy as sa

from manila_lite.db.migrations.kinds import COUNTER, DOCUMENT, ID, NAME, OPTIONS, STAMP

revision = '0026'
down_revision = None

_SERVICE_HOST = {
    'sqlite': "substr(host, 1, instr(host || '#', '#') - 1)",
    'mysql': "substring_index(host, '#', 1)",
    'postgresql': "split_part(host, '#', 1)",
}


def upgrade() -> None:
    for name, *parts in _tables():
        op.create_table(name, *parts, **OPTIONS)


def downgrade() -> None:
    for name, *_ in reversed([*_tables()]):
        op.drop_table(name)


def _tables() -> Iterator[tuple[typing.Any, ...]]:
    """Yield the name, the columns and the indexes of each table."""
    yield from _types()
    yield from _services()
    yield from _shares()
    yield from _quotas()
    yield from _work()
    yield from _access_rules()
    yield from _snapshots()
    yield from _locks_and_recovery()
    yield from _networks()
    yield from _servers()
    yield from _replicas_and_tasks()
    yield from _group_types()
    yield from _transfers()
    yield from _qos_types()
    yield from _groups()
    yield from _migrations()


def _times() -> tuple[sa.Column, sa.Column]:
    return (
        sa.Column('created_at', STAMP, nullable=False),
        sa.Column('updated_at', STAMP),
    )


def _part_of(table: str, column: str, **options: typing.Any) -> sa.Column:
    """Return the id of a row with which this one is deleted."""
    return sa.Column(
        column, ID, sa.ForeignKey(f'{table}.id', ondelete='CASCADE'), **options
    )


def _service_host() -> sa.Computed:
    """Return the host without its pool, which the database computes."""
    dialect = op.get_bind().dialect.name
    # SQLite cannot add a stored one.
    return sa.Computed(_SERVICE_HOST[dialect], persisted=dialect != 'sqlite')


def _types() -> Iterator[tuple[typing.Any, ...]]:
    yield (
        'share_types',
        sa.Column('id', ID, primary_key=True),
        sa.Column('name', NAME, nullable=False),
        sa.Column('description', NAME),
        sa.Column('is_public', sa.Boolean, nullable=False),
        *_times(),
        sa.UniqueConstraint('name'),
    )
    yield (
        'share_type_extra_specs',
        _part_of('share_types', 'share_type_id', primary_key=True),
        sa.Column('spec_key', NAME, primary_key=True),
        sa.Column('spec_value', NAME, nullable=False),
    )
    yield (
        'share_type_projects',
        _part_of('share_types', 'share_type_id', primary_key=True),
        sa.Column('project_id', NAME, primary_key=True),
    )


def _services() -> Iterator[tuple[typing.Any, ...]]:
    yield (
        'availability_zones',
        sa.Column('id', ID, primary_key=True),
        sa.Column('name', NAME, nullable=False),
        *_times(),
        sa.UniqueConstraint('name'),
    )
    yield (
        'services',
        sa.Column('id', COUNTER, primary_key=True, autoincrement=True),
        sa.Column('host', NAME, nullable=False),
        sa.Column('binary', NAME, nullable=False),
        sa.Column('topic', NAME, nullable=False),
        sa.Column(
            'availability_zone_id',
            ID,
            sa.ForeignKey('availability_zones.id'),
            nullable=False,
        ),
        sa.Column('incarnation', ID, nullable=False),
        sa.Column('heartbeat_at', sa.Double, nullable=False),
        sa.Column('health', sa.Text),
        sa.Column('disabled', sa.Boolean, nullable=False),
        sa.Column('disabled_reason', NAME),
        sa.Column('ensuring', sa.Boolean, nullable=False),
        sa.Column('backend_info', sa.String(64)),
        *_times(),
        sa.UniqueConstraint('host', 'binary'),
    )
    yield (
        'pools',
        sa.Column('host', NAME, primary_key=True),
        sa.Column('service_host', NAME, nullable=False),
        sa.Column('capabilities', DOCUMENT, nullable=False),
        sa.Column('total_gb', sa.Double),
        sa.Column('free_gb', sa.Double),
        sa.Column('allocated_gb', sa.BigInteger, nullable=False),
        sa.Column('pending_gb', sa.BigInteger, nullable=False),
        sa.Column('reported_at', sa.Double, nullable=False),
        sa.Index(None, 'service_host'),
    )
    yield (
        'messages',
        sa.Column('id', ID, primary_key=True),
        sa.Column('project_id', NAME, nullable=False),
        sa.Column('message_level', NAME, nullable=False),
        sa.Column('request_id', NAME),
        sa.Column('resource_type', NAME),
        sa.Column('resource_id', ID),
        sa.Column('action_id', sa.String(10), nullable=False),
        sa.Column('detail_id', sa.String(10)),
        sa.Column('created_at', STAMP, nullable=False),
        sa.Column('expires_at', STAMP, nullable=False),
        sa.Column('reason', sa.Text),
        sa.Column('explanation', sa.Text),
        sa.Index(None, 'expires_at'),
        sa.Index(None, 'project_id', 'created_at', 'id'),
    )


def _shares() -> Iterator[tuple[typing.Any, ...]]:
    yield (
        'shares',
        sa.Column('id', ID, primary_key=True),
        sa.Column('user_id', NAME),
        sa.Column('project_id', NAME, nullable=False),
        sa.Column('size', sa.Integer, nullable=False),
        sa.Column('display_name', NAME),
        sa.Column('display_description', NAME),
        sa.Column('snapshot_id', ID),
        sa.Column('source_backup_id', ID),
        sa.Column('snapshot_support', sa.Boolean, nullable=False),
        sa.Column('create_share_from_snapshot_support', sa.Boolean, nullable=False),
        sa.Column('revert_to_snapshot_support', sa.Boolean, nullable=False),
        sa.Column('mount_snapshot_support', sa.Boolean, nullable=False),
        sa.Column('snapshot_inherit_share_access_support', sa.Boolean, nullable=False),
        sa.Column('replication_type', NAME),
        sa.Column('share_proto', NAME, nullable=False),
        sa.Column('is_public', sa.Boolean, nullable=False),
        sa.Column('share_group_id', ID),
        sa.Column('source_share_group_snapshot_member_id', ID),
        sa.Column('task_state', NAME),
        sa.Column('is_soft_deleted', sa.Boolean, nullable=False),
        sa.Column('scheduled_to_be_deleted_at', STAMP),
        *_times(),
        sa.Index(None, 'created_at', 'id'),
        sa.Index(None, 'is_public', 'created_at'),
        sa.Index(None, 'is_soft_deleted', 'scheduled_to_be_deleted_at'),
        sa.Index(None, 'project_id', 'created_at', 'id'),
        sa.Index(None, 'share_group_id'),
        sa.Index(None, 'snapshot_id'),
        sa.Index(None, 'task_state'),
    )
    yield (
        'share_metadata',
        _part_of('shares', 'share_id', primary_key=True),
        sa.Column('key', NAME, primary_key=True),
        sa.Column('value', sa.String(1023), nullable=False),
    )
    yield (
        'share_instances',
        sa.Column('id', ID, primary_key=True),
        sa.Column('share_id', ID, sa.ForeignKey('shares.id'), nullable=False),
        sa.Column('host', NAME),
        sa.Column('status', NAME, nullable=False),
        sa.Column('progress', sa.String(32)),
        sa.Column('mount_point_name', NAME),
        sa.Column('access_rules_status', NAME, nullable=False),
        sa.Column('encryption_key_ref', ID),
        sa.Column('replica_state', NAME),
        sa.Column('cast_rules_to_readonly', sa.Boolean, nullable=False),
        sa.Column('share_type_id', ID, sa.ForeignKey('share_types.id')),
        sa.Column('availability_zone_id', ID, sa.ForeignKey('availability_zones.id')),
        sa.Column('share_network_id', ID),
        sa.Column('share_server_id', ID),
        *_times(),
        sa.Column('access_doubted', sa.Boolean, nullable=False, server_default='0'),
        sa.Column('sole_active_of', ID),
        sa.Column('replica_round', sa.Integer, nullable=False, server_default='0'),
        sa.Column('service_host', NAME, _service_host()),
        sa.Column('scheduled_at', STAMP),
        sa.Column('launched_at', STAMP),
        sa.Column('access_sync_failed', sa.Boolean, nullable=False, server_default='0'),
        sa.Column('qos_type_id', ID),
        sa.Index(None, 'access_doubted'),
        sa.Index(None, 'access_rules_status'),
        sa.Index(None, 'created_at', 'id'),
        sa.Index(None, 'host', 'status'),
        sa.Index(None, 'qos_type_id'),
        sa.Index(None, 'replica_state', 'id'),
        sa.Index(None, 'service_host', 'replica_state', 'id'),
        sa.Index(None, 'service_host', 'status', 'id'),
        sa.Index(None, 'share_id'),
        sa.Index(None, 'share_network_id'),
        sa.Index(None, 'share_server_id'),
        sa.Index(None, 'share_type_id'),
        sa.Index(None, 'sole_active_of', unique=True),
        sa.Index(None, 'status'),
    )
    yield (
        'share_instance_export_locations',
        sa.Column('id', ID, primary_key=True),
        _part_of('share_instances', 'share_instance_id', nullable=False),
        sa.Column('path', sa.String(2000), nullable=False),
        sa.Column('is_admin_only', sa.Boolean, nullable=False),
        *_times(),
        sa.Index(None, 'share_instance_id'),
    )
    yield (
        'share_instance_export_locations_metadata',
        _part_of(
            'share_instance_export_locations', 'export_location_id', primary_key=True
        ),
        sa.Column('key', NAME, primary_key=True),
        sa.Column('value', sa.String(1023), nullable=False),
    )


def _quotas() -> Iterator[tuple[typing.Any, ...]]:
    yield (
        'quotas',
        sa.Column('project_id', NAME, primary_key=True),
        sa.Column('resource', NAME, primary_key=True),
        sa.Column('hard_limit', sa.BigInteger, nullable=False),
    )
    yield (
        'project_user_quotas',
        sa.Column('project_id', NAME, primary_key=True),
        sa.Column('user_id', NAME, primary_key=True),
        sa.Column('resource', sa.String(64), primary_key=True),
        sa.Column('hard_limit', sa.BigInteger, nullable=False),
    )
    yield (
        'project_share_type_quotas',
        sa.Column('project_id', NAME, primary_key=True),
        _part_of('share_types', 'share_type_id', primary_key=True),
        sa.Column('resource', sa.String(64), primary_key=True),
        sa.Column('hard_limit', sa.BigInteger, nullable=False),
    )
    yield (
        'quota_classes',
        sa.Column('class_name', NAME, primary_key=True),
        sa.Column('resource', NAME, primary_key=True),
        sa.Column('hard_limit', sa.BigInteger, nullable=False),
    )
    yield (
        'quota_usages',
        sa.Column('project_id', NAME, primary_key=True),
        sa.Column('scope', sa.String(16), primary_key=True),
        sa.Column('scope_id', NAME, primary_key=True),
        sa.Column('resource', sa.String(64), primary_key=True),
        sa.Column('in_use', sa.BigInteger, nullable=False),
        sa.Column('reserved', sa.BigInteger, nullable=False),
        sa.Column('hard_limit', sa.BigInteger, nullable=False),
    )


def _work() -> Iterator[tuple[typing.Any, ...]]:
    yield (
        'work',
        sa.Column('id', ID, primary_key=True),
        sa.Column('kind', sa.String(128), nullable=False),
        sa.Column('queue', NAME, nullable=False),
        sa.Column('topic', sa.String(64), nullable=False),
        sa.Column('resource', sa.String(64), nullable=False),
        sa.Column('resource_id', ID, nullable=False),
        sa.Column('one_key', NAME),
        sa.Column('args', DOCUMENT, nullable=False),
        sa.Column('context', DOCUMENT, nullable=False),
        sa.Column('charges', DOCUMENT),
        sa.Column('state', sa.String(16), nullable=False),
        sa.Column('attempt', sa.Integer, nullable=False),
        sa.Column('fence', COUNTER, nullable=False),
        sa.Column('asked', sa.Integer, nullable=False),
        sa.Column('owner', NAME),
        sa.Column('lease_until', sa.Double),
        sa.Column('next_try_at', sa.Double, nullable=False),
        sa.Column('step', NAME),
        sa.Column('error', sa.Text),
        sa.Column('request_id', NAME),
        sa.Column('created_at', STAMP, nullable=False),
        sa.Column('exclusion_key', NAME),
        sa.Column('running_key', NAME),
        sa.UniqueConstraint('one_key'),
        sa.Index(None, 'resource', 'resource_id'),
        sa.Index(None, 'running_key', unique=True),
        sa.Index(None, 'state', 'lease_until'),
        sa.Index(None, 'state', 'queue', 'created_at'),
    )
    yield (
        'transitions',
        sa.Column('id', COUNTER, primary_key=True, autoincrement=True),
        sa.Column('resource', sa.String(64), nullable=False),
        sa.Column('resource_id', ID, nullable=False),
        sa.Column('event', sa.String(64), nullable=False),
        sa.Column('from_status', NAME),
        sa.Column('to_status', NAME),
        sa.Column('request_id', NAME),
        sa.Column('made_by', NAME),
        sa.Column('made_at', STAMP, nullable=False),
        sa.Column('parent_id', ID),
        sa.Column('project_id', NAME),
        sa.Column('reason', sa.Text),
        sa.Column('is_sent', sa.Boolean),
        sa.Index(None, 'is_sent', 'id'),
        sa.Index(None, 'made_at'),
        sa.Index(None, 'resource', 'resource_id', 'id'),
    )


def _access_rules() -> Iterator[tuple[typing.Any, ...]]:
    yield (
        'share_access_map',
        sa.Column('id', ID, primary_key=True),
        _part_of('shares', 'share_id', nullable=False),
        sa.Column('access_type', sa.String(64), nullable=False),
        sa.Column('access_to', NAME, nullable=False),
        sa.Column('target', NAME, nullable=False),
        sa.Column('access_level', sa.String(2), nullable=False),
        *_times(),
        sa.UniqueConstraint('share_id', 'access_type', 'target'),
        sa.Index(None, 'share_id', 'created_at', 'id'),
    )
    yield (
        'share_access_rules_metadata',
        _part_of('share_access_map', 'access_id', primary_key=True),
        sa.Column('key', NAME, primary_key=True),
        sa.Column('value', sa.String(1023), nullable=False),
    )
    yield (
        'share_instance_access_map',
        sa.Column('id', ID, primary_key=True),
        _part_of('share_instances', 'share_instance_id', nullable=False),
        _part_of('share_access_map', 'access_id', nullable=False),
        sa.Column('state', sa.String(32), nullable=False),
        sa.Column('access_key', NAME),
        *_times(),
        sa.UniqueConstraint('access_id', 'share_instance_id'),
        sa.Index(None, 'share_instance_id', 'state'),
        sa.Index(None, 'state'),
    )


def _snapshots() -> Iterator[tuple[typing.Any, ...]]:
    yield (
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
        *_times(),
        sa.Index(None, 'created_at', 'id'),
        sa.Index(None, 'project_id', 'created_at', 'id'),
        sa.Index(None, 'share_id', 'created_at', 'id'),
    )
    yield (
        'share_snapshot_metadata',
        _part_of('share_snapshots', 'share_snapshot_id', primary_key=True),
        sa.Column('key', NAME, primary_key=True),
        sa.Column('value', sa.String(1023), nullable=False),
    )
    yield (
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
        *_times(),
        sa.Column('access_doubted', sa.Boolean, nullable=False, server_default='0'),
        sa.Column('access_sync_failed', sa.Boolean, nullable=False, server_default='0'),
        sa.Index(None, 'access_doubted'),
        sa.Index(None, 'created_at', 'id'),
        sa.Index(None, 'share_instance_id', 'status'),
        sa.Index(None, 'snapshot_id'),
        sa.Index(None, 'status'),
    )
    yield (
        'share_snapshot_instance_export_locations',
        sa.Column('id', ID, primary_key=True),
        _part_of(
            'share_snapshot_instances', 'share_snapshot_instance_id', nullable=False
        ),
        sa.Column('path', sa.String(2000), nullable=False),
        sa.Column('is_admin_only', sa.Boolean, nullable=False),
        *_times(),
        sa.Index(None, 'share_snapshot_instance_id'),
    )
    yield (
        'share_snapshot_access_map',
        sa.Column('id', ID, primary_key=True),
        _part_of('share_snapshots', 'share_snapshot_id', nullable=False),
        sa.Column('access_type', sa.String(64), nullable=False),
        sa.Column('access_to', NAME, nullable=False),
        sa.Column('target', NAME, nullable=False),
        *_times(),
        sa.UniqueConstraint('share_snapshot_id', 'access_type', 'target'),
    )
    yield (
        'share_snapshot_instance_access_map',
        sa.Column('id', ID, primary_key=True),
        _part_of(
            'share_snapshot_instances', 'share_snapshot_instance_id', nullable=False
        ),
        _part_of('share_snapshot_access_map', 'access_id', nullable=False),
        sa.Column('state', sa.String(32), nullable=False),
        *_times(),
        sa.UniqueConstraint('access_id', 'share_snapshot_instance_id'),
        sa.Index(None, 'share_snapshot_instance_id', 'state'),
        sa.Index(None, 'state'),
    )


def _locks_and_recovery() -> Iterator[tuple[typing.Any, ...]]:
    yield (
        'resource_locks',
        sa.Column('id', ID, primary_key=True),
        sa.Column('user_id', NAME, nullable=False),
        sa.Column('project_id', NAME, nullable=False),
        sa.Column('lock_context', sa.String(16), nullable=False),
        sa.Column('resource_id', ID, nullable=False),
        sa.Column('resource_type', sa.String(64), nullable=False),
        sa.Column('resource_action', sa.String(64), nullable=False),
        sa.Column('lock_reason', sa.String(1023)),
        _part_of('shares', 'share_id', nullable=False),
        _part_of('share_access_map', 'access_id'),
        _part_of('resource_locks', 'because_of'),
        *_times(),
        sa.Index(None, 'access_id'),
        sa.Index(None, 'because_of'),
        sa.Index(None, 'created_at', 'id'),
        sa.Index(None, 'project_id', 'created_at', 'id'),
        sa.Index(None, 'resource_id', 'resource_action'),
        sa.Index(None, 'share_id', 'resource_action'),
    )
    yield (
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
        sa.Column('service_host', NAME, _service_host()),
        sa.Index(None, 'made_at'),
        sa.Index(None, 'resource_id', 'id'),
        sa.Index(None, 'service_host', 'id'),
    )


def _networks() -> Iterator[tuple[typing.Any, ...]]:
    yield (
        'share_networks',
        sa.Column('id', ID, primary_key=True),
        sa.Column('project_id', NAME, nullable=False),
        sa.Column('user_id', NAME),
        sa.Column('name', NAME),
        sa.Column('description', NAME),
        sa.Column('status', NAME, nullable=False),
        *_times(),
        sa.Index(None, 'created_at', 'id'),
        sa.Index(None, 'project_id', 'created_at', 'id'),
        sa.Index(None, 'status'),
    )
    yield (
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
        *_times(),
        sa.Index(None, 'neutron_net_id'),
        sa.Index(None, 'share_network_id', 'availability_zone_id'),
    )
    yield (
        'share_network_subnet_metadata',
        _part_of('share_network_subnets', 'share_network_subnet_id', primary_key=True),
        sa.Column('key', NAME, primary_key=True),
        sa.Column('value', sa.String(1023), nullable=False),
    )
    yield (
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
        *_times(),
        sa.Index(None, 'created_at', 'id'),
        sa.Index(None, 'project_id', 'created_at', 'id'),
    )
    yield (
        'share_network_security_services',
        _part_of('share_networks', 'share_network_id', primary_key=True),
        sa.Column(
            'security_service_id',
            ID,
            sa.ForeignKey('security_services.id'),
            primary_key=True,
        ),
        sa.Column('type', sa.String(32), nullable=False),
        sa.UniqueConstraint('share_network_id', 'type'),
        sa.Index(None, 'security_service_id'),
    )
    yield (
        'share_network_checks',
        _part_of('share_networks', 'share_network_id', primary_key=True),
        sa.Column('operation', sa.String(64), primary_key=True),
        sa.Column('host', NAME, primary_key=True),
        sa.Column('compatible', sa.Boolean),
        sa.Column('created_at', STAMP, nullable=False),
    )


def _servers() -> Iterator[tuple[typing.Any, ...]]:
    yield (
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
        *_times(),
        sa.UniqueConstraint('founding'),
        sa.Index(None, 'created_at', 'id'),
        sa.Index(None, 'host', 'status'),
        sa.Index(None, 'share_network_id'),
        sa.Index(None, 'source_share_server_id'),
        sa.Index(None, 'status'),
        sa.Index(None, 'task_state'),
    )
    yield (
        'share_server_backend_details',
        _part_of('share_servers', 'share_server_id', primary_key=True),
        sa.Column('key', NAME, primary_key=True),
        sa.Column('value', sa.String(1023), nullable=False),
    )
    yield (
        'share_server_subnets',
        _part_of('share_servers', 'share_server_id', primary_key=True),
        sa.Column(
            'share_network_subnet_id',
            ID,
            sa.ForeignKey('share_network_subnets.id'),
            primary_key=True,
        ),
        sa.Index(None, 'share_network_subnet_id'),
    )
    yield ('network_segments', sa.Column('segment', sa.String(128), primary_key=True))
    yield (
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
        *_times(),
        sa.UniqueConstraint('segment', 'ip_address'),
        sa.Index(None, 'share_network_subnet_id'),
        sa.Index(None, 'share_server_id'),
    )
    yield (
        'share_server_migrations',
        sa.Column('id', ID, primary_key=True),
        sa.Column('source_server_id', ID, nullable=False),
        sa.Column('destination_server_id', ID),
        sa.Column('open_for', ID),
        sa.Column('source_host', NAME, nullable=False),
        sa.Column('destination_host', NAME, nullable=False),
        sa.Column('destination_pool', NAME),
        sa.Column('old_share_network_id', ID),
        sa.Column('new_share_network_id', ID),
        sa.Column('writable', sa.Boolean, nullable=False),
        sa.Column('nondisruptive', sa.Boolean, nullable=False),
        sa.Column('preserve_snapshots', sa.Boolean, nullable=False),
        sa.Column('phase', sa.Integer, nullable=False),
        sa.Column('outcome', NAME),
        sa.Column('can_cancel', sa.Boolean, nullable=False),
        sa.Column('tells_progress', sa.Boolean, nullable=False),
        sa.Column('made_destination', sa.Boolean, nullable=False),
        sa.Column('is_set_up', sa.Boolean, nullable=False),
        sa.Column('casts_rules', sa.Boolean, nullable=False),
        sa.Column('progress', sa.Integer),
        sa.Column('heard_at', STAMP),
        sa.Column('error', sa.String(1000)),
        sa.Column('project_id', NAME),
        sa.Column('user_id', NAME),
        *_times(),
        sa.Column('ended_at', STAMP),
        sa.Column('progress_details', DOCUMENT),
        sa.UniqueConstraint('open_for'),
        sa.Index(None, 'destination_server_id'),
        sa.Index(None, 'ended_at'),
        sa.Index(None, 'source_server_id', 'created_at'),
    )


def _replicas_and_tasks() -> Iterator[tuple[typing.Any, ...]]:
    yield (
        'share_instance_metadata',
        _part_of('share_instances', 'share_instance_id', primary_key=True),
        sa.Column('key', NAME, primary_key=True),
        sa.Column('value', sa.String(1023), nullable=False),
    )
    yield (
        'service_incarnations',
        sa.Column(
            'service_id',
            COUNTER,
            sa.ForeignKey('services.id', ondelete='CASCADE'),
            primary_key=True,
        ),
        sa.Column('incarnation', ID, primary_key=True),
        sa.Column('started_at', sa.Double, nullable=False),
        sa.Column('heartbeat_at', sa.Double, nullable=False),
        sa.Column('ready_at', sa.Double),
        sa.Column('health', sa.Text),
        sa.Index(None, 'heartbeat_at'),
    )
    yield (
        'drivers_private_data',
        sa.Column('entity_uuid', ID, primary_key=True),
        sa.Column('key', NAME, primary_key=True),
        sa.Column('value', sa.String(1023), nullable=False),
        *_times(),
    )
    yield (
        'cluster_tasks',
        sa.Column('name', NAME, primary_key=True),
        sa.Column('due_at', sa.Double, nullable=False),
        sa.Column('owner', NAME),
        sa.Column('lease_until', sa.Double),
        sa.Column('position', COUNTER),
    )


def _group_types() -> Iterator[tuple[typing.Any, ...]]:
    yield (
        'share_group_types',
        sa.Column('id', ID, primary_key=True),
        sa.Column('name', NAME, nullable=False),
        sa.Column('is_public', sa.Boolean, nullable=False),
        *_times(),
        sa.UniqueConstraint('name'),
    )
    yield (
        'share_group_type_share_type_mappings',
        _part_of('share_group_types', 'share_group_type_id', primary_key=True),
        sa.Column(
            'share_type_id', ID, sa.ForeignKey('share_types.id'), primary_key=True
        ),
        sa.Index(None, 'share_type_id'),
    )
    yield (
        'share_group_type_specs',
        _part_of('share_group_types', 'share_group_type_id', primary_key=True),
        sa.Column('spec_key', NAME, primary_key=True),
        sa.Column('spec_value', NAME, nullable=False),
    )
    yield (
        'share_group_type_projects',
        _part_of('share_group_types', 'share_group_type_id', primary_key=True),
        sa.Column('project_id', NAME, primary_key=True),
    )


def _transfers() -> Iterator[tuple[typing.Any, ...]]:
    yield (
        'freed_addresses',
        sa.Column('segment', sa.String(128), primary_key=True),
        sa.Column('ip_address', sa.String(64), primary_key=True),
        sa.Column('freed_at', STAMP, nullable=False),
    )
    yield (
        'transfers',
        sa.Column('id', ID, primary_key=True),
        sa.Column('status', sa.String(16), nullable=False),
        sa.Column('resource_type', sa.String(36), nullable=False),
        _part_of('shares', 'resource_id', nullable=False),
        sa.Column('display_name', NAME),
        sa.Column('salt', NAME, nullable=False),
        sa.Column('crypt_hash', NAME, nullable=False),
        sa.Column('source_project_id', NAME, nullable=False),
        sa.Column('destination_project_id', NAME),
        sa.Column('destination_user_id', NAME),
        sa.Column('clear_access_rules', sa.Boolean, nullable=False),
        sa.Column('expires_at', STAMP, nullable=False),
        *_times(),
        sa.Index(None, 'created_at', 'id'),
        sa.Index(None, 'expires_at', 'id'),
        sa.Index(None, 'resource_id', unique=True),
        sa.Index(None, 'source_project_id', 'created_at', 'id'),
        sa.Index(None, 'status'),
    )


def _qos_types() -> Iterator[tuple[typing.Any, ...]]:
    yield (
        'qos_types',
        sa.Column('id', ID, primary_key=True),
        sa.Column('name', NAME, nullable=False),
        sa.Column('description', NAME),
        *_times(),
        sa.UniqueConstraint('name'),
        sa.Index(None, 'created_at', 'id'),
    )
    yield (
        'qos_type_specs',
        _part_of('qos_types', 'qos_type_id', primary_key=True),
        sa.Column('spec_key', NAME, primary_key=True),
        sa.Column('spec_value', NAME, nullable=False),
    )


def _groups() -> Iterator[tuple[typing.Any, ...]]:
    yield (
        'share_groups',
        sa.Column('id', ID, primary_key=True),
        sa.Column('project_id', NAME, nullable=False),
        sa.Column('user_id', NAME),
        sa.Column('name', NAME),
        sa.Column('description', NAME),
        sa.Column('status', NAME, nullable=False),
        sa.Column('host', NAME),
        sa.Column('service_host', NAME, _service_host()),
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
        *_times(),
        sa.Index(None, 'created_at', 'id'),
        sa.Index(None, 'project_id', 'created_at', 'id'),
        sa.Index(None, 'service_host', 'status'),
        sa.Index(None, 'share_group_type_id'),
        sa.Index(None, 'status'),
    )
    yield (
        'share_group_share_type_mappings',
        _part_of('share_groups', 'share_group_id', primary_key=True),
        sa.Column(
            'share_type_id', ID, sa.ForeignKey('share_types.id'), primary_key=True
        ),
        sa.Index(None, 'share_type_id'),
    )
    yield (
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
        *_times(),
        sa.Index(None, 'created_at', 'id'),
        sa.Index(None, 'project_id', 'created_at', 'id'),
        sa.Index(None, 'share_group_id'),
        sa.Index(None, 'status'),
    )
    yield (
        'share_group_snapshot_members',
        sa.Column('id', ID, primary_key=True),
        _part_of('share_group_snapshots', 'share_group_snapshot_id', nullable=False),
        sa.Column('share_id', ID, nullable=False),
        sa.Column('share_instance_id', ID, nullable=False),
        sa.Column('size', sa.Integer, nullable=False),
        sa.Column('share_proto', NAME, nullable=False),
        sa.Column('provider_location', NAME),
        *_times(),
        sa.Index(None, 'share_group_snapshot_id'),
        sa.Index(None, 'share_id'),
        sa.Index(None, 'share_instance_id'),
    )


def _migrations() -> Iterator[tuple[typing.Any, ...]]:
    yield (
        'share_migrations',
        sa.Column('id', ID, primary_key=True),
        _part_of('shares', 'share_id', nullable=False),
        sa.Column('open_for', ID),
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
        *_times(),
        sa.Column('ended_at', STAMP),
        sa.UniqueConstraint('open_for'),
        sa.UniqueConstraint('share_id'),
        sa.Index(None, 'source_host'),
    )
