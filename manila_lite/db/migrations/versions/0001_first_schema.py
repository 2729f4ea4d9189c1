"""The first schema: share types, services, shares, quotas, the engine."""

from alembic import op
import sqlalchemy as sa

from manila_lite.db.migrations.kinds import COUNTER, DOCUMENT, ID, NAME, OPTIONS, STAMP

revision = '0001'
down_revision = None


def upgrade() -> None:
    _create_types()
    _create_services()
    _create_shares()
    _create_quotas()
    _create_engine()


def downgrade() -> None:
    for table in (
        'transitions',
        'work',
        'quota_usages',
        'quota_classes',
        'project_share_type_quotas',
        'project_user_quotas',
        'quotas',
        'share_instance_export_locations_metadata',
        'share_instance_export_locations',
        'share_instances',
        'share_metadata',
        'shares',
        'messages',
        'pools',
        'services',
        'availability_zones',
        'share_type_projects',
        'share_type_extra_specs',
        'share_types',
    ):
        op.drop_table(table)


def _create_types() -> None:
    op.create_table(
        'share_types',
        sa.Column('id', ID, primary_key=True),
        sa.Column('name', NAME, nullable=False),
        sa.Column('description', NAME),
        sa.Column('is_public', sa.Boolean, nullable=False),
        sa.Column('created_at', STAMP, nullable=False),
        sa.Column('updated_at', STAMP),
        sa.UniqueConstraint('name'),
        **OPTIONS,
    )
    op.create_table(
        'share_type_extra_specs',
        sa.Column(
            'share_type_id',
            ID,
            sa.ForeignKey('share_types.id', ondelete='CASCADE'),
            primary_key=True,
        ),
        sa.Column('spec_key', NAME, primary_key=True),
        sa.Column('spec_value', NAME, nullable=False),
        **OPTIONS,
    )
    op.create_table(
        'share_type_projects',
        sa.Column(
            'share_type_id',
            ID,
            sa.ForeignKey('share_types.id', ondelete='CASCADE'),
            primary_key=True,
        ),
        sa.Column('project_id', NAME, primary_key=True),
        **OPTIONS,
    )


def _create_services() -> None:
    op.create_table(
        'availability_zones',
        sa.Column('id', ID, primary_key=True),
        sa.Column('name', NAME, nullable=False),
        sa.Column('created_at', STAMP, nullable=False),
        sa.Column('updated_at', STAMP),
        sa.UniqueConstraint('name'),
        **OPTIONS,
    )
    op.create_table(
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
        sa.Column('created_at', STAMP, nullable=False),
        sa.Column('updated_at', STAMP),
        sa.UniqueConstraint('host', 'binary'),
        **OPTIONS,
    )
    op.create_table(
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
        **OPTIONS,
    )
    op.create_table(
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
        sa.Index(None, 'expires_at'),
        sa.Index(None, 'project_id', 'created_at', 'id'),
        **OPTIONS,
    )


