"""Conditions that a share network must meet for shares on it."""

from collections.abc import Mapping, Sequence
import typing

from manila_lite import exception
from manila_lite.db.queries.networks import share_networks, subnets
from manila_lite.db.queries.services import services
from manila_lite.db.session import Session
from manila_lite.states.share_network import NetworkStatus

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
