"""A share server whose network changes, as its driver is shown it."""

from collections.abc import Mapping
import typing

from manila_lite.db.queries.access import share_rules
from manila_lite.db.queries.networks import share_networks
from manila_lite.db.queries.servers import share_servers
from manila_lite.db.session import Session
from manila_lite.share.drivers.base import NetworkInfo
from manila_lite.share.drivers.base import SecurityServiceForDriver
from manila_lite.share.drivers.base import ShareForDriver
from manila_lite.share.drivers.base import ShareServerForDriver
from manila_lite.share.manager.driver_view import access_view
from manila_lite.share.manager.driver_view import server_view
from manila_lite.share.manager.driver_view import share_view
from manila_lite.share.manager.driver_view.access_view import RuleView
from manila_lite.share.manager.driver_view.server_view import LoadedServer
from manila_lite.share.manager.servers.setup import ServerSetup


class ServerWithShares(typing.NamedTuple):
    """What the work about a server needs of it, read at once.

    `known_rules` has the access rules of its shares, by instance id.
    """

    found: LoadedServer
    network_info: list[NetworkInfo]
    security_services: list[SecurityServiceForDriver]
    shares: list[ShareForDriver]
    known_rules: Mapping[str, list[RuleView]]

    @property
    def shown(self) -> ShareServerForDriver:
        return server_view.server_for_driver(self.found)

    @property
    def rules(self) -> list[dict[str, typing.Any]]:
        """The rules of each share, in the form that drivers expect."""
        return [
            {
                'share_instance_id': id,
                'access_rules': [
                    rule.shown for rule in rules if not rule.hidden
                ],
            }
            for id, rules in self.known_rules.items()
        ]

    @property
    def addresses(self) -> dict[str, typing.Any]:
        """Those it has, subnet by subnet."""
        return {
            'admin_network_allocations': [
                one
                for one in self.shown['network_allocations']
                if one['label'] == 'admin'
            ],
            'subnets': [
                subnet_allocations(info) for info in self.network_info
            ],
        }


def subnet_allocations(info: NetworkInfo) -> dict[str, typing.Any]:
    """The addresses in one subnet, and what that is."""
    return {
        name: info[name]
        for name in (  # type: ignore[literal-required]
            'share_network_subnet_id',
            'neutron_net_id',
            'neutron_subnet_id',
            'network_allocations',
        )
    }


def load_server_with_shares(
    session: Session,
    server_id: str,
    setup: ServerSetup,
    *,
    lock_shared: bool = False,
) -> ServerWithShares:
    """The server with its network, its shares and their access rules.

    With `keep` it stays as it is until the transaction ends. Raises
    ShareServerNotFound.
    """
    found = server_view.load_server(
        session, server_id, lock_shared=lock_shared
    )
    instances = share_view.load_instances(
        session,
        [
            row.id
            for row in share_networks.list_share_instances(
                session, [server_id]
            )
        ],
    )
    return ServerWithShares(
        found,
        server_view.network_info(session, found, setup.backend_name),
        [
            server_view.security_service_for_driver(row)
            for row in share_servers.list_security_services(
                session, found.row.share_network_id
            )
        ],
        [
            share_view.share_for_driver(one, setup.names.share)
            for one in instances
        ],
        {
            one.row.id: access_view.rule_views(
                one.row,
                share_rules.list_for_instance(session, one.row.id),
                setup.driver,
            )
            for one in instances
        },
    )
