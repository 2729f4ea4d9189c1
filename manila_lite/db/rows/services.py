"""Services, pools and availability zones."""

import datetime
from typing import Protocol


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
