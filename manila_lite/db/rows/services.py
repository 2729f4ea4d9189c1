"""Services, pools and zones; recovery, quotas and user messages."""

import datetime
from typing import Protocol

from manila_lite.db.rows.figures import MoveRow
from manila_lite.db.rows.pages import OwnedRow


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


class DiskRow(Protocol):
    """Which disk belongs to a pool or root; no identity if it is lost."""

    host: str
    identity: str | None
    file_system: str | None
    location: str | None
    created_at: datetime.datetime
    updated_at: datetime.datetime | None


class LivenessRow(Protocol):
    """The columns that show whether a service is alive."""

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


class PoolAllocationRow(Protocol):
    """Our allocations on a pool; `reported_at` identifies its report."""

    host: str
    service_host: str
    allocated_gb: int
    pending_gb: int
    reported_at: float


class PoolReportRow(Protocol):
    """The last report of a pool."""

    host: str
    capabilities: str
    total_gb: float | None
    free_gb: float | None
    reported_at: float


class PoolSizeRow(Protocol):
    """The size of a pool, as far as it reports it, and our allocations on it."""

    host: str
    total_gb: float | None
    free_gb: float | None
    allocated_gb: int


class ZoneRow(Protocol):
    """An availability zone."""

    id: str
    name: str
    created_at: datetime.datetime
    updated_at: datetime.datetime | None


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
    reason: str | None
    explanation: str | None
    created_at: datetime.datetime
    expires_at: datetime.datetime


class MessageSnapshotRow(Protocol):
    """The snapshot that a message about a snapshot instance names."""

    id: str
    project_id: str


class MessageShareRow(MessageSnapshotRow, Protocol):
    """The share that a message about a share instance names."""

    replica_state: str | None


class MessageShareGroupRow(Protocol):
    """The share group that a message names."""

    id: str
    project_id: str


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
    """The work that owes the next move of a resource, and its holder.

    The blocker is running work that this one waits for, if there is any.
    """

    held: str
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
    needs_release: int | None
    lease_left: float | None
    heartbeat_age: float | None
    health: str | None
    blocker_kind: str | None
    blocker_owner: str | None


class UnsentMoveRow(MoveRow, Protocol):
    """A move that has not been sent; the parent is that of a row now gone."""

    parent_id: str | None
    project_id: str | None
    reason: str | None


class MoveOwnerRow(Protocol):
    """The parent and the project of a row."""

    id: str
    parent_id: str | None
    project_id: str | None
