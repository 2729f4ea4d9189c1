"""What recovery finds and decides."""

import datetime
from typing import Protocol

from manila_lite.db.rows.figures import MoveRow
from manila_lite.db.rows.pages import OwnedRow


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
