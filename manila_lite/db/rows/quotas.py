"""Usage of quota, and what is charged."""

from typing import Protocol

from manila_lite.db.rows.pages import OwnedRow


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
