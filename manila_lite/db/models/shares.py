"""Shares with their instances and exports, backups and transfers."""

import sqlalchemy as sa
from sqlalchemy.orm import mapped_column

from manila_lite.db.models import base
from manila_lite.states.access_rule import RulesStatus


class Share(base.Record):
    """A user's share. Its instances have the status, host and type."""

    __tablename__ = 'shares'
    __table_args__ = base.table_args(
        sa.Index(None, 'project_id', 'created_at', 'id'),
        sa.Index(None, 'created_at', 'id'),
        sa.Index(None, 'display_name', 'created_at', 'id'),
        sa.Index(None, 'is_public', 'created_at'),
        sa.Index(None, 'snapshot_id'),
        sa.Index(None, 'is_soft_deleted', 'scheduled_to_be_deleted_at'),
        sa.Index(None, 'share_group_id'),
        sa.Index(None, 'task_state'),
    )

    user_id = mapped_column(base.Name)
    project_id = mapped_column(base.Name, nullable=False)
    size = mapped_column(sa.Integer, nullable=False)
    display_name = mapped_column(base.Name)
    display_description = mapped_column(base.Name)
    snapshot_id = mapped_column(base.Id)
    source_backup_id = mapped_column(base.Id)
    snapshot_support = mapped_column(sa.Boolean, nullable=False)
    create_share_from_snapshot_support = mapped_column(sa.Boolean, nullable=False)
    revert_to_snapshot_support = mapped_column(sa.Boolean, nullable=False)
    mount_snapshot_support = mapped_column(sa.Boolean, nullable=False)
    snapshot_inherit_share_access_support = mapped_column(sa.Boolean, nullable=False)
    replication_type = mapped_column(base.Name)
    share_proto = mapped_column(base.Name, nullable=False)
    is_public = mapped_column(sa.Boolean, nullable=False)
    share_group_id = mapped_column(base.Id)
    source_share_group_snapshot_member_id = mapped_column(base.Id)
    task_state = mapped_column(base.Name)
    is_soft_deleted = mapped_column(sa.Boolean, nullable=False)
    scheduled_to_be_deleted_at = mapped_column(base.Timestamp)


class ShareMetadata(base.Metadata):
    __tablename__ = 'share_metadata'

    share_id = base.part_of('shares', primary_key=True)


class ShareInstance(base.Base):
    """One copy of a share on a back end; `host` is host@backend#pool."""

    __tablename__ = 'share_instances'
    __table_args__ = base.table_args(
        sa.Index(None, 'share_id'),
        sa.Index(None, 'host', 'status'),
        sa.Index(None, 'service_host', 'status', 'id'),
        sa.Index(None, 'service_host', 'replica_state', 'id'),
        sa.Index(None, 'service_host', 'synced_at'),
        sa.Index(None, 'status'),
        sa.Index(None, 'access_rules_status'),
        sa.Index(None, 'access_stale'),
        sa.Index(None, 'share_type_id'),
        sa.Index(None, 'qos_type_id'),
        sa.Index(None, 'mount_point_name'),
        sa.Index(None, 'share_network_id'),
        sa.Index(None, 'share_server_id'),
        sa.Index(None, 'created_at', 'id'),
        sa.Index(None, 'replica_state', 'id'),
        sa.Index(None, 'sole_active_of', unique=True),
    )

    id = mapped_column(base.Id, primary_key=True)
    share_id = mapped_column(sa.ForeignKey('shares.id'), nullable=False)
    host = mapped_column(base.Name)
    status = mapped_column(base.Name, nullable=False)
    progress = mapped_column(sa.String(32))
    mount_point_name = mapped_column(base.Name)
    access_rules_status = mapped_column(
        base.Name, nullable=False, default=RulesStatus.ACTIVE
    )
    encryption_key_ref = mapped_column(base.Id)
    replica_state = mapped_column(base.Name)
    cast_rules_to_readonly = mapped_column(sa.Boolean, nullable=False)
    share_type_id = mapped_column(sa.ForeignKey('share_types.id'))
    availability_zone_id = mapped_column(sa.ForeignKey('availability_zones.id'))
    share_network_id = mapped_column(base.Id)
    share_server_id = mapped_column(base.Id)
    created_at = mapped_column(base.Timestamp, nullable=False)
    updated_at = mapped_column(base.Timestamp)
    # The rules on the back end may differ: all of them must be sent again.
    access_stale = mapped_column(
        'access_doubted',
        sa.Boolean,
        key='access_stale',
        nullable=False,
        server_default='0',
    )
    # The share, on its active replica if only one may be active; unique.
    sole_active_of = mapped_column(base.Id)
    # Incremented when another replica becomes active or the active one gets
    # other data: a reply of a driver is valid for the generation in which
    # it was asked.
    replica_generation = mapped_column(
        'replica_round',
        sa.Integer,
        key='replica_generation',
        nullable=False,
        server_default='0',
    )
    service_host = base.service_host_column()
    # When a host was chosen, and when the instance was first available.
    scheduled_at = mapped_column(base.Timestamp)
    launched_at = mapped_column(base.Timestamp)
    # The back end did not take its rules when they were sent again.
    access_sync_failed = mapped_column(sa.Boolean, nullable=False, server_default='0')
    # Not a foreign key, which SQLite could not add to the table: see
    # `lock_default` and `delete` of the queries of QoS types.
    qos_type_id = mapped_column(base.Id)
    # Of a passive replica whose driver reports it: when it had the content
    # of its share.
    synced_at = mapped_column(
        base.Timestamp,
        nullable=False,
        server_default=sa.text(f"'{base.NEVER.isoformat(' ', 'microseconds')}'"),
    )
    # When the driver, which had the share, was asked to remove it.
    removal_began_at = mapped_column(base.Timestamp)


