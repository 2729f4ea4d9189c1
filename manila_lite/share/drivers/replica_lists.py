"""What drivers look up in the lists that they are given, and reply."""

import datetime

from manila_lite.share.drivers.contract.values import (
    ReplicaStateReply,
    ShareForDriver,
    SnapshotForDriver,
)

ACTIVE, IN_SYNC, OUT_OF_SYNC, ERROR = ('active', 'in_sync', 'out_of_sync', 'error')

ReplicaList = list[ShareForDriver]
SnapshotList = list[SnapshotForDriver]


def find_active(replica_list: ReplicaList) -> ShareForDriver | None:
    """Return the active replica, if there is one."""
    return next((one for one in replica_list if one['replica_state'] == ACTIVE), None)


def replica_state_reply(
    replica_state: str | None, synced_at: float | None
) -> ReplicaStateReply:
    """Return a reply about a replica; `synced_at` is seconds since 1970."""
    reply = ReplicaStateReply(replica_state=replica_state)
    if synced_at is not None:
        reply['synced_at'] = datetime.datetime.fromtimestamp(synced_at, datetime.UTC)
    return reply


def instances_on_active(
    snapshots: SnapshotList, replica_list: ReplicaList
) -> SnapshotList:
    """Return those instances of snapshots that are on the active replica."""
    active = find_active(replica_list)
    return [
        one
        for one in snapshots
        if active is not None and one['share_instance_id'] == active['id']
    ]
