"""Rows of share backups."""

import datetime
from typing import Protocol


class ShareBackupRow(Protocol):
    """A backup of a share, with the name of its availability zone."""

    id: str
    share_id: str
    project_id: str
    user_id: str | None
    name: str | None
    description: str | None
    status: str
    size: int
    host: str | None
    topic: str
    backup_type: str | None
    backup_options: str | None
    progress: int
    restore_progress: int
    restore_share_id: str | None
    availability_zone: str | None
    created_at: datetime.datetime
    updated_at: datetime.datetime | None
    kept_copy: str | None
    restore_position: int | None
