"""Share servers of the btrfs driver."""

from typing import Any

from manila_lite import exception
from manila_lite.share.drivers import base
from manila_lite.share.drivers.btrfs.backend import BtrfsBackend
from manila_lite.share.drivers.btrfs.moves.server_migration import BtrfsServerMigration
from manila_lite.share.drivers.btrfs.servers import server_network
from manila_lite.share.drivers.btrfs.servers.server_network import Link
from manila_lite.share.drivers.contract.share_servers import ServerDetails


class BtrfsShareServers:
    """NFS servers in the networks of their tenants."""

    def __init__(self, backend: BtrfsBackend, migration: BtrfsServerMigration):
        self._backend = backend
        self._migration = migration

    def _setup_server(self, network_info: list[base.NetworkInfo]) -> dict[str, str]:
        """Create a server with its addresses; return its details.

        A network with security services is refused: its owner would believe
        that they protect the shares.
        """
        _refuse_security_services(network_info)
        server_id = network_info[0]['server_id']
        links = server_network.links_for(
            server_id, network_info, self._backend.configuration.btrfs_bridge
        )
        with self._backend.changing(server_id):
            return _details(server_id, self._backend.servers.set_up(server_id, links))

    def _teardown_server(self, server_details: ServerDetails) -> None:
        """Delete a server; one that still has shares is refused.

        What was to arrive on it remains where it is.
        """
        server_id = server_details['server_id']
        self._migration.abandon(server_id)
        with self._backend.changing(server_id):
            name = next(self._backend.list_share_names_on_server(server_id), None)
            if name is not None:
                raise exception.ShareBackendException(
                    msg=f'share server {server_id} still has the share {name}'
                )
            self._backend.servers.tear_down(server_id)

    def get_share_server_pools(self) -> list[dict[str, Any]]:
        """Return all pools: a server exports volumes of any of them."""
        return [{'pool_name': name} for name in self._backend.pools]


def _refuse_security_services(network_info: list[base.NetworkInfo]) -> None:
    types = {
        service['type']
        for info in network_info
        for service in info['security_services']
    }
    if types:
        raise exception.SecurityServicesUnsupported(types=', '.join(sorted(types)))


def _details(server_id: str, links: list[Link]) -> dict[str, str]:
    """Return the details to store for a server."""
    return {
        'identifier': server_id,
        'addresses': ','.join(link.host for link in links),
        'bridges': ','.join(link.bridge for link in links),
    }
