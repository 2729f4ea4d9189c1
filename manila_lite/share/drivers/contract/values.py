"""Values passed between manager and driver: inputs and replies."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
import datetime
from typing import Any, ClassVar, NotRequired, TypedDict

# Inputs of drivers


class _Record(Mapping[str, Any]):
    """Fields that are attributes and also items, as drivers expect."""

    __slots__ = ()
    _derived: ClassVar[tuple[str, ...]] = ()

    def __getitem__(self, key: str) -> Any:
        if key in self.__slots__ or key in self._derived:
            return getattr(self, key)
        raise KeyError(key)

    def __iter__(self) -> Iterator[str]:
        yield from self.__slots__
        yield from self._derived

    def __len__(self) -> int:
        return len(self.__slots__) + len(self._derived)


class StoredRecord(_Record):
    """A record of a row that exists, for drivers that look whether so."""

    __slots__ = ()
    _derived: ClassVar[tuple[str, ...]] = ('deleted', 'deleted_at')

    @property
    def deleted(self) -> bool:
        return False

    @property
    def deleted_at(self) -> None:
        return None


class ExportLocation(TypedDict):
    """One path to reach a share; `metadata` may have preferred: 'True'."""

    path: str
    is_admin_only: bool
    metadata: dict[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class ShareGroupForDriver(StoredRecord):
    """A share group; `host` is host@backend#pool.

    `share_types` are the types that its shares may have, each as a mapping
    with `share_type_id`. `consistent_snapshot_support` is pool, host or None.
    `shares` are given only to create a group with all of them.
    """

    id: str
    project_id: str
    user_id: str | None = None
    name: str | None = None
    description: str | None = None
    status: str | None = None
    host: str | None = None
    availability_zone_id: str | None = None
    share_group_type_id: str | None = None
    share_types: list[dict[str, str]] = field(default_factory=list)
    shares: 'list[ShareForDriver]' = field(default_factory=list)
    consistent_snapshot_support: str | None = None
    source_share_group_snapshot_id: str | None = None
    share_network_id: str | None = None
    share_server_id: str | None = None
    created_at: datetime.datetime | None = None
    updated_at: datetime.datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ShareForDriver(StoredRecord):
    """A share instance: `id` and `name` are those of the instance.

    `host` is host@backend#pool, `export_locations` is what the driver last
    replied, and `share_server` is the server it is on, if any. A replica has
    a `replica_state`; `cast_rules_to_readonly` means that its rules are
    passed as read-only. It was given its host at `scheduled_at` and became
    available for the first time at `launched_at`. `qos_specs` has the
    present specs of its QoS type; it is empty without one.
    """

    id: str
    share_id: str
    name: str
    size: int
    share_proto: str
    project_id: str
    user_id: str | None = None
    host: str | None = None
    status: str | None = None
    share_type_id: str | None = None
    qos_type_id: str | None = None
    qos_specs: Mapping[str, str] = field(default_factory=dict)
    availability_zone: str | None = None
    availability_zone_id: str | None = None
    snapshot_id: str | None = None
    display_name: str | None = None
    is_public: bool = False
    share_group_id: str | None = None
    source_share_group_snapshot_member_id: str | None = None
    encryption_key_ref: str | None = None
    progress: str | None = None
    mount_point_name: str | None = None
    replica_state: str | None = None
    replication_type: str | None = None
    access_rules_status: str | None = None
    cast_rules_to_readonly: bool = False
    share_network_id: str | None = None
    share_server_id: str | None = None
    share_server: 'ShareServerForDriver | None' = None
    created_at: datetime.datetime | None = None
    updated_at: datetime.datetime | None = None
    scheduled_at: datetime.datetime | None = None
    launched_at: datetime.datetime | None = None
    metadata: Mapping[str, str] = field(default_factory=dict)
    export_locations: list[ExportLocation] = field(default_factory=list)

    _derived: ClassVar[tuple[str, ...]] = (
        *StoredRecord._derived,
        'export_location',
        'terminated_at',
    )

    @property
    def terminated_at(self) -> None:
        """None, as for every share that exists."""
        return None

    @property
    def export_location(self) -> str | None:
        """The first path, for drivers that have only one."""
        return next((e['path'] for e in self.export_locations), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotForDriver(StoredRecord):
    """A snapshot instance with the share instance it belongs to.

    `size` is the size of the share when the snapshot was created. `share_id`
    is the id of the share instance, as drivers expect: they know no other.
    """

    id: str
    snapshot_id: str
    name: str
    size: int
    share: ShareForDriver
    status: str | None = None
    progress: str | None = None
    provider_location: str | None = None
    created_at: datetime.datetime | None = None
    updated_at: datetime.datetime | None = None
    metadata: Mapping[str, str] = field(default_factory=dict)

    _derived: ClassVar[tuple[str, ...]] = (
        *StoredRecord._derived,
        'share_id',
        'share_instance_id',
        'share_name',
        'share_proto',
        'share_size',
        'project_id',
        'user_id',
    )

    @property
    def share_id(self) -> str:
        return self.share.id

    @property
    def share_instance_id(self) -> str:
        return self.share.id

    @property
    def share_name(self) -> str:
        return self.share.name

    @property
    def share_proto(self) -> str:
        return self.share.share_proto

    @property
    def share_size(self) -> int:
        return self.size

    @property
    def project_id(self) -> str:
        return self.share.project_id

    @property
    def user_id(self) -> str | None:
        return self.share.user_id


@dataclass(frozen=True, slots=True, kw_only=True)
class ShareGroupSnapshotForDriver(StoredRecord):
    """A snapshot of a share group.

    Each of `share_group_snapshot_members` is the snapshot of one share, whose
    `id` and `snapshot_id` are those of the member.
    """

    id: str
    share_group_id: str
    project_id: str
    user_id: str | None = None
    name: str | None = None
    description: str | None = None
    status: str | None = None
    share_group: ShareGroupForDriver | None = None
    share_group_snapshot_members: list[SnapshotForDriver] = field(default_factory=list)
    created_at: datetime.datetime | None = None
    updated_at: datetime.datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ShareServerForDriver(StoredRecord):
    """A share server, as passed to its driver.

    `host` is host@backend, `backend_details` are the details stored for the
    driver, and `network_allocations` are its addresses.
    """

    id: str
    host: str
    status: str
    task_state: str | None = None
    identifier: str | None = None
    share_network_id: str | None = None
    share_network_subnet_ids: list[str] = field(default_factory=list)
    is_auto_deletable: bool = True
    source_share_server_id: str | None = None
    encryption_key_ref: str | None = None
    security_service_update_support: bool = False
    network_allocation_update_support: bool = False
    share_replicas_migration_support: bool = False
    created_at: datetime.datetime | None = None
    updated_at: datetime.datetime | None = None
    backend_details: Mapping[str, str] = field(default_factory=dict)
    network_allocations: list['NetworkAllocation'] = field(default_factory=list)


class NetworkAllocation(TypedDict):
    """An address of a share server; `label` is `user` or `admin`."""

    id: str
    share_server_id: str
    share_network_subnet_id: str | None
    label: str
    ip_address: str
    ip_version: int | None
    cidr: str | None
    gateway: str | None
    mtu: int | None
    network_type: str | None
    segmentation_id: int | None
    mac_address: str | None


class SecurityServiceForDriver(TypedDict):
    """How to reach a security service of the project."""

    id: str
    type: str
    name: str | None
    dns_ip: str | None
    server: str | None
    domain: str | None
    user: str | None
    password: str | None
    ou: str | None
    default_ad_site: str | None


class NetworkInfo(TypedDict):
    """The settings of a server on one subnet."""

    server_id: str
    backend_name: str
    share_network_id: str
    share_network_subnet_id: str
    neutron_net_id: str | None
    neutron_subnet_id: str | None
    network_type: str | None
    segmentation_id: int | None
    cidr: str | None
    gateway: str | None
    mtu: int | None
    ip_version: int | None
    security_services: list[SecurityServiceForDriver]
    network_allocations: list[NetworkAllocation]
    admin_network_allocations: list[NetworkAllocation]
    subnet_metadata: dict[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class AccessRuleForDriver(StoredRecord):
    """An access rule of a share or snapshot, for one instance of it.

    `id` is that of the access rule; replies refer to it. `state` is the
    state of the rule on this instance, and `access_key` is what the driver
    last replied. Snapshots are always read-only.
    """

    id: str
    share_id: str
    access_type: str
    access_to: str
    access_level: str = 'rw'
    access_key: str | None = None
    state: str | None = None

    _derived: ClassVar[tuple[str, ...]] = (*StoredRecord._derived, 'access_id')

    @property
    def access_id(self) -> str:
        """The same id, under the name that most drivers use."""
        return self.id


# Replies of drivers

ExportLocationsReply = str | Iterable[str | ExportLocation | Mapping[str, Any]] | None


class StatusReply(TypedDict):
    """The actual state: available, error or still being created.

    The `replica_state` of a replica says whether it is active. Of the
    snapshot of a share group, members with their `id` may be reported.
    """

    status: str
    replica_state: NotRequired[str]
    size: NotRequired[int]
    share_proto: NotRequired[str]
    progress: NotRequired[str]
    provider_location: NotRequired[str]
    export_locations: NotRequired[ExportLocationsReply]
    share_group_snapshot_members: NotRequired[list[Mapping[str, Any]]]


class NewShareReply(TypedDict):
    """A share from a snapshot: available or creating_from_snapshot."""

    status: str
    export_locations: NotRequired[ExportLocationsReply]


class SnapshotReply(TypedDict, total=False):
    """What to store for a new snapshot; all keys are optional."""

    provider_location: str
    size: int
    status: str
    export_locations: ExportLocationsReply


class ReplicaReply(TypedDict, total=False):
    """The new state of a replica; missing keys mean no change.

    `replica_state` is active, in_sync, out_of_sync or error.
    `access_rules_status` is active if the given rules apply.
    """

    id: str
    export_locations: ExportLocationsReply
    replica_state: str | None
    access_rules_status: str
    share_access_rules: 'AccessReplies'


class ReplicaStateReply(TypedDict, total=False):
    """The state of a replica that is not active; a missing one is no change.

    Clients of the replica see what its share had at `synced_at`, in UTC, at
    least. Without it the age of the replica is not known.
    """

    replica_state: str | None
    synced_at: datetime.datetime


class ReplicaSnapshot(TypedDict):
    """One snapshot on the active replica and on another replica."""

    active_replica_snapshot: SnapshotForDriver
    share_replica_snapshot: SnapshotForDriver


class ReplicatedSnapshotReply(TypedDict, total=False):
    """The state of a snapshot on the replica with the instance `id`.

    `status` is available, creating, error, or deleted once it is gone.
    """

    id: str
    status: str
    progress: str
    provider_location: str
    size: int
    export_locations: ExportLocationsReply


class AccessReply(TypedDict, total=False):
    """The result of one rule: active or error, and its access key.

    The users who gave a rule in error read its `reason`.
    """

    state: str
    reason: str
    access_key: str | None


# By rule id. Rules that are not mentioned are considered applied.
AccessReplies = Mapping[str, AccessReply]


class ManageReply(TypedDict):
    """The properties of a managed share; the size is required."""

    size: int
    export_locations: NotRequired[ExportLocationsReply]


class ManageSnapshotReply(TypedDict):
    """The properties of a managed snapshot; the size is required."""

    size: int
    provider_location: NotRequired[str]
    export_locations: NotRequired[ExportLocationsReply]


class EnsureReply(TypedDict, total=False):
    """What has changed about a share since the last reply."""

    export_locations: ExportLocationsReply
    status: str
    reapply_access_rules: bool
    metadata: dict[str, str]


def normalise_export_locations(reply: ExportLocationsReply) -> list[ExportLocation]:
    """Return export locations in full form, whatever form was given."""
    locations = [reply] if isinstance(reply, str) else reply or []
    return [_export_location(location) for location in locations]


def _export_location(
    location: str | ExportLocation | Mapping[str, Any],
) -> ExportLocation:
    if isinstance(location, str):
        location = {'path': location}
    return ExportLocation(
        path=location['path'],
        is_admin_only=bool(location.get('is_admin_only', False)),
        metadata={
            key: str(value) for key, value in (location.get('metadata') or {}).items()
        },
    )
