"""Accept changes of what share networks are made of.

Subnets and security services of a network that nothing uses are changed
at once. Where there are share servers, their back ends are asked first,
and then change one server after the other.
"""

from collections.abc import Mapping, Sequence
import typing

from manila_lite import exception
from manila_lite.context import RequestContext
from manila_lite.db.queries.networks import checks as network_checks
from manila_lite.db.queries.networks import security_services
from manila_lite.db.queries.networks import share_networks
from manila_lite.db.queries.networks import subnets
from manila_lite.db.session import Database
from manila_lite.db.session import Session
from manila_lite.db.session import transaction
from manila_lite.db.transitions import fire
from manila_lite.db.transitions import fire_all
from manila_lite.rpc.contract import Client
from manila_lite.share.operations.networks import checks
from manila_lite.share.operations.networks.checks import CheckResult
from manila_lite.share.operations.networks.checks import NetworkChange
from manila_lite.share.operations.servers.release import release_unused
from manila_lite.states.share_network import SHARE_NETWORK
from manila_lite.states.share_server import SHARE_SERVER

NO_SERVERS = CheckResult(True, {})
"""What is said where there is nobody to ask."""


class NetworkChanges:
    """Each method is a transaction: all of a request, or none of it."""

    def __init__(
        self, db: Database, updates: Client, servers: Client, down_time: float
    ):
        self.db = db
        self.updates = updates
        self.servers = servers
        self.down_time = down_time

    # Security services

    @transaction
    def add_security_service(
        self,
        session: Session,
        ctx: RequestContext,
        network_id: str,
        service_id: str,
        *,
        in_use: bool = True,
    ) -> None:
        """Have the network use a service, one of each type at most.

        Without `in_use`, one with share servers refuses.
        """
        network = share_networks.lock(session, network_id)
        service = self._new_service(session, network_id, service_id)
        servers = share_networks.list_servers(session, network_id)
        if servers and not in_use:
            raise _fixed(network_id, 'added to')
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
        """Have the network use a service instead of one of its type."""
        network = share_networks.lock(session, network_id)
        self._replaceable(session, network_id, current_id, new_id)
        servers = share_networks.list_servers(session, network_id)
        if servers:
            self._change_services(
                session, ctx, network, servers, new_id, current_id
            )
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
        anew: bool = False,
    ) -> CheckResult:
        """Whether servers could use a service, too or instead of another.

        Asks their back ends unless they have been; `anew` asks again.
        """
        network = share_networks.lock(session, network_id)
        if current_id is None:
            self._new_service(session, network_id, new_id)
        else:
            self._replaceable(session, network_id, current_id, new_id)
        servers = share_networks.list_servers(session, network_id)
        if not servers:
            return NO_SERVERS
        change = NetworkChange(
            checks.SECURITY_SERVICE_UPDATE, (current_id, new_id)
        )
        checks.require_ready(session, network, servers, change, self.down_time)
        for host in checks.begin_check(
            session, network_id, change, checks.hosts_of(servers), anew=anew
        ):
            self.updates.on(host).check_security_service(
                session,
                ctx,
                share_network_id=network_id,
                operation=change.operation,
                new_id=new_id,
                current_id=current_id,
            )
        return checks.get_result(session, network_id, change)

    @transaction
    def remove_security_service(
        self,
        session: Session,
        ctx: RequestContext,
        network_id: str,
        service_id: str,
    ) -> None:
        """Have the network no longer use a service."""
        share_networks.lock(session, network_id)
        if share_networks.has_servers(session, network_id):
            raise _fixed(network_id, 'removed from')
        if not security_services.detach(session, network_id, service_id):
            raise exception.InvalidShareNetwork(
                reason=f'security service {service_id} is not attached to '
                f'{network_id}'
            )

    def _new_service(self, session, network_id, service_id):
        """A service, kept, of a type that the network has none of."""
        service = security_services.lock_shared(session, service_id)
        if any(
            one.type == service.type
            for one in security_services.list_for_network(session, network_id)
        ):
            raise security_services.type_conflict(network_id, service.type)
        return service

    def _replaceable(self, session, network_id, current_id, new_id):
        """Refuse what cannot take the place of a service."""
        new = security_services.lock_shared(session, new_id)
        current = next(
            (
                one
                for one in security_services.list_for_network(
                    session, network_id
                )
                if one.id == current_id
            ),
            None,
        )
        if current is None:
            reason = f'{current_id} is not attached to it'
        elif current_id == new_id:
            reason = 'it is attached already'
        elif current.type != new.type:
            reason = f'{new_id} is of another type than {current_id}'
        else:
            return
        raise exception.SecurityServiceConflict(
            share_network_id=network_id, reason=reason
        )

    def _change_services(
        self, session, ctx, network, servers, new_id, current_id=None
    ):
        self._begin(
            session,
            network,
            servers,
            NetworkChange(
                checks.SECURITY_SERVICE_UPDATE, (current_id, new_id)
            ),
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

    def _begin(self, session, network, servers, change):
        """The network and its servers are changing from now on."""
        checks.require_ready(session, network, servers, change, self.down_time)
        checks.require_compatible(
            session, network.id, change, checks.hosts_of(servers)
        )
        network_checks.delete_all(session, network.id)
        fire(
            session,
            SHARE_NETWORK,
            network.id,
            'change',
            updated_at=session.now,
        )
        fire_all(
            session,
            SHARE_SERVER,
            [server.id for server in servers],
            'change_network',
            updated_at=session.now,
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
        several: bool = True,
    ) -> str:
        """Add a subnet; its id. Without `several`, one for each zone.

        Share servers that are in subnets of the zone get addresses in it.
        """
        network = share_networks.lock(session, network_id)
        zone_id, servers = self._new_subnet(
            session, network_id, zone, subnet, several
        )
        if servers:
            self._begin(session, network, servers, _one_more(zone_id, subnet))
        subnet_id = subnets.insert(
            session,
            network_id,
            {'availability_zone_id': zone_id, **subnet},
            metadata,
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
        anew: bool = False,
    ) -> CheckResult:
        """Whether servers could have addresses in such a subnet."""
        network = share_networks.lock(session, network_id)
        zone_id, servers = self._new_subnet(session, network_id, zone, subnet)
        if not servers:
            return NO_SERVERS
        change = _one_more(zone_id, subnet)
        checks.require_ready(session, network, servers, change, self.down_time)
        for host in checks.begin_check(
            session, network_id, change, checks.hosts_of(servers), anew=anew
        ):
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
        subnet: Mapping[str, object],
        several: bool = True,
    ) -> tuple[str | None, Sequence[typing.Any]]:
        """The zone of a subnet to be, and the servers it is for."""
        zone_id = subnets.get_zone_id(session, zone) if zone else None
        found = [
            one
            for one in subnets.list_for_network(session, network_id)
            if one.availability_zone_id == zone_id
        ]
        if found and (
            not several or any(_is_same(one, subnet) for one in found)
        ):
            raise exception.ShareNetworkSubnetExists(
                share_network_id=network_id,
                where=f'zone {zone}' if zone else 'all zones',
            )
        inside = share_networks.list_server_ids_in_subnets(
            session, [one.id for one in found]
        )
        return zone_id, [
            server
            for server in share_networks.list_servers(session, network_id)
            if server.id in inside
        ]

    @transaction
    def delete_subnet(
        self,
        session: Session,
        ctx: RequestContext,
        network_id: str,
        subnet_id: str,
    ) -> None:
        """Remove a subnet, and its servers if they are idle."""
        network = share_networks.lock(session, network_id)
        subnets.get(session, network_id, subnet_id)

        def in_use(reason: str) -> exception.ManilaLiteError:
            return exception.ShareNetworkSubnetInUse(
                share_network_subnet_id=subnet_id, reason=reason
            )

        if network.status in SHARE_NETWORK.in_flight:
            raise in_use('its network is changing')
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
        told: Mapping[str, str],
    ) -> dict[str, str]:
        """Set keys of a subnet, or all; its metadata then.

        The servers in the subnet are told of the keys in `told`.
        """
        change = (
            subnets.METADATA.replace if replace else subnets.METADATA.merge
        )
        found = change(session, subnet_id, values)
        for server in subnets.list_servers(session, subnet_id) if told else ():
            self.updates.on(server.host).tell_subnet_metadata(
                session,
                ctx,
                share_server_id=server.id,
                share_network_id=network_id,
                subnet_id=subnet_id,
                metadata=dict(told),
            )
        return found


def _one_more(
    zone_id: str | None, subnet: Mapping[str, typing.Any]
) -> NetworkChange:
    return NetworkChange(
        checks.ALLOCATION_UPDATE,
        (
            zone_id,
            subnet.get('neutron_net_id'),
            subnet.get('neutron_subnet_id'),
        ),
    )


def _is_same(one: subnets.Subnet, subnet: Mapping[str, object]) -> bool:
    """Whether both are one subnet elsewhere; without ids none is."""
    id = subnet.get('neutron_subnet_id')
    return id is not None and one.neutron_subnet_id == id


def _fixed(network_id: str, what: str) -> exception.ManilaLiteError:
    return exception.ShareNetworkNotModifiable(
        share_network_id=network_id,
        reason=f'security services cannot be {what} it',
    )
