"""Check with drivers whether share servers support a network change.

The result is stored until the change is made or checked again; an error
means no. All servers of the back end on the network must support it.
"""

from collections.abc import Mapping, Sequence
import typing

from manila_lite.db.queries.access import share_rules
from manila_lite.db.queries.networks import security_services, share_networks, subnets
from manila_lite.db.queries.servers import share_servers
from manila_lite.db.session import Session
from manila_lite.rpc.contract import work
from manila_lite.share.drivers import base
from manila_lite.share.drivers.base import SecurityServiceForDriver
from manila_lite.share.manager.driver_view import server_view, share_view
from manila_lite.share.manager.driver_view.server_view import LoadedServer
from manila_lite.share.manager.driver_view.share_view import RuleView
from manila_lite.share.manager.guarded_driver import driver_context
from manila_lite.share.manager.servers.setup import ServerSetup
from manila_lite.work.job import JobContext
from manila_lite.work.table import Claim


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


class CheckRequest(typing.NamedTuple):
    """The servers to check, and the details of the change."""

    servers: Sequence[ServerWithShares]
    facts: tuple[typing.Any, ...]


class NetworkChecks:
    """The checks of one back end; part of `NetworkUpdatesEndpoint`."""

    setup: ServerSetup

    # Security services

    def prepare_check_security_service(
        self, session: Session, job: Claim
    ) -> CheckRequest:
        args = job.args
        return self._build_request(
            session,
            job,
            (_service(session, args['new_id']), _service(session, args['current_id'])),
        )

    @work(failed='_record_failure')
    def check_security_service(
        self,
        job: JobContext,
        share_network_id: str,
        operation: str,
        new_id: str,
        current_id: str | None,
    ) -> None:
        request: CheckRequest = job.prepared
        new, current = request.facts
        compatible = all(
            self.setup.driver.check_update_share_server_security_service(
                driver_context(),
                one.for_driver,
                one.network_info,
                one.shares,
                one.rules,
                new,
                current_security_service=current,
            )
            for one in request.servers
        )
        job.finish(self._record, share_network_id, operation, compatible)

    # Subnets

    def prepare_check_allocations(self, session: Session, job: Claim) -> CheckRequest:
        zone_id = job.args['zone_id']
        inside = share_networks.list_server_ids_in_subnets(
            session,
            [
                one.id
                for one in subnets.list_for_network(session, job.resource_id)
                if one.availability_zone_id == zone_id
            ],
        )
        return self._build_request(session, job, (), inside)

    @work(failed='_record_failure')
    def check_allocations(
        self,
        job: JobContext,
        share_network_id: str,
        operation: str,
        zone_id: str | None,
        neutron_net_id: str | None,
        neutron_subnet_id: str | None,
    ) -> None:
        request: CheckRequest = job.prepared
        subnet = {
            'share_network_id': share_network_id,
            'availability_zone_id': zone_id,
            'neutron_net_id': neutron_net_id,
            'neutron_subnet_id': neutron_subnet_id,
        }
        compatible = all(
            self.setup.driver.check_update_share_server_network_allocations(
                driver_context(),
                one.for_driver,
                one.addresses,
                subnet,
                one.security_services,
                one.shares,
                one.rules,
            )
            for one in request.servers
        )
        job.finish(self._record, share_network_id, operation, compatible)

    # Both

    def _build_request(
        self, session: Session, job: Claim, facts: tuple, among: set[str] | None = None
    ) -> CheckRequest:
        servers = [
            load_server_with_shares(session, row.id, self.setup)
            for row in share_networks.list_servers(session, job.resource_id)
            if row.host == self.setup.service_host
            and (among is None or row.id in among)
        ]
        return CheckRequest(servers, facts)

    def _record(
        self, session: Session, network_id: str, operation: str, compatible: bool
    ) -> None:
        share_networks.record_result(
            session, network_id, operation, self.setup.service_host, bool(compatible)
        )

    def _record_failure(self, session: Session, job: Claim, error: Exception) -> bool:
        self._record(session, job.resource_id, job.args['operation'], False)
        return True


def _service(
    session: Session, service_id: str | None
) -> SecurityServiceForDriver | None:
    if service_id is None:
        return None
    return server_view.security_service_for_driver(
        security_services.get(session, service_id)
    )
