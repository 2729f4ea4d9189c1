"""Shares, instances, replicas, groups, transfers and backups."""

import datetime
import typing
from typing import NamedTuple, Protocol

from manila_lite.db.rows.pages import OwnedRow


class ShareTarget(OwnedRow, Protocol):
    """A share with the instance that requests decide on and act on."""

    id: str
    is_public: bool
    size: int
    replication_type: str | None
    is_soft_deleted: bool
    task_state: str | None
    share_group_id: str | None
    snapshot_support: bool
    revert_to_snapshot_support: bool
    instance_id: str
    status: str
    host: str | None
    share_type_id: str | None
    access_rules_status: str
    replica_state: str | None
    share_server_id: str | None


class PlainInstanceRow(Protocol):
    """The columns that a share instance has of its own."""

    id: str
    share_id: str
    host: str
    status: str
    progress: str | None
    mount_point_name: str | None
    access_rules_status: str
    encryption_key_ref: str | None
    replica_state: str | None
    cast_rules_to_readonly: bool
    share_type_id: str | None
    qos_type_id: str | None
    availability_zone_id: str | None
    share_network_id: str | None
    share_server_id: str | None
    created_at: datetime.datetime
    updated_at: datetime.datetime | None
    access_stale: bool
    access_sync_failed: bool
    sole_active_of: str | None
    replica_generation: int
    scheduled_at: datetime.datetime | None
    launched_at: datetime.datetime | None
    removal_began_at: datetime.datetime | None


class InstanceRow(PlainInstanceRow, OwnedRow, Protocol):
    """A share instance as managers read it, with columns of its share."""

    size: int
    share_proto: str
    display_name: str | None
    snapshot_id: str | None
    replication_type: str | None
    share_group_id: str | None
    source_share_group_snapshot_member_id: str | None
    is_public: bool
    is_soft_deleted: bool
    task_state: str | None
    availability_zone: str | None


class ExpressionRow(Protocol):
    """What the expressions of filters and weighers know of a share."""

    share_id: str
    project_id: str
    size: int
    share_proto: str
    host: str | None
    display_name: str | None


class PlacementRow(ExpressionRow, Protocol):
    """An instance to be placed, its work, and one extra spec of its type."""

    id: str
    status: str
    share_type_id: str | None
    share_network_id: str | None
    share_group_id: str | None
    qos_type_id: str | None
    work_id: str
    kind: str
    args: str
    context: str
    spec_key: str | None
    spec_value: str | None


class InstanceHostRow(Protocol):
    """The id and the host of a placed share instance."""

    id: str
    host: str


class OwnedInstanceRow(OwnedRow, Protocol):
    """The id and the owner of a share instance."""

    id: str


class PathClaimRow(Protocol):
    """An instance with an export path; one being managed only claims it."""

    id: str
    share_id: str
    status: str
    share_server_id: str | None
    project_id: str


class ExpiredShareRow(Protocol):
    """A share in the recycle bin, and when its time there ends."""

    id: str
    scheduled_to_be_deleted_at: datetime.datetime


class RankedRow(Protocol):
    """What decides which instance a share or a snapshot is shown with."""

    status: str
    replica_state: str | None


class NewExportLocation(typing.TypedDict):
    """An export location to be stored, as drivers report it."""

    path: str
    is_admin_only: bool
    metadata: dict[str, str]


class ExportLocationRow(Protocol):
    """An export location of a share instance."""

    id: str
    share_instance_id: str
    path: str
    is_admin_only: bool
    created_at: datetime.datetime
    updated_at: datetime.datetime | None


DetailedInstance = tuple[InstanceRow, dict[str, str], list[ExportLocationRow]]
"""An instance, the metadata of its share, and its export locations."""


class CloneSourceRow(Protocol):
    """A snapshot as the source of a new share, with its share instance."""

    id: str
    project_id: str
    size: int
    share_proto: str
    instance_id: str
    status: str
    create_share_from_snapshot_support: bool
    host: str
    share_type_id: str | None
    availability_zone_id: str | None
    share_network_id: str | None
    share_server_id: str | None
    encryption_key_ref: str | None
    replica_state: str | None
    parent_created_at: datetime.datetime
    availability_zone: str | None


class ShareOnRow(Protocol):
    """A share with the status of one of its instances."""

    id: str
    name: str | None
    size: int
    share_proto: str
    project_id: str
    status: str


