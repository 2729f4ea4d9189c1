"""The rows that queries return to other layers, by noun.

Each class names the columns that its readers may rely on; a row of the
database has them all, and so does the small object of a test. Rows are
read, never written to. `host` is host@backend#pool; it is null until the
instance is placed, but typed as set where readers only act on placed ones.
"""

import datetime
import typing
from typing import Protocol


class OwnedRow(Protocol):
    """The owner of a resource, as authorization and messages need it."""

    project_id: str
    user_id: str | None


class IdRow(Protocol):
    """A row of which only the id matters."""

    id: str


class IdStatusRow(Protocol):
    """The id and the status of a resource."""

    id: str
    status: str


# Shares


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
    availability_zone_id: str | None
    share_network_id: str | None
    share_server_id: str | None
    created_at: datetime.datetime
    updated_at: datetime.datetime | None
    access_stale: bool
    sole_active_of: str | None
    replica_generation: int


class InstanceRow(PlainInstanceRow, OwnedRow, Protocol):
    """A share instance as managers read it, with columns of its share."""

    size: int
    share_proto: str
    display_name: str | None
    snapshot_id: str | None
    replication_type: str | None
    share_group_id: str | None
    is_public: bool
    is_soft_deleted: bool
    availability_zone: str | None


class InstanceViewRow(PlainInstanceRow, Protocol):
    """A share instance as administrators see it."""

    availability_zone: str | None


class InstanceHostRow(Protocol):
    """The id and the host of a placed share instance."""

    id: str
    host: str


class OwnedInstanceRow(OwnedRow, Protocol):
    """A share instance of a back end, with its owner."""

    id: str
    host: str


class LostInstanceRow(OwnedRow, Protocol):
    """A share instance in flight for which no work is queued."""

    id: str
    host: str | None
    status: str
    share_id: str


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


class ExportLocationViewRow(ExportLocationRow, Protocol):
    """An export location as users see it."""

    share_id: str
    replica_state: str | None
    availability_zone: str | None


class CloneSourceRow(Protocol):
    """A snapshot as the source of a new share, with its share instance."""

    id: str
    size: int
    share_proto: str
    instance_id: str
    status: str
    create_share_from_snapshot_support: bool
    host: str
    share_type_id: str | None
    availability_zone_id: str | None
    share_network_id: str | None
    replica_state: str | None
    parent_created_at: datetime.datetime
    availability_zone: str | None


# Replicas


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


class ReplicaStateRow(Protocol):
    """An instance of a share, a replica if it has a replica state."""

    id: str
    share_id: str
    replica_state: str | None


class ReplicaViewRow(OwnedRow, Protocol):
    """A replica as users see it."""

    id: str
    share_id: str
    status: str
    replica_state: str
    host: str | None
    share_network_id: str | None
    share_server_id: str | None
    cast_rules_to_readonly: bool
    created_at: datetime.datetime
    updated_at: datetime.datetime | None
    availability_zone: str | None


# Snapshots


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
    newest_at: datetime.datetime | None
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


# Access rules and resource locks


class AccessRuleRow(Protocol):
    """A rule of a share or a snapshot on one instance, with its state."""

    id: str
    share_id: str
    access_type: str
    access_to: str
    access_level: str
    mapping_id: str
    state: str
    access_key: str | None


class ReplicaRuleRow(AccessRuleRow, Protocol):
    """A rule on one of several replicas."""

    share_instance_id: str


class RuleMappingRow(Protocol):
    """The state of a rule on one instance."""

    id: str
    state: str
    share_instance_id: str
    access_level: str


class RuleInstanceRow(Protocol):
    """A share instance whose rules a request is about to change."""

    id: str
    host: str
    status: str
    replica_state: str | None
    access_rules_status: str
    network_status: str | None


class AccessRuleTarget(OwnedRow, Protocol):
    """A rule as requests authorize it, with the state of its share."""

    id: str
    share_id: str
    access_type: str
    access_to: str
    access_level: str
    state: str
    access_key: str | None
    created_at: datetime.datetime
    updated_at: datetime.datetime | None
    access_rules_status: str
    is_public: bool
    status: str


class MountableInstanceRow(Protocol):
    """A snapshot instance whose rules a request is about to change."""

    id: str
    status: str
    host: str
    replica_state: str | None
    share_id: str
    mount_snapshot_support: bool
    snapshot_inherit_share_access_support: bool


class SnapshotRuleRow(Protocol):
    """The state of a rule of a snapshot on one of its instances."""

    access_id: str
    state: str
    snapshot_id: str


class OwnedIdRow(OwnedRow, Protocol):
    """The id and the owner of a resource."""

    id: str


