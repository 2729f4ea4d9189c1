"""Removal of replicas with their quota."""

from manila_lite.db.queries.snapshots import snapshots
from manila_lite.db.rows import InstanceRow
from manila_lite.db.session import Session
from manila_lite.quota import shares as share_quota, snapshots as snapshot_quota
from manila_lite.states.snapshot_instance import HIDDEN_FROM_TENANTS


def remove_and_credit(session: Session, instance: InstanceRow) -> None:
    """Remove a replica and the snapshots on it, and give back their quota.

    `instance` is a row of `instances.get`. A snapshot that is on no other
    replica is removed completely; that of one in deferred deletion was given
    back before.
    """
    for row in snapshots.list_on_share_instance(session, instance.id):
        remove = (
            snapshot_quota.remove_uncharged
            if row.status in HIDDEN_FROM_TENANTS
            else snapshot_quota.remove_and_credit
        )
        remove(session, row, 'removed')
    share_quota.remove_and_credit(session, instance)
