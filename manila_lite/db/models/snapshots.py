"""Snapshots, their instances on back ends, and their access rules."""

import sqlalchemy as sa
from sqlalchemy.orm import mapped_column

from manila_lite.db.models import base


class Snapshot(base.Record):
    """A user's snapshot. Its instances have the status.

    Within a share, `created_at` gives the order in which the back end took
    the snapshots. `share_size` is the size the share had at that time.
    """

    __tablename__ = 'share_snapshots'
    __table_args__ = base.table_args(
        sa.Index(None, 'share_id', 'created_at', 'id'),
        sa.Index(None, 'project_id', 'created_at', 'id'),
        sa.Index(None, 'display_name', 'created_at', 'id'),
        sa.Index(None, 'created_at', 'id'),
    )

    user_id = mapped_column(base.Name)
    project_id = mapped_column(base.Name, nullable=False)
    share_id = mapped_column(sa.ForeignKey('shares.id'), nullable=False)
    size = mapped_column(sa.Integer, nullable=False)
    share_size = mapped_column(sa.Integer, nullable=False)
    share_proto = mapped_column(base.Name, nullable=False)
    display_name = mapped_column(base.Name)
    display_description = mapped_column(base.Name)


class SnapshotMetadata(base.Metadata):
    __tablename__ = 'share_snapshot_metadata'

    share_snapshot_id = base.part_of('share_snapshots', primary_key=True)


class SnapshotInstance(base.Base):
    """The snapshot of one share instance on its back end."""

    __tablename__ = 'share_snapshot_instances'
    __table_args__ = base.table_args(
        sa.Index(None, 'snapshot_id'),
        sa.Index(None, 'share_instance_id', 'status'),
        sa.Index(None, 'status'),
        sa.Index(None, 'access_stale'),
        sa.Index(None, 'created_at', 'id'),
    )

    id = mapped_column(base.Id, primary_key=True)
    snapshot_id = mapped_column(sa.ForeignKey('share_snapshots.id'), nullable=False)
    share_instance_id = mapped_column(
        sa.ForeignKey('share_instances.id'), nullable=False
    )
    status = mapped_column(base.Name, nullable=False)
    progress = mapped_column(sa.String(32))
    provider_location = mapped_column(base.Name)
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
    # The back end did not take them when they were sent again.
    access_sync_failed = mapped_column(sa.Boolean, nullable=False, server_default='0')


class SnapshotExportLocation(base.Record):
    __tablename__ = 'share_snapshot_instance_export_locations'
    __table_args__ = base.table_args(sa.Index(None, 'share_snapshot_instance_id'))

    share_snapshot_instance_id = base.part_of('share_snapshot_instances')
    path = mapped_column(sa.String(2000), nullable=False)
    is_admin_only = mapped_column(sa.Boolean, nullable=False)


class SnapshotAccessRule(base.Record):
    """A rule that lets clients mount a snapshot; see AccessRule."""

    __tablename__ = 'share_snapshot_access_map'
    __table_args__ = base.table_args(
        sa.UniqueConstraint('share_snapshot_id', 'access_type', 'target')
    )

    share_snapshot_id = base.part_of('share_snapshots')
    access_type = mapped_column(sa.String(64), nullable=False)
    access_to = mapped_column(base.Name, nullable=False)
    target = mapped_column(base.Name, nullable=False)


class SnapshotInstanceAccessRule(base.Record):
    __tablename__ = 'share_snapshot_instance_access_map'
    __table_args__ = base.table_args(
        sa.UniqueConstraint('access_id', 'share_snapshot_instance_id'),
        sa.Index(None, 'share_snapshot_instance_id', 'state'),
        sa.Index(None, 'state'),
    )

    share_snapshot_instance_id = base.part_of('share_snapshot_instances')
    access_id = base.part_of('share_snapshot_access_map')
    state = mapped_column(sa.String(32), nullable=False)