class LockableRow(OwnedRow, Protocol):
    """A share or an access rule that a resource lock is put on."""

    id: str
    share_id: str
    is_public: bool
    is_soft_deleted: bool
    status: str


class ResourceLockRow(Protocol):
    """A lock that forbids one action on a resource."""

    id: str
    user_id: str
    project_id: str
    lock_context: str
    resource_id: str
    resource_type: str
    resource_action: str
    lock_reason: str | None
    share_id: str
    access_id: str | None
    because_of: str | None
    created_at: datetime.datetime
    updated_at: datetime.datetime | None


class HidingLockRow(Protocol):
    """The owner of a lock that hides an access rule."""

    user_id: str
    project_id: str


# Share networks


class ShareNetworkRow(OwnedRow, Protocol):
    """A share network as requests authorize and check it."""

    id: str
    name: str | None
    status: str

    def _asdict(self) -> dict[str, typing.Any]: ...


class NetworkServerRow(Protocol):
    """A share server on a network that is to be changed."""

    id: str
    host: str
    status: str
    is_auto_deletable: bool
    security_service_update_support: bool
    network_allocation_update_support: bool


class NetworkInstanceRow(Protocol):
    """A share instance on a network that is to be changed."""

    id: str
    share_id: str
    status: str
    access_rules_status: str
    share_server_id: str


class SubnetRow(Protocol):
    """A subnet of a share network."""

    id: str
    share_network_id: str
    availability_zone_id: str | None
    neutron_net_id: str | None
    neutron_subnet_id: str | None
    network_type: str | None
    cidr: str | None
    segmentation_id: int | None
    gateway: str | None
    mtu: int | None
    ip_version: int | None
    created_at: datetime.datetime
    updated_at: datetime.datetime | None


class SubnetServerRow(Protocol):
    """A share server with addresses in a subnet."""

    id: str
    host: str
    status: str
    is_auto_deletable: bool


class SecurityServiceRow(Protocol):
    """A security service, with its password."""

    id: str
    project_id: str
    type: str
    name: str | None
    description: str | None
    dns_ip: str | None
    server: str | None
    domain: str | None
    user: str | None
    password: str | None
    ou: str | None
    default_ad_site: str | None
    created_at: datetime.datetime
    updated_at: datetime.datetime | None


class AllocationRow(Protocol):
    """An address that is allocated to a share server."""

    id: str
    share_server_id: str
    share_network_subnet_id: str | None
    label: str
    segment: str
    ip_address: str
    ip_version: int | None
    cidr: str | None
    gateway: str | None
    mtu: int | None
    network_type: str | None
    segmentation_id: int | None
    mac_address: str | None
    created_at: datetime.datetime
    updated_at: datetime.datetime | None


# Share servers


class PlainServerRow(Protocol):
    """The columns of a share server; its `host` is host@backend."""

    id: str
    host: str
    share_network_id: str | None
    status: str
    task_state: str | None
    identifier: str | None
    is_auto_deletable: bool
    source_share_server_id: str | None
    security_service_update_support: bool
    network_allocation_update_support: bool
    share_replicas_migration_support: bool
    encryption_key_ref: str | None
    build_key: str | None
    idle_since: datetime.datetime | None
    created_at: datetime.datetime
    updated_at: datetime.datetime | None
    project_id: str | None
    share_network_name: str | None


class ShareServerRow(PlainServerRow, Protocol):
    """A share server as managers read it, with the owner of its network."""

    user_id: str | None


class ServerTarget(PlainServerRow, Protocol):
    """A share server as requests authorize, check and show it."""


class MigrationRow(Protocol):
    """One migration of a share server."""

    id: str
    source_server_id: str
    destination_server_id: str | None
    open_for: str | None
    source_host: str
    destination_host: str
    destination_pool: str | None
    old_share_network_id: str | None
    new_share_network_id: str | None
    writable: bool
    nondisruptive: bool
    preserve_snapshots: bool
    phase: int
    outcome: str | None
    can_cancel: bool
    tells_progress: bool
    made_destination: bool
    is_set_up: bool
    casts_rules: bool
    progress: int | None
    heard_at: datetime.datetime | None
    error: str | None
    project_id: str | None
    user_id: str | None
    created_at: datetime.datetime
    updated_at: datetime.datetime | None
    ended_at: datetime.datetime | None


class LatestMigrationRow(MigrationRow, Protocol):
    """The newest migration of a server, with the server's `task_state`."""

    task_state: str | None


class ServerShareRow(OwnedRow, Protocol):
    """A share server with one of the share instances on it.

    The columns of the share are null if the server has none.
    """

    id: str
    host: str
    status: str
    task_state: str | None
    share_network_id: str | None
    share_replicas_migration_support: bool
    instance_id: str
    instance_status: str
    instance_host: str
    access_rules_status: str
    share_type_id: str
    share_id: str
    replica_state: str | None
    size: int
    share_proto: str
    share_group_id: str | None
    has_copies: bool


