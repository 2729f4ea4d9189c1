"""Ends of share server migrations and of changes of share networks."""

from manila_lite.db.queries.networks import share_networks
from manila_lite.db.queries.servers import migrations
from manila_lite.db.queries.services import pools
from manila_lite.db.rows import MigrationRow
from manila_lite.db.session import Session
from manila_lite.db.transitions import fire
from manila_lite.states.share_network import SHARE_NETWORK, NetworkStatus
from manila_lite.states.share_server import TaskState


def end_migration(
    session: Session, migration: MigrationRow, outcome: str, reason: str | None = None
) -> None:
    """Close a migration whose shares stay, and release what it reserved.

    Repeating it changes nothing.
    """
    reserved = migrations.close(session, migration, outcome, reason)
    for host, gb in sorted(reserved.items()):
        pools.adjust_allocated(session, host, -gb)


def end_open_migrations(session: Session, source_server_id: str) -> None:
    """End a migration that `reset_task_state` has left open, if any."""
    migration = migrations.find_open(session, source_server_id)
    if migration is not None:
        end_migration(session, migration, TaskState.ERROR)


def finish_network_change(session: Session, network_id: str, *, failed: bool) -> None:
    """End the change of a network, unless a server of it is still changing.

    Call it in the transaction that ends the change of a server. With
    `failed` the change of the whole network has failed.
    """
    row = share_networks.lock_if_exists(session, network_id)
    if row is None or row.status != NetworkStatus.NETWORK_CHANGE:
        return
    if failed:
        fire(session, SHARE_NETWORK, network_id, 'change_failed')
    elif not share_networks.is_changing(session, network_id):
        fire(session, SHARE_NETWORK, network_id, 'changed')
