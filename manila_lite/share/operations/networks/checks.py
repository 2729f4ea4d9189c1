"""Compatibility checks before a share network in use is changed.

Every back end with share servers on the network is asked by separate work. A
change is made only when all have answered that they support it.
"""

from collections.abc import Iterable, Mapping, Sequence
import dataclasses
import hashlib
import typing

import orjson

from manila_lite import exception
from manila_lite.db import rows
from manila_lite.db.queries.networks import share_networks, subnets
from manila_lite.db.queries.services import services
from manila_lite.db.queries.shares import migrations
from manila_lite.db.session import Session
from manila_lite.rpc.share import BINARY
from manila_lite.states.access_rule import RulesStatus
from manila_lite.states.share_group import SHARE_GROUP
from manila_lite.states.share_instance import InstanceStatus
from manila_lite.states.share_network import NetworkStatus
from manila_lite.states.share_server import ServerStatus

SECURITY_SERVICE_UPDATE = 'security_service_update_support'
ALLOCATION_UPDATE = 'network_allocation_update_support'


@dataclasses.dataclass(frozen=True)
class NetworkChange:
    """A change of a network that back ends can be asked about.

    `support` is the capability that servers need for it; `facts` distinguish
    it from other changes of the network.
    """

    support: str
    facts: tuple[str | None, ...]

    @property
    def operation(self) -> str:
        """The key under which answers about the change are stored."""
        return hashlib.sha256(orjson.dumps((self.support, *self.facts))).hexdigest()


class CheckResult(typing.NamedTuple):
    """Answers by host; `compatible` is None while one is pending."""

    compatible: bool | None
    hosts: dict[str, bool | None]


def combine_answers(hosts: dict[str, bool | None]) -> CheckResult:
    """Combine answers: one False decides, True needs all of them."""
    answers = set(hosts.values())
    return CheckResult(
        False if False in answers else None if None in answers else True, hosts
    )


def hosts_of(servers: Iterable[typing.Any]) -> list[str]:
    """Return the hosts of the servers, sorted and without duplicates."""
    return sorted({server.host for server in servers})


def require_ready(
    session: Session,
    network: rows.ShareNetworkRow,
    servers: Sequence[typing.Any],
    change: NetworkChange,
    down_time: float,
) -> None:
    """Refuse a change that cannot be made at present.

    Raises InvalidShareNetwork, or ServiceNotUp (a conflict) if a service is
    down. The caller has locked the network.
    """
    _require_active(network)
    refuse_wanted(session, network.id)
    for server in servers:
        if server.status != ServerStatus.ACTIVE:
            raise exception.InvalidShareNetwork(
                reason=f'a share server of {network.id} is not active'
            )
        if not getattr(server, change.support):
            raise exception.InvalidShareNetwork(
                reason=f'a share server of {network.id} does not support the change'
            )
    up = {
        service.host
        for service in services.list_all(session)
        if service.binary == BINARY and services.is_up(service, down_time)
    }
    for host in hosts_of(servers):
        if host not in up:
            raise exception.ServiceNotUp(binary=BINARY, host=host)
    server_ids = [server.id for server in servers]
    for group in share_networks.list_share_groups(session, server_ids):
        if group.status in SHARE_GROUP.in_flight:
            raise exception.InvalidShareNetwork(
                reason=f'share group {group.id} on {network.id} is {group.status}'
            )
    for share in share_networks.list_share_instances(session, server_ids):
        if (
            share.status != InstanceStatus.AVAILABLE
            or share.access_rules_status != RulesStatus.ACTIVE
        ):
            raise exception.InvalidShareNetwork(
                reason=f'share {share.share_id} on {network.id} is not '
                'available, or its access rules are changing'
            )


def refuse_wanted(session: Session, network_id: str) -> None:
    """Raise InvalidShareNetwork while a share is migrated to the network.

    Its share server may not exist yet.
    """
    if migrations.is_network_wanted(session, network_id):
        raise exception.InvalidShareNetwork(
            reason=f'a share is being migrated to {network_id}'
        )