class NetworkSubnetRow(Protocol):
    """A network with one of its subnets, as migrations compare them."""

    id: str
    status: str
    project_id: str
    subnet_id: str | None
    neutron_net_id: str | None
    neutron_subnet_id: str | None
    zone: str | None
    is_used: bool


# Services and pools


class ServiceRow(Protocol):
    """A service, with its zone and the time of the database."""

    id: int
    host: str
    binary: str
    topic: str
    availability_zone_id: str
    incarnation: str
    heartbeat_at: float
    health: str | None
    disabled: bool
    disabled_reason: str | None
    ensuring: bool
    backend_info: str | None
    created_at: datetime.datetime
    updated_at: datetime.datetime | None
    zone: str
    now: float


class LivenessRow(Protocol):
    """What tells whether the service behind a row is alive."""

    health: str | None
    heartbeat_at: float
    now: float


class PoolRow(Protocol):
    """A pool with the liveness of its service, and its zone."""

    host: str
    service_host: str
    capabilities: str
    total_gb: float | None
    free_gb: float | None
    allocated_gb: int
    pending_gb: int
    reported_at: float
    heartbeat_at: float
    disabled: bool
    health: str | None
    now: float
    zone_id: str
    zone: str


class ZoneRow(Protocol):
    """An availability zone."""

    id: str
    name: str
    created_at: datetime.datetime
    updated_at: datetime.datetime | None


# Share types


class TypeAccessRow(Protocol):
    """A project that may use a private share type."""

    share_type_id: str
    project_id: str


# Quotas, messages, recovery


class ChargedRow(OwnedRow, Protocol):
    """An instance of a share or snapshot, with what quota depends on."""

    share_type_id: str | None


class ChargedShareRow(ChargedRow, Protocol):
    """A share instance as the quota of shares reads it."""

    size: int
    replication_type: str | None


class ScopeUsageRow(Protocol):
    """The usage of one resource in a given scope, with the limit."""

    resource: str
    in_use: int
    reserved: int
    hard_limit: int


class UsageRow(ScopeUsageRow, Protocol):
    """The usage of one resource, with the kind of its scope."""

    scope: str


class ProjectUsageRow(Protocol):
    """The usage of one resource with its whole key, without the limit."""

    project_id: str
    scope: str
    scope_id: str
    resource: str
    in_use: int
    reserved: int


class MessageRow(Protocol):
    """A user message."""

    id: str
    project_id: str
    message_level: str
    request_id: str | None
    resource_type: str | None
    resource_id: str | None
    action_id: str
    detail_id: str | None
    created_at: datetime.datetime
    expires_at: datetime.datetime


class MessageSnapshotRow(Protocol):
    """The snapshot that a message about a snapshot instance names."""

    id: str
    project_id: str


class MessageShareRow(MessageSnapshotRow, Protocol):
    """The share that a message about a share instance names."""

    replica_state: str | None


class StuckRow(OwnedRow, Protocol):
    """A resource in flight for which no work is queued.

    `subject_id` is the instance that its work would be queued for.
    """

    resource: str
    id: str
    status: str
    subject_id: str
    host: str | None


class InFlightRow(StuckRow, Protocol):
    """A resource in flight, with the time of its last move."""

    since: datetime.datetime | None
    waits: bool


class SubjectRow(OwnedRow, Protocol):
    """The host, the owner and the subject of a resource."""

    host: str | None
    subject_id: str


class RecoveryLogRow(Protocol):
    """One decision of recovery and its result."""

    id: int
    resource: str
    resource_id: str
    host: str | None
    status_before: str | None
    evidence: str | None
    action: str
    status_after: str | None
    reason: str | None
    duration: float
    made_by: str | None
    asked_by: str | None
    request_id: str | None
    made_at: datetime.datetime


class HoldingWorkRow(Protocol):
    """The work that owes the next move of a resource, and its holder."""

    held_id: str
    id: str
    kind: str
    queue: str
    resource: str
    resource_id: str
    state: str
    attempt: int
    owner: str | None
    step: str | None
    error: str | None
    request_id: str | None
    next_try_at: float
    created_at: datetime.datetime
    lease_left: float | None
    heartbeat_age: float | None
    health: str | None


class Page(Protocol):
    """The part of a list that a request asks for, and its order."""

    @property
    def limit(self) -> int | None: ...

    @property
    def offset(self) -> int: ...

    @property
    def sort_key(self) -> str: ...

    @property
    def sort_dir(self) -> str: ...