def _create_shares() -> None:
    op.create_table(
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
        sa.Column('created_at', STAMP, nullable=False),
        sa.Column('updated_at', STAMP),
        sa.Index(None, 'created_at', 'id'),
        sa.Index(None, 'is_public', 'created_at'),
        sa.Index(None, 'is_soft_deleted', 'scheduled_to_be_deleted_at'),
        sa.Index(None, 'project_id', 'created_at', 'id'),
        **OPTIONS,
    )
    op.create_table(
        'share_metadata',
        sa.Column(
            'share_id',
            ID,
            sa.ForeignKey('shares.id', ondelete='CASCADE'),
            primary_key=True,
        ),
        sa.Column('key', NAME, primary_key=True),
        sa.Column('value', sa.String(1023), nullable=False),
        **OPTIONS,
    )
    op.create_table(
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
        sa.Column('created_at', STAMP, nullable=False),
        sa.Column('updated_at', STAMP),
        sa.Index(None, 'created_at', 'id'),
        sa.Index(None, 'host', 'status'),
        sa.Index(None, 'share_id'),
        sa.Index(None, 'share_type_id'),
        sa.Index(None, 'status'),
        **OPTIONS,
    )
    op.create_table(
        'share_instance_export_locations',
        sa.Column('id', ID, primary_key=True),
        sa.Column(
            'share_instance_id',
            ID,
            sa.ForeignKey('share_instances.id', ondelete='CASCADE'),
            nullable=False,
        ),
        sa.Column('path', sa.String(2000), nullable=False),
        sa.Column('is_admin_only', sa.Boolean, nullable=False),
        sa.Column('created_at', STAMP, nullable=False),
        sa.Column('updated_at', STAMP),
        sa.Index(None, 'share_instance_id'),
        **OPTIONS,
    )
    op.create_table(
        'share_instance_export_locations_metadata',
        sa.Column(
            'export_location_id',
            ID,
            sa.ForeignKey('share_instance_export_locations.id', ondelete='CASCADE'),
            primary_key=True,
        ),
        sa.Column('key', NAME, primary_key=True),
        sa.Column('value', sa.String(1023), nullable=False),
        **OPTIONS,
    )


def _create_quotas() -> None:
    op.create_table(
        'quotas',
        sa.Column('project_id', NAME, primary_key=True),
        sa.Column('resource', NAME, primary_key=True),
        sa.Column('hard_limit', sa.BigInteger, nullable=False),
        **OPTIONS,
    )
    op.create_table(
        'project_user_quotas',
        sa.Column('project_id', NAME, primary_key=True),
        sa.Column('user_id', NAME, primary_key=True),
        sa.Column('resource', sa.String(64), primary_key=True),
        sa.Column('hard_limit', sa.BigInteger, nullable=False),
        **OPTIONS,
    )
    op.create_table(
        'project_share_type_quotas',
        sa.Column('project_id', NAME, primary_key=True),
        sa.Column(
            'share_type_id',
            ID,
            sa.ForeignKey('share_types.id', ondelete='CASCADE'),
            primary_key=True,
        ),
        sa.Column('resource', sa.String(64), primary_key=True),
        sa.Column('hard_limit', sa.BigInteger, nullable=False),
        **OPTIONS,
    )
    op.create_table(
        'quota_classes',
        sa.Column('class_name', NAME, primary_key=True),
        sa.Column('resource', NAME, primary_key=True),
        sa.Column('hard_limit', sa.BigInteger, nullable=False),
        **OPTIONS,
    )
    op.create_table(
        'quota_usages',
        sa.Column('project_id', NAME, primary_key=True),
        sa.Column('scope', sa.String(16), primary_key=True),
        sa.Column('scope_id', NAME, primary_key=True),
        sa.Column('resource', sa.String(64), primary_key=True),
        sa.Column('in_use', sa.BigInteger, nullable=False),
        sa.Column('reserved', sa.BigInteger, nullable=False),
        sa.Column('hard_limit', sa.BigInteger, nullable=False),
        **OPTIONS,
    )


def _create_engine() -> None:
    op.create_table(
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
        sa.Column('fence', sa.Integer, nullable=False),
        sa.Column('asked', sa.Integer, nullable=False),
        sa.Column('owner', NAME),
        sa.Column('lease_until', sa.Double),
        sa.Column('next_try_at', sa.Double, nullable=False),
        sa.Column('step', NAME),
        sa.Column('error', sa.Text),
        sa.Column('request_id', NAME),
        sa.Column('created_at', STAMP, nullable=False),
        sa.UniqueConstraint('one_key'),
        sa.Index(None, 'resource', 'resource_id'),
        sa.Index(None, 'state', 'lease_until'),
        sa.Index(None, 'state', 'queue', 'created_at'),
        **OPTIONS,
    )
    op.create_table(
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
        sa.Index(None, 'made_at'),
        sa.Index(None, 'resource', 'resource_id', 'id'),
        **OPTIONS,
    )
