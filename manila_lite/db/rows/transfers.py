"""Share transfers."""

import datetime
from typing import Protocol


class TransferRow(Protocol):
    """A share transfer, and the instance of its share.

    It has neither the key nor its hash.
    """

    id: str
    project_id: str
    source_project_id: str
    destination_project_id: str | None
    resource_type: str
    resource_id: str
    display_name: str | None
    expires_at: datetime.datetime
    created_at: datetime.datetime
    instance_id: str


class OfferRow(Protocol):
    """What decides on the acceptance of a share transfer."""

    id: str
    share_id: str
    instance_id: str
    host: str
    salt: str
    crypt_hash: str
    expires_at: datetime.datetime


class AcceptedTransferRow(Protocol):
    """A share transfer that is being carried out, and for whom."""

    id: str
    status: str
    share_id: str
    project_id: str
    user_id: str | None
    clear_access_rules: bool
    host: str


class ExpiredTransferRow(Protocol):
    """A share transfer that was not accepted in time."""

    id: str
    instance_id: str
    expires_at: datetime.datetime


class SnapshotToTransferRow(Protocol):
    """A snapshot that changes hands with its share."""

    id: str
    project_id: str
    user_id: str | None
    size: int
    status: str