def _require_active(network: rows.ShareNetworkRow) -> None:
    if network.status != NetworkStatus.ACTIVE:
        raise exception.InvalidShareNetwork(
            reason=f'{network.id} must be active, not {network.status}'
        )


def begin_check(
    session: Session,
    network_id: str,
    change: NetworkChange,
    hosts: Sequence[str],
    *,
    restart: bool,
) -> list[str]:
    """Start a check and return the hosts to ask.

    Returns none if the check was started before, unless `restart` is set.
    """
    answers = share_networks.get_results(session, network_id, change.operation)
    if not restart and sorted(answers) == list(hosts):
        return []
    share_networks.start(session, network_id, change.operation, hosts)
    return list(hosts)


def get_result(session: Session, network_id: str, change: NetworkChange) -> CheckResult:
    """Return the answers about a change so far."""
    return combine_answers(
        share_networks.get_results(session, network_id, change.operation)
    )


def require_compatible(
    session: Session, network_id: str, change: NetworkChange, hosts: Sequence[str]
) -> None:
    """Refuse a change unless all back ends have confirmed it."""
    answers = share_networks.get_results(session, network_id, change.operation)
    if sorted(answers) != list(hosts):
        raise exception.InvalidShareNetwork(
            reason=f'{network_id} is in use; request a check of the change first'
        )
    compatible = combine_answers(answers).compatible
    if compatible is None:
        raise exception.InvalidShareNetwork(
            reason=f'the check of {network_id} has not finished'
        )
    if not compatible:
        raise exception.InvalidShareNetwork(
            reason=f'a back end does not support the change of {network_id}'
        )


NEUTRON_IDS = ('neutron_net_id', 'neutron_subnet_id')


def check_neutron_ids(subnet: Mapping[str, object]) -> None:
    """Refuse one of the Neutron ids of a subnet without the other."""
    if len({subnet.get(name) is None for name in NEUTRON_IDS}) > 1:
        raise exception.InvalidInput(
            reason=' and '.join(NEUTRON_IDS) + ' must be given together'
        )


def lock_active_shared(
    session: Session, share_network_id: str, *, of_project: str | None = None
) -> typing.Any:
    """Lock an active network FOR SHARE; raises InvalidShareNetwork.

    With `of_project`, it must belong to that project: administrators see the
    networks of all projects. Its owner could not remove the network, nor see
    what is on it.
    """
    network = share_networks.lock_shared(session, share_network_id)
    if of_project not in (None, network.project_id):
        raise exception.InvalidShareNetwork(
            reason=f'share network {network.id} belongs to project '
            f'{network.project_id}, not {of_project}'
        )
    if network.status != NetworkStatus.ACTIVE:
        raise exception.InvalidShareNetwork(
            reason=f'share network {network.id} must be active, not {network.status}'
        )
    return network


def zones_with_subnet(
    session: Session, share_network_id: str, wanted: Sequence[str]
) -> list[str]:
    """Return those of the wanted zones that the network has a subnet for.

    An empty list means any zone, as argument and as result. Raises
    InvalidShareNetwork if no zone remains.
    """
    network_subnets = subnets.list_for_network(session, share_network_id)
    if any(subnet.is_default for subnet in network_subnets):
        return list(wanted)
    zones = {
        subnet.availability_zone
        for subnet in network_subnets
        if subnet.availability_zone is not None
    }
    remaining = (
        sorted(zones) if not wanted else [zone for zone in wanted if zone in zones]
    )
    if not remaining:
        raise exception.InvalidShareNetwork(
            reason=f'share network {share_network_id} has no subnet '
            f'for {" or ".join(wanted) or "any zone"}'
        )
    return remaining


def find_zone_id(session: Session, zone: str | None) -> str | None:
    """Return the id of the zone of a new subnet; None means all zones."""
    if not zone:
        return None
    found = services.find_zone(session, zone)
    if found is None:
        raise exception.InvalidInput(reason=f'availability_zone {zone} does not exist')
    return found.id
