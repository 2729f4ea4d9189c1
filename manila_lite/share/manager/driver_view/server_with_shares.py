"""A share server whose network changes, as its driver is shown it."""

from collections.abc import Mapping
import typing

from manila_lite.db.queries.access import share_rules as access
from manila_lite.db.queries.networks import share_networks
from manila_lite.db.queries.servers import share_servers
from manila_lite.db.session import Session
from manila_lite.share.drivers.base import NetworkInfo
from manila_lite.share.drivers.base import SecurityServiceForDriver
from manila_lite.share.drivers.base import ShareForDriver
from manila_lite.share.drivers.base import ShareServerForDriver
from manila_lite.share.manager.driver_view import access_view
from manila_lite.share.manager.driver_view import server_view
from manila_lite.share.manager.driver_view import share_view as driver_view
from manila_lite.share.manager.driver_view.access_view import Rule
from manila_lite.share.manager.driver_view.server_view import FoundServer
from manila_lite.share.manager.servers.setup import ServerSetup


class UpdatedServer(typing.NamedTuple):
    """What the work about a server needs of it, read at once.

    `known_rules` has the access rules of its shares, by instance id.
    """

    found: FoundServer
    network_info: list[NetworkInfo]
    security_services: list[SecurityServiceForDriver]
    shares: list[ShareForDriver]
    known_rules: Mapping[str, list[Rule]]

    @property
    def shown(self) -> ShareServerForDriver:
        return server_view.for_driver(self.found)

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
            'subnets': [entry(info) for info in self.network_info],
        }


def entry(info: NetworkInfo) -> dict[str, typing.Any]:
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


def find(
    session: Session, server_id: str, setup: ServerSetup, *, keep: bool = False
) -> UpdatedServer:
    """The server with its network, its shares and their access rules.

    With `keep` it stays as it is until the transaction ends. Raises
    ShareServerNotFound.
    """
    found = server_view.find(session, server_id, keep=keep)
    instances = driver_view.find_all(
        session,
        [row.id for row in share_networks.shares_on(session, [server_id])],
    )
    return UpdatedServer(
        found,
        server_view.network_info(session, found, setup.backend_name),
        [
            server_view.security_service(row)
            for row in share_servers.security_services(
                session, found.row.share_network_id
            )
        ],
        [driver_view.for_driver(one, setup.names.share) for one in instances],
        {
            one.row.id: access_view.rules(
                one.row, access.of_instance(session, one.row.id), setup.driver
            )
            for one in instances
        },
    )
