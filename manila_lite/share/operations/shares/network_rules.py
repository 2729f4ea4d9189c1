"""What a share network has to be like for what is put on it."""

from collections.abc import Sequence
import typing

from manila_lite import exception
from manila_lite.db.queries.networks import share_networks
from manila_lite.db.queries.networks import subnets
from manila_lite.db.session import Session
from manila_lite.states.share_network import NetworkStatus


def lock_active_shared(session: Session, share_network_id: str) -> typing.Any:
    """The network, active, and kept so by the transaction."""
    network = share_networks.lock_shared(session, share_network_id)
    if network.status != NetworkStatus.ACTIVE:
        raise exception.InvalidShareNetwork(
            reason=f'share network {network.id} must be active, not '
            f'{network.status}'
        )
    return network


def zones_with_subnet(
    session: Session, share_network_id: str, wanted: Sequence[str]
) -> list[str]:
    """Those of the zones that the network has a subnet for.

    No zones wanted, or given back, means any. Raises InvalidShareNetwork
    when none is left.
    """
    found = subnets.list_for_network(session, share_network_id)
    if any(subnet.is_default for subnet in found):
        return list(wanted)
    own = {
        subnet.availability_zone
        for subnet in found
        if subnet.availability_zone is not None
    }
    left = (
        sorted(own) if not wanted else [zone for zone in wanted if zone in own]
    )
    if not left:
        raise exception.InvalidShareNetwork(
            reason=f'share network {share_network_id} has no subnet '
            f'for {" or ".join(wanted) or "any zone"}'
        )
    return left
