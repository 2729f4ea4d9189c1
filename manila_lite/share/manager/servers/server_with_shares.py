"""A share server with its shares, as read when its network changes."""

from collections.abc import Mapping
import typing

from manila_lite.db.queries.access import share_rules
from manila_lite.db.queries.networks import share_networks
from manila_lite.db.queries.servers import share_servers
from manila_lite.db.session import Session
from manila_lite.share.drivers import base
from manila_lite.share.manager.driver_view import server_view, share_view
from manila_lite.share.manager.driver_view.server_view import LoadedServer
from manila_lite.share.manager.driver_view.share_view import RuleView
from manila_lite.share.manager.servers.setup import ServerSetup


class ServerWithShares(typing.NamedTuple):
    """A server, its network and its shares, read in one transaction.

    `known_rules` has the access rules of its shares, by instance id.
    """

    server: LoadedServer
    network_info: list[base.NetworkInfo]
    security_services: list[base.SecurityServiceForDriver]
    shares: list[base.ShareForDriver]
    known_rules: Mapping[str, list[RuleView]]

    @property
    def for_driver(self) -> base.ShareServerForDriver:
        return server_view.server_for_driver(self.server)

    @property
    def rules(self) -> list[dict[str, typing.Any]]:
        """The rules of each share in the form given to drivers."""
        return [
            {
                'share_instance_id': id,
                'access_rules': [rule.for_driver for rule in rules if not rule.hidden],
            }
            for id, rules in self.known_rules.items()
        ]

    @property
    def addresses(self) -> dict[str, typing.Any]:
        """The addresses of the server, by subnet."""
        return {
            'admin_network_allocations': [
                one
                for one in self.for_driver['network_allocations']
                if one['label'] == 'admin'
            ],
            'subnets': [subnet_allocations(info) for info in self.network_info],
        }


def subnet_allocations(info: base.NetworkInfo) -> dict[str, typing.Any]:
    """Return the addresses in one subnet, with the subnet's ids."""
    return {
        name: info[name]
        for name in (
            'share_network_subnet_id',
            'neutron_net_id',
            'neutron_subnet_id',
            'network_allocations',
        )
    }


def load_server_with_shares(
    session: Session, server_id: str, setup: ServerSetup, *, lock_shared: bool = False
) -> ServerWithShares:
    """Read a server with its network, its shares and their access rules.

    With `lock_shared` its row is locked against changes until the
    transaction ends. Raises ShareServerNotFound.
    """
    server = server_view.load_server(session, server_id, lock_shared=lock_shared)
    instances = share_view.load_instances(
        session,
        [row.id for row in share_networks.list_share_instances(session, [server_id])],
    )
    return ServerWithShares(
        server,
        server_view.network_info(session, server, setup.backend_name),
        [
            server_view.security_service_for_driver(row)
            for row in share_servers.list_security_services(
                session, server.row.share_network_id
            )
        ],
        [share_view.share_for_driver(one, setup.names.share) for one in instances],
        {
            one.row.id: share_view.rule_views(
                one.row,
                share_rules.list_for_instance(session, one.row.id),
                setup.driver,
            )
            for one in instances
        },
    )
