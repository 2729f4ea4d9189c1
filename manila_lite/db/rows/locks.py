"""Resource locks."""

import datetime
from typing import Protocol

from manila_lite.db.rows.resources import OwnedRow


class LockableRow(OwnedRow, Protocol):
    """A share or an access rule that a resource lock is put on.

    `status` is that of the share instance or the state of the rule,
    `share_status` that of the share instance in either case.
    """

    id: str
    share_id: str
    is_public: bool
    is_soft_deleted: bool
    status: str
    share_status: str


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
