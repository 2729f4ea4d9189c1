"""Accept changes of the subnets and security services of share networks.

A network without share servers is changed at once. Otherwise the back ends
of its servers must have confirmed the change in a check, and then change the
servers one by one.
"""

from collections.abc import Mapping, Sequence
import dataclasses
import typing
from typing import Annotated

from manila_lite import exception
from manila_lite.conf import Option
from manila_lite.context import RequestContext
from manila_lite.db import rows
from manila_lite.db.queries.networks import security_services, share_networks, subnets
from manila_lite.db.queries.shares import migrations
from manila_lite.db.session import Database, Session, transaction
from manila_lite.db.transitions import fire, fire_all
from manila_lite.rpc.contract import Client
from manila_lite.rpc.share import NetworkUpdatesRpc, ShareServersRpc
from manila_lite.share.operations.networks import checks
from manila_lite.share.operations.networks.checks import CheckResult, NetworkChange
from manila_lite.share.operations.servers.share_servers import release_unused
from manila_lite.states.share_network import SHARE_NETWORK
from manila_lite.states.share_server import SHARE_SERVER

NO_SERVERS = CheckResult(True, {})
"""The result for a network without share servers."""


@dataclasses.dataclass(eq=False)
class NetworkChanges:
    """Changes of share networks. Each method is one transaction."""

    db: Database
    updates: Client[NetworkUpdatesRpc]
    servers: Client[ShareServersRpc]
    down_time: Annotated[float, Option('service_down_time')]

    # Security services

    @transaction
    def add_security_service(
        self,
        session: Session,
        ctx: RequestContext,
        network_id: str,
        service_id: str,
        *,
        allow_in_use: bool = True,
    ) -> None:
        """Attach a security service, at most one of each type.

        Without `allow_in_use`, a network with share servers is refused.
        """
        network = share_networks.lock(session, network_id)
        checks.refuse_wanted(session, network_id)
        service = self._lock_new_service(session, network, service_id)
        servers = share_networks.list_servers(session, network_id)
        if servers and not allow_in_use:
            raise _not_modifiable(network_id, 'added to')
        if servers:
            self._change_services(session, ctx, network, servers, service_id)
        security_services.attach(session, network_id, service)

    @transaction
    def replace_security_service(
        self,
        session: Session,
        ctx: RequestContext,
        network_id: str,
        current_id: str,
        new_id: str,
    ) -> None:
        """Replace a security service by another one of the same type."""
        network = share_networks.lock(session, network_id)
        checks.refuse_wanted(session, network_id)
        self._check_replaceable(session, network, current_id, new_id)
        servers = share_networks.list_servers(session, network_id)
        if servers:
            self._change_services(session, ctx, network, servers, new_id, current_id)
        security_services.replace(session, network_id, current_id, new_id)

    @transaction
    def check_security_service(
        self,
        session: Session,
        ctx: RequestContext,
        network_id: str,
        new_id: str,
        current_id: str | None = None,
        *,
        restart: bool = False,
    ) -> CheckResult:
        """Check whether a service can be added, or replace `current_id`.

        Starts the check on the back ends unless it was started before;
        `restart` starts it again.
        """
        network = share_networks.lock(session, network_id)
        if current_id is None:
            self._lock_new_service(session, network, new_id)
        else:
            self._check_replaceable(session, network, current_id, new_id)
        servers = share_networks.list_servers(session, network_id)
        if not servers:
            return NO_SERVERS
        change = NetworkChange(checks.SECURITY_SERVICE_UPDATE, (current_id, new_id))
        for host in self._hosts_to_ask(session, network, servers, change, restart):
            self.updates.on(host).check_security_service(
                session,
                ctx,
                share_network_id=network_id,
                operation=change.operation,
                new_id=new_id,
                current_id=current_id,
            )
        return checks.get_result(session, network_id, change)

    def _hosts_to_ask(
        self,
        session: Session,
        network: rows.ShareNetworkRow,
        servers: Sequence[typing.Any],
        change: NetworkChange,
        restart: bool,
    ) -> Sequence[str]:
        """Begin a check, and return where; nowhere if it was begun before."""
        checks.require_ready(session, network, servers, change, self.down_time)
        return checks.begin_check(
            session, network.id, change, checks.hosts_of(servers), restart=restart
        )

    @transaction
    def remove_security_service(
        self, session: Session, ctx: RequestContext, network_id: str, service_id: str
    ) -> None:
        """Detach a security service."""
        share_networks.lock(session, network_id)
        if share_networks.has_servers(
            session, network_id
        ) or migrations.is_network_wanted(session, network_id):
            raise _not_modifiable(network_id, 'removed from')
        if not security_services.detach(session, network_id, service_id):
            raise exception.InvalidShareNetwork(
                reason=f'security service {service_id} is not attached to {network_id}'
            )

    def _lock_new_service(
        self, session: Session, network: rows.ShareNetworkRow, service_id: str
    ) -> rows.SecurityServiceRow:
        """Lock a service FOR SHARE; its type must be new to the network."""
        service = _lock_own_service(session, network, service_id)
        if any(
            row.type == service.type
            for row in security_services.list_for_network(session, network.id)
        ):
            raise security_services.type_conflict(network.id, service.type)
        return service

    def _check_replaceable(
        self,
        session: Session,
        network: rows.ShareNetworkRow,
        current_id: str,
        new_id: str,
    ) -> None:
        """Raise SecurityServiceConflict unless `new_id` can replace it."""
        new = _lock_own_service(session, network, new_id)
        current = next(
            (
                row
                for row in security_services.list_for_network(session, network.id)
                if row.id == current_id
            ),
            None,
        )
        if current is None:
            reason = f'{current_id} is not attached to it'
        elif current_id == new_id:
            reason = 'it is already attached'
        elif current.type != new.type:
            reason = f'{new_id} has another type than {current_id}'
        else:
            return
        raise exception.SecurityServiceConflict(
            share_network_id=network.id, reason=reason
        )

    def _change_services(
        self,
        session: Session,
        ctx: RequestContext,
        network: rows.ShareNetworkRow,
        servers: Sequence[rows.NetworkServerRow],
        new_id: str,
        current_id: str | None = None,
    ) -> None:
        self._begin_change(
            session,
            network,
            servers,
            NetworkChange(checks.SECURITY_SERVICE_UPDATE, (current_id, new_id)),
        )
        for server in servers:
            self.updates.on(server.host).update_security_service(
                session,
                ctx,
                share_server_id=server.id,
                share_network_id=network.id,
                new_id=new_id,
                current_id=current_id,
            )

    def _begin_change(
        self,
        session: Session,
        network: rows.ShareNetworkRow,
        servers: Sequence[rows.NetworkServerRow],
        change: NetworkChange,
    ) -> None:
        """Move the network and its servers to their changing statuses."""
        checks.require_ready(session, network, servers, change, self.down_time)
        checks.require_compatible(session, network.id, change, checks.hosts_of(servers))
        share_networks.delete_all(session, network.id)
        fire(session, SHARE_NETWORK, network.id, 'change')
        fire_all(
            session, SHARE_SERVER, [server.id for server in servers], 'change_network'
        )

    # Subnets

    @transaction
    def create_subnet(
        self,
        session: Session,
        ctx: RequestContext,
        network_id: str,
        *,
        zone: str | None = None,
        subnet: Mapping[str, object],
        metadata: Mapping[str, str] | None = None,
        allow_several: bool = True,
    ) -> str:
        """Add a subnet and return its id.

        Share servers in other subnets of the zone get addresses in it.
        Without `allow_several`, a zone may have only one subnet.
        """
        network = share_networks.lock(session, network_id)
        zone_id, servers = self._new_subnet(session, network_id, zone, allow_several)
        if servers:
            self._begin_change(
                session, network, servers, _allocation_change(zone_id, subnet)
            )
        subnet_id = subnets.insert(
            session, network_id, {'availability_zone_id': zone_id, **subnet}, metadata
        )
        for server in servers:
            self.updates.on(server.host).update_allocations(
                session,
                ctx,
                share_server_id=server.id,
                share_network_id=network_id,
                subnet_id=subnet_id,
            )
        return subnet_id

    @transaction
    def check_subnet(
        self,
        session: Session,
        ctx: RequestContext,
        network_id: str,
        *,
        zone: str | None = None,
        subnet: Mapping[str, typing.Any],
        restart: bool = False,
    ) -> CheckResult:
        """Check whether servers can be given addresses in such a subnet."""
        network = share_networks.lock(session, network_id)
        zone_id, servers = self._new_subnet(session, network_id, zone)
        if not servers:
            return NO_SERVERS
        change = _allocation_change(zone_id, subnet)
        for host in self._hosts_to_ask(session, network, servers, change, restart):
            self.updates.on(host).check_allocations(
                session,
                ctx,
                share_network_id=network_id,
                operation=change.operation,
                zone_id=zone_id,
                neutron_net_id=subnet.get('neutron_net_id'),
                neutron_subnet_id=subnet.get('neutron_subnet_id'),
            )
        return checks.get_result(session, network_id, change)

    def _new_subnet(
        self,
        session: Session,
        network_id: str,
        zone: str | None,
        allow_several: bool = True,
    ) -> tuple[str | None, Sequence[typing.Any]]:
        """Check a new subnet; return the id of its zone and its servers."""
        zone_id = checks.find_zone_id(session, zone)
        present = [
            row
            for row in subnets.list_for_network(session, network_id)
            if row.availability_zone_id == zone_id
        ]
        if present and not allow_several:
            raise exception.ShareNetworkSubnetExists(
                share_network_id=network_id,
                where=f'zone {zone}' if zone else 'all zones',
            )
        server_ids = share_networks.list_server_ids_in_subnets(
            session, [row.id for row in present]
        )
        return zone_id, [
            server
            for server in share_networks.list_servers(session, network_id)
            if server.id in server_ids
        ]

    @transaction
    def delete_subnet(
        self, session: Session, ctx: RequestContext, network_id: str, subnet_id: str
    ) -> None:
        """Delete a subnet, and its share servers if they are idle."""
        network = share_networks.lock(session, network_id)
        subnets.get(session, network_id, subnet_id)

        def in_use(reason: str) -> exception.ManilaLiteError:
            return exception.ShareNetworkSubnetInUse(
                share_network_subnet_id=subnet_id, reason=reason
            )

        if network.status in SHARE_NETWORK.in_flight:
            raise in_use('its network is changing')
        if migrations.is_network_wanted(session, network_id):
            raise in_use('a share is being migrated to its network')
        release_unused(
            session,
            ctx,
            self.servers,
            network_id,
            subnets.list_servers(session, subnet_id),
            in_use,
        )
        subnets.remove(session, subnet_id)

    @transaction
    def set_subnet_metadata(
        self,
        session: Session,
        ctx: RequestContext,
        network_id: str,
        subnet_id: str,
        values: Mapping[str, str],
        *,
        replace: bool = False,
        driver_values: Mapping[str, str],
    ) -> dict[str, str]:
        """Set metadata keys of a subnet, or replace all; return the result.

        `driver_values` are sent to the back ends of the servers in the subnet.
        """
        change = subnets.METADATA.replace if replace else subnets.METADATA.merge
        metadata = change(session, subnet_id, values)
        servers = subnets.list_servers(session, subnet_id) if driver_values else ()
        for server in servers:
            self.updates.on(server.host).tell_subnet_metadata(
                session,
                ctx,
                share_server_id=server.id,
                share_network_id=network_id,
                subnet_id=subnet_id,
                metadata=dict(driver_values),
            )
        return metadata


def _lock_own_service(
    session: Session, network: rows.ShareNetworkRow, service_id: str
) -> rows.SecurityServiceRow:
    """Lock a service FOR SHARE; it must belong to the network's project.

    Administrators see the services of all projects. The password of one
    would be sent to share servers of the other.
    """
    service = security_services.lock_shared(session, service_id)
    if service.project_id != network.project_id:
        raise exception.InvalidShareNetwork(
            reason=f'security service {service_id} belongs to another '
            f'project than {network.id}'
        )
    return service


def _allocation_change(
    zone_id: str | None, subnet: Mapping[str, typing.Any]
) -> NetworkChange:
    return NetworkChange(
        checks.ALLOCATION_UPDATE,
        (zone_id, subnet.get('neutron_net_id'), subnet.get('neutron_subnet_id')),
    )


def _not_modifiable(network_id: str, what: str) -> exception.ManilaLiteError:
    return exception.ShareNetworkNotModifiable(
        share_network_id=network_id, reason=f'security services cannot be {what} it'
    )
