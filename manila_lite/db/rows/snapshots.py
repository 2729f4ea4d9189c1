"""Snapshots, their instances and export locations."""

import datetime
from typing import Protocol

from manila_lite.db.rows.pages import OwnedRow


class SnapshotTarget(OwnedRow, Protocol):
    """A snapshot with the instance that requests decide on and act on."""

    id: str
    share_id: str
    size: int
    share_size: int
    instance_id: str
    status: str
    share_instance_id: str
    host: str
    share_server_id: str | None
    replica_state: str | None


class SnapshotParentRow(OwnedRow, Protocol):
    """A share instance as the parent of its next snapshot."""

    id: str
    share_id: str
    host: str
    share_type_id: str | None
    access_rules_status: str
    size: int
    share_proto: str
    replication_type: str | None
    is_soft_deleted: bool
    task_state: str | None
    newest_at: datetime.datetime | None
    newest_member_at: datetime.datetime | None
    newest_id: str | None


class PlainSnapshotInstanceRow(Protocol):
    """The columns that a snapshot instance has of its own."""

    id: str
    snapshot_id: str
    share_instance_id: str
    status: str
    progress: str | None
    provider_location: str | None
    created_at: datetime.datetime
    updated_at: datetime.datetime | None
    access_stale: bool
    access_sync_failed: bool


class SnapshotInstanceRow(PlainSnapshotInstanceRow, OwnedRow, Protocol):
    """A snapshot instance as managers read it, with its share instance."""

    share_id: str
    size: int
    share_size: int
    host: str
    share_type_id: str | None
    replica_state: str | None
    mount_snapshot_support: bool


class SnapshotOnInstanceRow(SnapshotInstanceRow, Protocol):
    """A snapshot instance with the status of its share instance."""

    share_status: str


class MigratingSnapshotRow(PlainSnapshotInstanceRow, Protocol):
    """A snapshot instance that moves with its share server."""

    project_id: str
    share_id: str
    size: int
    share_size: int
    mount_snapshot_support: bool


class SnapshotInstanceViewRow(PlainSnapshotInstanceRow, Protocol):
    """A snapshot instance as administrators see it."""

    share_id: str


class SnapshotExportLocationRow(Protocol):
    """An export location of a snapshot instance."""

    id: str
    share_snapshot_instance_id: str
    path: str
    is_admin_only: bool
    created_at: datetime.datetime
    updated_at: datetime.datetime | None
