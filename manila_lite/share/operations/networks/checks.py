"""Whether a share network in use may be changed, and what was said of it.

Every back end with share servers on the network is asked, each by work of
its own. A change is only made when all have said that they can.
"""

from collections.abc import Iterable, Sequence
import dataclasses
import hashlib
import typing

import orjson

from manila_lite import exception
from manila_lite.db.queries.admin import services
from manila_lite.db.queries.networks import checks as network_checks
from manila_lite.db.queries.networks import share_networks
from manila_lite.db.session import Session
from manila_lite.rpc.share import BINARY
from manila_lite.states.access_rule import RulesStatus
from manila_lite.states.share_instance import InstanceStatus
from manila_lite.states.share_network import NetworkStatus
from manila_lite.states.share_server import ServerStatus

SECURITY_SERVICE_UPDATE = 'security_service_update_support'
ALLOCATION_UPDATE = 'network_allocation_update_support'


@dataclasses.dataclass(frozen=True)
class NetworkChange:
    """A change that back ends may be asked about.

    `support` is the ability of servers that it takes, `facts` what tells
    it from other changes of the network.
    """

    support: str
    facts: tuple[str | None, ...]

    @property
    def operation(self) -> str:
        """What answers about it are found by."""
        return hashlib.sha256(
            orjson.dumps((self.support, *self.facts))
        ).hexdigest()


class CheckResult(typing.NamedTuple):
    """What back ends say, by host; `compatible` is None until all have."""

    compatible: bool | None
    hosts: dict[str, bool | None]


def combine_answers(hosts: dict[str, bool | None]) -> CheckResult:
    """One that cannot is enough; all that can are needed."""
    said = set(hosts.values())
    return CheckResult(
        False if False in said else None if None in said else True, hosts
    )


def hosts_of(servers: Iterable[typing.Any]) -> list[str]:
    return sorted({server.host for server in servers})


def require_ready(
    session: Session,
    network: typing.Any,
    servers: Sequence[typing.Any],
    change: NetworkChange,
    down_time: float,
) -> None:
    """Refuse a change that nobody could make now.

    Raises InvalidShareNetwork, or a conflict when a service is down. The
    network is held by the caller.
    """
    _demand_active(network)
    for server in servers:
        if server.status != ServerStatus.ACTIVE:
            raise exception.InvalidShareNetwork(
                reason=f'a share server of {network.id} is not active'
            )
        if not getattr(server, change.support):
            raise exception.InvalidShareNetwork(
                reason=f'a share server of {network.id} does not support '
                'the change'
            )
    up = {
        service.host
        for service in services.list_all(session)
        if service.binary == BINARY and services.is_up(service, down_time)
    }
    for host in hosts_of(servers):
        if host not in up:
            raise exception.ServiceNotUp(binary=BINARY, host=host)
    for share in share_networks.list_share_instances(
        session, [server.id for server in servers]
    ):
        if (
            share.status != InstanceStatus.AVAILABLE
            or share.access_rules_status != RulesStatus.ACTIVE
        ):
            raise exception.InvalidShareNetwork(
                reason=f'share {share.share_id} on {network.id} is not '
                'available, or its access rules are changing'
            )


def _demand_active(network: typing.Any) -> None:
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
    anew: bool,
) -> list[str]:
    """The hosts that are to be asked now: none if they have been.

    `anew` asks them once more.
    """
    known = network_checks.get_results(session, network_id, change.operation)
    if not anew and sorted(known) == list(hosts):
        return []
    network_checks.start(session, network_id, change.operation, hosts)
    return list(hosts)


def get_result(
    session: Session, network_id: str, change: NetworkChange
) -> CheckResult:
    """What has been said of a change so far."""
    return combine_answers(
        network_checks.get_results(session, network_id, change.operation)
    )


def require_compatible(
    session: Session,
    network_id: str,
    change: NetworkChange,
    hosts: Sequence[str],
) -> None:
    """Refuse a change unless all back ends have said that they can."""
    said = network_checks.get_results(session, network_id, change.operation)
    if sorted(said) != list(hosts):
        raise exception.InvalidShareNetwork(
            reason=f'{network_id} is in use; first check whether it can '
            'be changed so'
        )
    compatible = combine_answers(said).compatible
    if compatible is None:
        raise exception.InvalidShareNetwork(
            reason=f'the check of {network_id} has not ended'
        )
    if not compatible:
        raise exception.InvalidShareNetwork(
            reason=f'a back end cannot change {network_id} so'
        )
