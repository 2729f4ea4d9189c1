"""What metrics show of the database."""

import datetime
from typing import Protocol


class StatusCountRow(Protocol):
    """How many rows have a status, and since when the first of them."""

    resource: str
    status: str
    number: int
    since: datetime.datetime | None


class WorkCountRow(Protocol):
    """How much work of a kind there is, and when the oldest was created."""

    kind: str
    state: str
    number: int
    since: datetime.datetime


class ServicePoolRow(Protocol):
    """A service with one of its pools, or without any."""

    host: str
    binary: str
    disabled: bool
    health: str | None
    heartbeat_at: float
    now: float
    pool: str | None
    total_gb: float | None
    free_gb: float | None
    allocated_gb: int
    pending_gb: int
    capabilities: str
    oldest_sync_at: datetime.datetime | None


class ProjectQuotaRow(Protocol):
    """The use of one resource by a project; a negative limit is none."""

    project_id: str
    resource: str
    in_use: int
    reserved: int
    hard_limit: int


class ConditionCountRow(Protocol):
    """How many rows of a kind are in a condition such as `stuck`."""

    resource: str
    condition: str
    number: int


class UsageTotalRow(Protocol):
    """How much of a resource that quotas limit is in use."""

    resource: str
    number: int


class ConditionRow(Protocol):
    """A row in a condition, with the time of its last move."""

    id: str
    status: str | None
    host: str | None
    project_id: str | None
    share_id: str | None
    since: datetime.datetime | None


class NamedRow(Protocol):
    """The name of a resource, with the status and host of one of its instances.

    The page of the resource with `page_id` shows it.
    """

    id: str
    name: str | None
    status: str | None
    host: str | None
    page_id: str


class MoveRow(Protocol):
    """One move of a resource, as the journal has it."""

    id: int
    resource: str
    resource_id: str
    event: str
    from_status: str | None
    to_status: str | None
    request_id: str | None
    made_by: str | None
    made_at: datetime.datetime


class DriverCallRow(Protocol):
    """A call of a driver; without an end if it runs or was cut off."""

    id: str
    resource: str
    resource_id: str
    method: str
    host: str
    work_id: str
    attempt: int
    request_id: str | None
    started_at: datetime.datetime
    ended_at: datetime.datetime | None
    outcome: str | None
    error: str | None


class WorkOfResourceRow(Protocol):
    """Work that is owed for a resource, and the work that it waits for."""

    id: str
    kind: str
    resource: str
    resource_id: str
    state: str
    attempt: int
    step: str | None
    error: str | None
    owner: str | None
    request_id: str | None
    created_at: datetime.datetime
    blocker_kind: str | None
    blocker_owner: str | None
