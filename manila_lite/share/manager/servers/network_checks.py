"""Check with drivers whether share servers support a network change.

The result is stored until the change is made or checked again; an error
means no. All servers of the back end on the network must support it.
"""

from collections.abc import Sequence
import typing

from manila_lite.db.queries.networks import security_services, share_networks, subnets
from manila_lite.db.session import Session
from manila_lite.rpc.contract import work
from manila_lite.share.drivers.base import SecurityServiceForDriver
from manila_lite.share.manager.driver_view import server_view
from manila_lite.share.manager.guarded_driver import driver_context
from manila_lite.share.manager.servers.server_with_shares import (
    ServerWithShares,
    load_server_with_shares,
)
from manila_lite.share.manager.servers.setup import ServerSetup
from manila_lite.work.job import JobContext
from manila_lite.work.table import Claim


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
