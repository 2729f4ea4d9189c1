"""The network plug-ins of a back end that handles share servers."""

from collections.abc import Iterable, Mapping
import typing

from manila_lite.db.session import Session
from manila_lite.network.base import NetworkPlugin
from manila_lite.share.drivers.base import ShareDriver
from manila_lite.share.manager.driver_view import server_view
from manila_lite.share.manager.driver_view.server_view import LoadedServer


class ServerNetworks(typing.NamedTuple):
    """The network plug-ins that allocate addresses for share servers."""

    user: NetworkPlugin
    admin: NetworkPlugin | None = None

    def deallocate(self, session: Session, share_server_id: str) -> int:
        """Release all addresses of a server; return the count."""
        return sum(
            plugin.deallocate_network(session, share_server_id)
            for plugin in self
            if plugin is not None
        )


def with_servers(
    stats: Mapping[str, typing.Any],
    networks: ServerNetworks,
    driver: ShareDriver,
    servers: Iterable[LoadedServer],
) -> dict[str, typing.Any]:
    """Return statistics with the IP versions and the pools of servers."""
    versions = networks.user.ip_versions
    return {
        **stats,
        **{
            name: bool(stats.get(name)) and version in versions
            for name, version in (('ipv4_support', 4), ('ipv6_support', 6))
        },
        'server_pools_mapping': {
            server.row.id: driver.get_share_server_pools(
                server_view.server_for_driver(server)
            )
            for server in servers
        },
    }
