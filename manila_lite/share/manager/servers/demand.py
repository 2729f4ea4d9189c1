"""What a share or group demands of its server, and the errors without one."""

from collections.abc import Mapping
import typing

from manila_lite import exception
from manila_lite.db.queries.servers import server_load, share_servers
from manila_lite.db.queries.servers.server_load import ServerLimits
from manila_lite.db.queries.types import types as share_types
from manila_lite.db.rows import InstanceRow
from manila_lite.db.session import Session
from manila_lite.messages import Detail, detail_in


def failure_detail(error: Exception) -> Detail:
    """Return the user message detail for a server that failed to build."""
    own = detail_in(error)
    if own is None and isinstance(error, exception.NoFreeAddress):
        return Detail.NEUTRON_SUBNET_FULL
    if isinstance(error, exception.SecurityServicesUnsupported):
        return Detail.UNSUPPORTED_ADD_UDPATE_SECURITY_SERVICE
    return own or Detail.NO_SHARE_SERVER


def reported_details(error: Exception) -> Mapping[str, typing.Any]:
    """Return the details of a server that a driver reported in an error."""
    reported = getattr(error, 'detail_data', None)
    details = isinstance(reported, Mapping) and reported.get('server_details')
    return details if isinstance(details, Mapping) else {}


def no_server(reason: str) -> exception.ManilaLiteError:
    """Return the error of a share that gets no share server."""
    return exception.InvalidShareServer(
        reason=reason, message_detail=Detail.NO_SHARE_SERVER
    )


class ServerDemand(typing.NamedTuple):
    """The back end, the subnets and the encryption key of a server.

    `size` is that of the share in GiB, or that of the smallest share of a
    group. The key is that of the share if its type has share servers
    encrypted, and None otherwise.
    """

    service_host: str
    size: int
    subnet_ids: list[str]
    encryption_key_ref: str | None

    @property
    def build_key(self) -> str:
        """The key that allows one such server at a time to be built."""
        return share_servers.make_build_key(
            self.service_host, self.subnet_ids, self.encryption_key_ref
        )

    def list_suitable(self, session: Session, limits: ServerLimits) -> list[str]:
        """Return the ids of servers that have room for it, best first."""
        return share_servers.list_suitable(
            session,
            self.service_host,
            self.subnet_ids,
            self.size,
            limits,
            encryption_key_ref=self.encryption_key_ref,
        )


class Networked(typing.Protocol):
    """The row of something that is created on a share network."""

    @property
    def share_network_id(self) -> str | None: ...

    @property
    def availability_zone(self) -> str | None: ...


def demand_of(
    session: Session,
    service_host: str,
    row: Networked,
    size: int,
    encryption_key_ref: str | None = None,
) -> ServerDemand:
    """Return the demand of what this back end is to create."""
    if row.share_network_id is None:
        raise no_server('there is no share network for the share server')
    subnet_ids = [
        subnet.id
        for subnet in share_servers.list_zone_subnets(
            session, row.share_network_id, row.availability_zone
        )
    ]
    if not subnet_ids:
        raise no_server(
            f'share network {row.share_network_id} has no '
            f'subnet for {row.availability_zone}'
        )
    return ServerDemand(service_host, size, subnet_ids, encryption_key_ref)


def check_growth(
    session: Session, row: InstanceRow, growth: int, limits: ServerLimits
) -> None:
    """Raise NoValidHost if a share cannot grow on its share server."""
    server_id = row.share_server_id
    if server_id is None or server_load.can_grow(
        session, server_id, row.id, growth, limits
    ):
        return
    raise exception.NoValidHost(
        reason=f'max_share_server_size limits the shares on share server '
        f'{server_id} to {limits.gigabytes} GiB, and {growth} GiB more would '
        'exceed that',
        message_detail=Detail.FILTER_CAPACITY,
    )


def key_for_driver(encryption_key_ref: str | None) -> dict[str, typing.Any]:
    """Return the key of a server as an argument, if it has one.

    Drivers from before version 2.90 do not know the argument.
    """
    if encryption_key_ref is None:
        return {}
    return {'encryption_key_ref': encryption_key_ref}


def key_of_server(session: Session, row: InstanceRow) -> str | None:
    """Return the key that the share server of this share must have."""
    if row.encryption_key_ref is None:
        return None
    specs = share_types.get_extra_specs(session, row.share_type_id)
    if specs.get('encryption_support') != 'share_server':
        return None
    return row.encryption_key_ref
