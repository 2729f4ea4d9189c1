"""Share networks, subnets, security services and allocations."""

import datetime
import typing
from typing import Protocol

from manila_lite.db.rows.pages import OwnedRow


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
