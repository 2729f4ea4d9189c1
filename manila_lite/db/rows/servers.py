"""Share servers and their migrations."""

import datetime
from typing import Protocol

from manila_lite.db.rows.pages import OwnedRow


class PlainServerRow(Protocol):
    """The columns of a share server; its `host` is host@backend."""

    id: str
    host: str
    share_network_id: str | None
    status: str
    task_state: str | None
    identifier: str | None
    is_auto_deletable: bool
    source_share_server_id: str | None
    security_service_update_support: bool
    network_allocation_update_support: bool
    share_replicas_migration_support: bool
    encryption_key_ref: str | None
    build_key: str | None
    idle_since: datetime.datetime | None
    created_at: datetime.datetime
    updated_at: datetime.datetime | None
    project_id: str | None
    share_network_name: str | None


class ShareServerRow(PlainServerRow, Protocol):
    """A share server as managers read it, with the owner of its network."""

    user_id: str | None


class ServerTarget(PlainServerRow, Protocol):
    """A share server as requests authorize, check and show it."""


class MigrationRow(Protocol):
    """One migration of a share server."""

    id: str
    source_server_id: str
    destination_server_id: str | None
    open_for: str | None
    source_host: str
    destination_host: str
    destination_pool: str | None
    old_share_network_id: str | None
    new_share_network_id: str | None
    writable: bool
    nondisruptive: bool
    preserve_snapshots: bool
    phase: int
    outcome: str | None
    can_cancel: bool
    tells_progress: bool
    made_destination: bool
    is_set_up: bool
    casts_rules: bool
    progress: int | None
    progress_details: str | None
    heard_at: datetime.datetime | None
    error: str | None
    project_id: str | None
    user_id: str | None
    created_at: datetime.datetime
    updated_at: datetime.datetime | None
    ended_at: datetime.datetime | None
    reserved: str | None


class LatestMigrationRow(MigrationRow, Protocol):
    """The newest migration of a server, with the server's `task_state`."""

    task_state: str | None


class ServerIdRow(Protocol):
    """The id of a share server."""

    id: str


class ServerShareRow(OwnedRow, Protocol):
    """A share server with one of the share instances on it.

    The columns of the share are null if the server has none.
    """

    id: str
    host: str
    status: str
    task_state: str | None
    share_network_id: str | None
    share_replicas_migration_support: bool
    instance_id: str
    instance_status: str
    instance_host: str
    access_rules_status: str
    share_type_id: str
    qos_type_id: str | None
    share_id: str
    replica_state: str | None
    size: int
    share_proto: str
    share_group_id: str | None
    is_soft_deleted: bool
    has_copies: bool
    has_share_groups: bool


class NetworkSubnetRow(Protocol):
    """A network with one of its subnets, as migrations compare them."""

    id: str
    status: str
    project_id: str
    subnet_id: str | None
    neutron_net_id: str | None
    neutron_subnet_id: str | None
    zone: str | None
    is_used: bool
