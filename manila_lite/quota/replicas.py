"""Removal of replicas with their quota."""

from manila_lite.db.queries.snapshots import snapshots
from manila_lite.db.rows import InstanceRow
from manila_lite.db.session import Session
from manila_lite.quota import shares as share_quota, snapshots as snapshot_quota


def remove_and_credit(session: Session, instance: InstanceRow) -> None:
    """Remove a replica and the snapshots on it, and give back their quota.

    `instance` is a row of `instances.get`. A snapshot that is on no other
    replica is removed completely.
    """
    for row in snapshots.list_on_share_instance(session, instance.id):
        snapshot_quota.remove_and_credit(session, row, 'removed')
    share_quota.remove_and_credit(session, instance)