class ShareInstanceMetadata(base.Metadata):
    """Metadata that users attach to replicas."""

    __tablename__ = 'share_instance_metadata'

    share_instance_id = base.part_of('share_instances', primary_key=True)


class ExportLocation(base.Record):
    __tablename__ = 'share_instance_export_locations'
    __table_args__ = base.table_args(
        sa.Index(None, 'share_instance_id'),
        # A path is longer than a key of these may be.
        sa.Index(
            None,
            'path',
            mysql_length=191,
            mariadb_length=191,
            info={'postgresql_using': 'hash'},
        ),
    )

    share_instance_id = base.part_of('share_instances')
    path = mapped_column(sa.String(2000), nullable=False)
    is_admin_only = mapped_column(sa.Boolean, nullable=False)


class ExportLocationMetadata(base.Metadata):
    __tablename__ = 'share_instance_export_locations_metadata'

    export_location_id = base.part_of(
        'share_instance_export_locations', primary_key=True
    )


class ShareBackup(base.Base):
    """A copy of the content of a share, kept until it is deleted.

    `host` is that of the share when the backup was requested, `topic` the
    service that keeps the content: the data service, or the share service on
    `host` with the driver there, which `backup_options`, as JSON, are for.
    `backup_type` is one of them. While it is restored, `restore_share_id` is
    the share that receives its content. `kept_copy`, as JSON, is what the data
    service keeps. `restore_position` is null while nothing is restored yet,
    else the number of steps done, or -1 while a worker does more of them.
    """

    __tablename__ = 'share_backups'
    __table_args__ = base.table_args(
        sa.Index(None, 'project_id', 'created_at', 'id'),
        sa.Index(None, 'created_at', 'id'),
        sa.Index(None, 'status'),
        sa.Index(None, 'share_id'),
        sa.Index(None, 'restore_share_id'),
    )

    id = mapped_column(base.Id, primary_key=True)
    share_id = mapped_column(sa.ForeignKey('shares.id'), nullable=False)
    project_id = mapped_column(base.Name, nullable=False)
    user_id = mapped_column(base.Name)
    name = mapped_column(base.Name)
    description = mapped_column(base.Name)
    status = mapped_column(base.Name, nullable=False)
    size = mapped_column(sa.Integer, nullable=False)
    host = mapped_column(base.Name)
    topic = mapped_column(base.Name, nullable=False)
    backup_type = mapped_column(base.Name)
    progress = mapped_column(sa.Integer, nullable=False)
    restore_progress = mapped_column(sa.Integer, nullable=False)
    restore_share_id = mapped_column(base.Id)
    availability_zone_id = mapped_column(sa.ForeignKey('availability_zones.id'))
    created_at = mapped_column(base.Timestamp, nullable=False)
    updated_at = mapped_column(base.Timestamp)
    backup_options = mapped_column(base.Document)
    kept_copy = mapped_column(base.Document)
    restore_position = mapped_column(base.BigInteger)


class Transfer(base.Record):
    """An offer of a share, which the holder of its key may accept.

    Only a hash of the key is stored. The project and the user that accept,
    and what they asked for, are set while the back end carries it out. The
    offer is deleted with the share.
    """

    __tablename__ = 'transfers'
    __table_args__ = base.table_args(
        sa.Index(None, 'resource_id', unique=True),
        sa.Index(None, 'status'),
        sa.Index(None, 'expires_at', 'id'),
        sa.Index(None, 'source_project_id', 'created_at', 'id'),
        sa.Index(None, 'created_at', 'id'),
    )

    status = mapped_column(sa.String(16), nullable=False)
    resource_type = mapped_column(sa.String(36), nullable=False)
    resource_id = base.part_of('shares')
    display_name = mapped_column(base.Name)
    salt = mapped_column(base.Name, nullable=False)
    crypt_hash = mapped_column(base.Name, nullable=False)
    source_project_id = mapped_column(base.Name, nullable=False)
    destination_project_id = mapped_column(base.Name)
    destination_user_id = mapped_column(base.Name)
    clear_access_rules = mapped_column(sa.Boolean, nullable=False)
    expires_at = mapped_column(base.Timestamp, nullable=False)
