"""User messages and the resources that they name."""

import datetime
from typing import Protocol


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
