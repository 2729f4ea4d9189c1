"""A share server as read for work, and as given to drivers."""

from collections.abc import Collection, Mapping, Sequence
import typing

from manila_lite.db.queries.servers import share_servers
from manila_lite.db.rows import AllocationRow, SecurityServiceRow, ShareServerRow
from manila_lite.db.session import Session
from manila_lite.share.drivers.base import (
    NetworkAllocation,
    NetworkInfo,
    SecurityServiceForDriver,
    ShareServerForDriver,
)


class LoadedServer(typing.NamedTuple):
    """A share server as read for work, with what belongs to it."""

    row: ShareServerRow
    details: Mapping[str, str]
    subnet_ids: list[str]
    allocations: list[AllocationRow]


def load_server(
    session: Session, server_id: str, *, lock_shared: bool = False
) -> LoadedServer:
    """Read a server with its details, subnets and addresses.

    With `lock_shared` its row is locked against changes until the
    transaction ends. Raises ShareServerNotFound.
    """
    row = share_servers.get(session, server_id, lock_shared=lock_shared)
    return _with_all(session, [row])[0]


def load_servers(
    session: Session, ids: Collection[str]
) -> Mapping[str | None, LoadedServer]:
    """Read several servers, by id; skip those that no longer exist."""
    if not ids:
        return {}
    rows = share_servers.list_by_ids(session, ids)
    return {one.row.id: one for one in _with_all(session, rows)}


def find_server(session: Session, server_id: str | None) -> LoadedServer | None:
    """Read a server; None without an id or when it no longer exists."""
    if server_id is None:
        return None
    return load_servers(session, [server_id]).get(server_id)


def _with_all(session: Session, rows: Sequence[ShareServerRow]) -> list[LoadedServer]:
    ids = [row.id for row in rows]
    details = share_servers.get_backend_details(session, ids)
    subnets = share_servers.list_subnet_ids(session, ids)
    allocations = share_servers.list_allocations(session, ids)
    return [
        LoadedServer(row, details[row.id], subnets[row.id], allocations[row.id])
        for row in rows
    ]


def server_for_driver(server: LoadedServer) -> ShareServerForDriver:
    row = server.row
    return ShareServerForDriver(
        id=row.id,
        host=row.host,
        status=row.status,
        task_state=row.task_state,
        created_at=row.created_at,
        updated_at=row.updated_at,
        identifier=row.identifier,
        share_network_id=row.share_network_id,
        share_network_subnet_ids=list(server.subnet_ids),
        is_auto_deletable=row.is_auto_deletable,
        source_share_server_id=row.source_share_server_id,
        encryption_key_ref=row.encryption_key_ref,
        security_service_update_support=row.security_service_update_support,
        network_allocation_update_support=(row.network_allocation_update_support),
        share_replicas_migration_support=(row.share_replicas_migration_support),
        backend_details=dict(server.details),
        network_allocations=[allocation_for_driver(one) for one in server.allocations],
    )


def optional_server_for_driver(
    server: LoadedServer | None,
) -> ShareServerForDriver | None:
    """Return the `share_server` argument of driver methods."""
    return None if server is None else server_for_driver(server)


def allocation_for_driver(row: AllocationRow) -> NetworkAllocation:
    """Return an allocated address in the form given to drivers."""
    return NetworkAllocation(
        id=row.id,
        share_server_id=row.share_server_id,
        share_network_subnet_id=row.share_network_subnet_id,
        label=row.label,
        ip_address=row.ip_address,
        ip_version=row.ip_version,
        cidr=row.cidr,
        gateway=row.gateway,
        mtu=row.mtu,
        network_type=row.network_type,
        segmentation_id=row.segmentation_id,
        mac_address=row.mac_address,
    )


def security_service_for_driver(row: SecurityServiceRow) -> SecurityServiceForDriver:
    """Return a security service in the form given to drivers."""
    return SecurityServiceForDriver(
        id=row.id,
        type=row.type,
        name=row.name,
        dns_ip=row.dns_ip,
        server=row.server,
        domain=row.domain,
        user=row.user,
        password=row.password,
        ou=row.ou,
        default_ad_site=row.default_ad_site,
    )


def details_for_driver(server: LoadedServer) -> dict[str, str]:
    """Return the stored details and the id, as teardown expects them."""
    return {'server_id': server.row.id, **server.details}


def network_info(
    session: Session, server: LoadedServer, backend_name: str
) -> list[NetworkInfo]:
    """Return the desired network setup, one entry per subnet."""
    subnets = share_servers.list_subnets(session, server.subnet_ids)
    metadata = share_servers.get_subnet_metadata(session, server.subnet_ids)
    services = [
        security_service_for_driver(row)
        for row in share_servers.list_security_services(
            session, server.row.share_network_id
        )
    ]
    addresses = [allocation_for_driver(row) for row in server.allocations]
    admin = [one for one in addresses if one['label'] == 'admin']
    return [
        NetworkInfo(
            server_id=server.row.id,
            backend_name=backend_name,
            share_network_id=subnet.share_network_id,
            share_network_subnet_id=subnet.id,
            neutron_net_id=subnet.neutron_net_id,
            neutron_subnet_id=subnet.neutron_subnet_id,
            network_type=subnet.network_type,
            segmentation_id=subnet.segmentation_id,
            cidr=subnet.cidr,
            gateway=subnet.gateway,
            mtu=subnet.mtu,
            ip_version=subnet.ip_version,
            security_services=list(services),
            network_allocations=[
                one for one in addresses if one['share_network_subnet_id'] == subnet.id
            ],
            admin_network_allocations=list(admin),
            subnet_metadata=metadata[subnet.id],
        )
        for subnet in subnets
    ]
