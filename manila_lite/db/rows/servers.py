"""Share networks and servers, migrations, and security services."""

import datetime
import typing
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


class ShareNetworkRow(OwnedRow, Protocol):
    """A share network as requests authorize and check it."""

    id: str
    name: str | None
    status: str

    def _asdict(self) -> dict[str, typing.Any]: ...


class NetworkServerRow(Protocol):
    """A share server on a network that is to be changed."""

    id: str
    host: str
    status: str
    is_auto_deletable: bool
    security_service_update_support: bool
    network_allocation_update_support: bool


class NetworkInstanceRow(Protocol):
    """A share instance on a network that is to be changed."""

    id: str
    share_id: str
    status: str
    access_rules_status: str
    share_server_id: str


class NetworkGroupRow(Protocol):
    """A share group on a network that is to be changed."""

    id: str
    status: str


class SubnetRow(Protocol):
    """A subnet of a share network."""

    id: str
    share_network_id: str
    availability_zone_id: str | None
    neutron_net_id: str | None
    neutron_subnet_id: str | None
    network_type: str | None
    cidr: str | None
    segmentation_id: int | None
    gateway: str | None
    mtu: int | None
    ip_version: int | None
    created_at: datetime.datetime
    updated_at: datetime.datetime | None


class SubnetServerRow(Protocol):
    """A share server with addresses in a subnet."""

    id: str
    host: str
    status: str
    is_auto_deletable: bool


class SecurityServiceRow(Protocol):
    """A security service, with its password."""

    id: str
    project_id: str
    type: str
    name: str | None
    description: str | None
    dns_ip: str | None
    server: str | None
    domain: str | None
    user: str | None
    password: str | None
    ou: str | None
    default_ad_site: str | None
    created_at: datetime.datetime
    updated_at: datetime.datetime | None


class AllocationRow(Protocol):
    """An address that is allocated to a share server."""

    id: str
    share_server_id: str
    share_network_subnet_id: str | None
    label: str
    segment: str
    ip_address: str
    ip_version: int | None
    cidr: str | None
    gateway: str | None
    mtu: int | None
    network_type: str | None
    segmentation_id: int | None
    mac_address: str | None
    created_at: datetime.datetime
    updated_at: datetime.datetime | None
