"""Migrations of shares."""

import datetime
from typing import Protocol

from manila_lite.db.rows.pages import OwnedRow


class ShareTaskRow(OwnedRow, Protocol):
    """A share with its `task_state`, and the back end that it is on.

    `host` is that of its migration, null without one.
    """

    id: str
    task_state: str | None
    host: str | None


class ShownShareMigrationRow(Protocol):
    """The latest migration of a share, and what its progress depends on.

    `rules_status` is that of the source, `work_state` and the rest of the
    work of the migration; null without work.
    """

    share_id: str
    open_for: str | None
    display_name: str | None
    project_id: str
    task_state: str | None
    source_host: str
    destination_host: str
    writable: bool
    nondisruptive: bool
    preserve_metadata: bool
    preserve_snapshots: bool
    host_assisted: bool
    new_share_type_id: str | None
    phase: int
    casts_rules: bool
    progress: int | None
    heard_at: datetime.datetime | None
    error: str | None
    created_at: datetime.datetime
    ended_at: datetime.datetime | None
    rules_status: str | None
    work_state: str | None
    work_owner: str | None
    work_error: str | None
    blocker_kind: str | None
    blocker_owner: str | None


class ShareMigrationRow(Protocol):
    """The latest migration of a share."""

    id: str
    share_id: str
    open_for: str | None
    source_instance_id: str
    destination_instance_id: str | None
    source_host: str
    destination_host: str
    writable: bool
    nondisruptive: bool
    preserve_metadata: bool
    preserve_snapshots: bool
    phase: int
    casts_rules: bool
    host_assisted: bool
    new_share_type_id: str | None
    destination_network_id: str | None
    progress: int | None
    progress_details: str | None
    heard_at: datetime.datetime | None
    error: str | None
    created_at: datetime.datetime
    updated_at: datetime.datetime | None
    ended_at: datetime.datetime | None
