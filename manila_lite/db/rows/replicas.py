"""Share replicas."""

import datetime
from typing import NamedTuple, Protocol

from manila_lite.db.rows.pages import OwnedRow


class ReplicaTarget(OwnedRow, Protocol):
    """A replica as requests authorize and check it."""

    id: str
    share_id: str
    host: str | None
    status: str
    replica_state: str
    replication_type: str


class ReplicaRow(Protocol):
    """An instance of a share, read under a lock of all of them."""

    id: str
    share_id: str
    host: str
    status: str
    replica_state: str | None
    replica_generation: int
    access_rules_status: str
    cast_rules_to_readonly: bool
    share_type_id: str | None
    share_network_id: str | None
    share_server_id: str | None
    availability_zone_id: str | None
    created_at: datetime.datetime


class ReplicaIdRow(Protocol):
    """The ids of a replica and of its share."""

    id: str
    share_id: str


class SyncedReplica(NamedTuple):
    """A replica that had the content of its share at a time, in UTC.

    The reply that said so counts for one generation of the replica.
    """

    replica_id: str
    replica_generation: int
    synced_at: datetime.datetime


class PlacedReplicaRow(Protocol):
    """A replica on a back end."""

    id: str
    host: str


class ReplicaStateRow(Protocol):
    """An instance of a share, a replica if it has a replica state."""

    id: str
    share_id: str
    replica_state: str | None


class ReplicaViewRow(OwnedRow, Protocol):
    """A replica as users see it."""

    id: str
    share_id: str
    status: str
    replica_state: str
    host: str | None
    share_network_id: str | None
    share_server_id: str | None
    cast_rules_to_readonly: bool
    created_at: datetime.datetime
    updated_at: datetime.datetime | None
    availability_zone: str | None
