"""Moves of share networks."""

from manila_lite.db.queries.networks import share_networks
from manila_lite.db.session import Session
from manila_lite.db.transitions import fire
from manila_lite.states.share_network import SHARE_NETWORK, NetworkStatus


def finish_change(session: Session, network_id: str, *, failed: bool) -> None:
    """End the change of a network, unless a server of it is still changing.

    Call it in the transaction that ends the change of a server. With
    `failed` the change of the whole network has failed.
    """
    row = share_networks.lock_if_exists(session, network_id)
    if row is None or row.status != NetworkStatus.NETWORK_CHANGE:
        return
    if failed:
        fire(
            session, SHARE_NETWORK, network_id, 'change_failed', updated_at=session.now
        )
    elif not share_networks.is_changing(session, network_id):
        fire(session, SHARE_NETWORK, network_id, 'changed', updated_at=session.now)
