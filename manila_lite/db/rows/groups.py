"""Share groups, and their snapshots."""

import datetime
from typing import Protocol


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