class TransferRow(Protocol):
    """A share transfer, and the instance of its share.

    It has neither the key nor its hash.
    """

    id: str
    project_id: str
    source_project_id: str
    destination_project_id: str | None
    resource_type: str
    resource_id: str
    display_name: str | None
    expires_at: datetime.datetime
    created_at: datetime.datetime
    instance_id: str


class OfferRow(Protocol):
    """What decides on the acceptance of a share transfer."""

    id: str
    share_id: str
    instance_id: str
    host: str
    salt: str
    crypt_hash: str
    expires_at: datetime.datetime


class AcceptedTransferRow(Protocol):
    """A share transfer that is being carried out, and for whom."""

    id: str
    status: str
    share_id: str
    project_id: str
    user_id: str | None
    clear_access_rules: bool
    host: str


class ExpiredTransferRow(Protocol):
    """A share transfer that was not accepted in time."""

    id: str
    instance_id: str
    expires_at: datetime.datetime


class SnapshotToTransferRow(Protocol):
    """A snapshot that changes hands with its share."""

    id: str
    project_id: str
    user_id: str | None
    size: int
    status: str


class ShareBackupRow(Protocol):
    """A backup of a share, with the name of its availability zone."""

    id: str
    share_id: str
    project_id: str
    user_id: str | None
    name: str | None
    description: str | None
    status: str
    size: int
    host: str | None
    topic: str
    backup_type: str | None
    backup_options: str | None
    progress: int
    restore_progress: int
    restore_share_id: str | None
    availability_zone: str | None
    created_at: datetime.datetime
    updated_at: datetime.datetime | None
    kept_copy: str | None
    restore_position: int | None


class ReplicaTarget(OwnedRow, Protocol):
    """A replica as requests authorize and check it."""

    id: str
    share_id: str
    host: str | None
    status: str
    replica_state: str
    replication_type: str


class ReplicaRow(Protocol):
    """An instance of a share, read under a lock of all of them."""

    id: str
    share_id: str
    host: str
    status: str
    replica_state: str | None
    replica_generation: int
    access_rules_status: str
    cast_rules_to_readonly: bool
    share_type_id: str | None
    share_network_id: str | None
    share_server_id: str | None
    availability_zone_id: str | None
    created_at: datetime.datetime


class ReplicaIdRow(Protocol):
    """The ids of a replica and of its share."""

    id: str
    share_id: str


class SyncedReplica(NamedTuple):
    """A replica that had the content of its share at a time, in UTC.

    The reply that said so counts for one generation of the replica.
    """

    replica_id: str
    replica_generation: int
    synced_at: datetime.datetime


class PlacedReplicaRow(Protocol):
    """A replica on a back end."""

    id: str
    host: str


class ReplicaStateRow(Protocol):
    """An instance of a share, a replica if it has a replica state."""

    id: str
    share_id: str
    replica_state: str | None


class ShareGroupRow(Protocol):
    """A share group with the name of its zone, without its share types."""

    id: str
    project_id: str
    user_id: str | None
    name: str | None
    description: str | None
    status: str
    host: str | None
    share_group_type_id: str
    availability_zone_id: str | None
    availability_zone: str | None
    source_share_group_snapshot_id: str | None
    share_network_id: str | None
    share_server_id: str | None
    consistent_snapshot_support: str | None
    created_at: datetime.datetime
    updated_at: datetime.datetime | None


class ShareGroupSnapshotRow(Protocol):
    """A snapshot of a share group, and the host of the group."""

    id: str
    share_group_id: str
    project_id: str
    user_id: str | None
    name: str | None
    description: str | None
    status: str
    host: str
    created_at: datetime.datetime
    updated_at: datetime.datetime | None


class GroupSnapshotMemberRow(Protocol):
    """The part of a group snapshot that has the content of one share."""

    id: str
    share_group_snapshot_id: str
    share_id: str
    share_instance_id: str
    size: int
    share_proto: str
    provider_location: str | None
    created_at: datetime.datetime
    updated_at: datetime.datetime | None


class MemberSourceRow(Protocol):
    """A member of a group snapshot as the source of a new share."""

    id: str
    size: int
    share_proto: str
    share_id: str
    create_share_from_snapshot_support: bool
    host: str
    share_type_id: str
    availability_zone_id: str | None
    encryption_key_ref: str | None


class GroupShareRow(Protocol):
    """A share of a group, which may become a member of its snapshot."""

    id: str
    instance_id: str
    size: int
    share_proto: str
    snapshot_support: bool
    is_soft_deleted: bool
