"""Access rules and locks."""

import datetime
from typing import Protocol

from manila_lite.db.rows.pages import OwnedRow


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


class RuleOfInstanceRow(Protocol):
    """The state of an access rule on one instance, and since when."""

    id: str
    access_id: str
    share_instance_id: str
    state: str
    created_at: datetime.datetime
    updated_at: datetime.datetime | None


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


class VisibilityLockRow(Protocol):
    """The owner of a lock that hides an access rule."""

    user_id: str
    project_id: str
