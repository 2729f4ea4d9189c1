"""A share server as read for work, and as given to drivers."""

from collections.abc import Collection, Mapping, Sequence
import dataclasses
import functools
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

Value = typing.TypeVar('Value')


def from_row(kind: type[Value], row: object, **others: object) -> Value:
    """Return a value for drivers: the columns of a row with its names, and others."""
    names = _names(typing.cast(typing.Hashable, kind))
    own = {name: getattr(row, name) for name in names if name not in others}
    return kind(**own, **others)


@functools.cache
def _names(kind: object) -> tuple[str, ...]:
    if dataclasses.is_dataclass(kind):
        return tuple(field.name for field in dataclasses.fields(kind))
    return tuple(kind.__annotations__)


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
    return from_row(
        ShareServerForDriver,
        server.row,
        share_network_subnet_ids=list(server.subnet_ids),
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
    return from_row(NetworkAllocation, row)


def security_service_for_driver(row: SecurityServiceRow) -> SecurityServiceForDriver:
    """Return a security service in the form given to drivers."""
    return from_row(SecurityServiceForDriver, row)


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
        from_row(
            NetworkInfo,
            subnet,
            server_id=server.row.id,
            backend_name=backend_name,
            share_network_subnet_id=subnet.id,
            security_services=list(services),
            network_allocations=[
                one for one in addresses if one['share_network_subnet_id'] == subnet.id
            ],
            admin_network_allocations=list(admin),
            subnet_metadata=metadata[subnet.id],
        )
        for subnet in subnets
    ]
