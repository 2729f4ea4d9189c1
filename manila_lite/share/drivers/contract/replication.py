"""Driver methods that keep replicas of a share on other back ends.

Names, parameters and replies are the published ones (driver-interface.csv)
and those of the share replication design. Unless stated otherwise, a method
is called on the back end of the replica it concerns. `replica_list` has all
replicas of the share, including that one; `replica_state` shows which of
them is active. `access_rules` are the rules of the share as they apply to
the replica. Every method may be called twice and must lead to the same
state.
"""

from collections.abc import Sequence
import datetime

from manila_lite.context import RequestContext
from manila_lite.share.drivers.contract import interfaces, values
from manila_lite.share.drivers.contract.access import AccessRules

ReplicaList = list[values.ShareForDriver]


class ReplicationDefaults:
    """Defaults that every driver inherits: it has no replicas."""

    # Replicas

    def create_replica(
        self,
        context: RequestContext,
        replica_list: ReplicaList,
        new_replica: values.ShareForDriver,
        access_rules: AccessRules,
        replica_snapshots: list[values.ReplicaSnapshot],
        share_server: interfaces.ShareServerMapping | None = None,
    ) -> values.ReplicaReply | None:
        """Create a copy of the active replica, or start to.

        A `replica_state` in the reply means that the replica can be used:
        in_sync only if it has all snapshots of the list, active only on back
        ends whose replicas are all writable.
        """
        raise NotImplementedError

    def delete_replica(
        self,
        context: RequestContext,
        replica_list: ReplicaList,
        replica_snapshots: list[values.SnapshotForDriver],
        replica: values.ShareForDriver,
        share_server: interfaces.ShareServerMapping | None = None,
    ) -> None:
        """Delete a replica and its snapshots; a missing one is success."""
        raise NotImplementedError

    def promote_replica(
        self,
        context: RequestContext,
        replica_list: ReplicaList,
        replica: values.ShareForDriver,
        access_rules: AccessRules,
        share_server: interfaces.ShareServerMapping | None = None,
        quiesce_wait_time: int | None = None,
    ) -> Sequence[values.ReplicaReply] | None:
        """Make a replica the only active one.

        Without a reply the previously active replica is out of sync. Clients
        may be given `quiesce_wait_time` seconds to quiesce. The active
        replica of the list may be unreachable.
        """
        raise NotImplementedError

    def update_replica_state(
        self,
        context: RequestContext,
        replica_list: ReplicaList,
        replica: values.ShareForDriver,
        access_rules: AccessRules,
        replica_snapshots: list[values.ReplicaSnapshot],
        share_server: interfaces.ShareServerMapping | None = None,
    ) -> values.ReplicaStateReply | str | None:
        """Return whether a replica that is not active is up to date.

        The reply is in_sync (only if it has all snapshots of the list),
        out_of_sync, error, or None if nothing has changed. A replica of the
        writable type that has become writable is active; so is one that
        is the active one on the back end, contrary to the list. Whatever
        keeps the replica from following is repaired if possible.

        A driver that knows when the replica was synchronised replies with a
        mapping instead, see `ReplicaStateReply`.
        """
        raise NotImplementedError

    def get_replica_status(
        self,
        replica: values.ShareForDriver,
        share_server: interfaces.ShareServerMapping | None = None,
    ) -> values.StatusReply:
        """Return the actual state of a replica, as for a share.

        If the replica should be active and the reply has another
        `replica_state`, it is promoted again.
        """
        raise NotImplementedError

    # Snapshots: `replica_snapshots` has the instances of all replicas

    def create_replicated_snapshot(
        self,
        context: RequestContext,
        replica_list: ReplicaList,
        replica_snapshots: list[values.SnapshotForDriver],
        share_server: interfaces.ShareServerMapping | None = None,
    ) -> Sequence[values.ReplicatedSnapshotReply] | None:
        """Create a snapshot on the active replica and its copies.

        Called on the back end of the active replica. The reply covers those
        instances whose state is known.
        """
        raise NotImplementedError

    def delete_replicated_snapshot(
        self,
        context: RequestContext,
        replica_list: ReplicaList,
        replica_snapshots: list[values.SnapshotForDriver],
        share_server: interfaces.ShareServerMapping | None = None,
    ) -> Sequence[values.ReplicatedSnapshotReply] | None:
        """Delete a snapshot from all replicas.

        Called and replied to like `create_replicated_snapshot`.
        """
        raise NotImplementedError

    def update_replicated_snapshot(
        self,
        context: RequestContext,
        replica_list: ReplicaList,
        share_replica: values.ShareForDriver,
        replica_snapshots: list[values.SnapshotForDriver],
        replica_snapshot: values.SnapshotForDriver,
        share_server: interfaces.ShareServerMapping | None = None,
    ) -> values.ReplicatedSnapshotReply | None:
        """Return the progress of a snapshot being created or deleted.

        Raises SnapshotResourceNotFound if the replica does not have it.
        """
        raise NotImplementedError

    def revert_to_replicated_snapshot(
        self,
        context: RequestContext,
        active_replica: values.ShareForDriver,
        replica_list: ReplicaList,
        active_replica_snapshot: values.SnapshotForDriver,
        replica_snapshots: list[values.SnapshotForDriver],
        share_access_rules: AccessRules,
        snapshot_access_rules: AccessRules,
        share_server: interfaces.ShareServerMapping | None = None,
    ) -> int | None:
        """Do what `revert_to_snapshot` does for a replicated share."""
        raise NotImplementedError


@interfaces.requires('create_replica', 'delete_replica')
class ReplicationSupport(ReplicationDefaults, interfaces.DefaultedInterface):
    """Replicas of shares on other back ends.

    Drivers whose replicas are all writable may lack the methods that promote
    a replica and poll its state; drivers without snapshots may lack those
    for snapshots.
    """


ACTIVE, IN_SYNC, OUT_OF_SYNC, ERROR = ('active', 'in_sync', 'out_of_sync', 'error')

SnapshotList = list[values.SnapshotForDriver]


def find_active(replica_list: ReplicaList) -> values.ShareForDriver | None:
    """Return the active replica, if there is one."""
    return next((one for one in replica_list if one['replica_state'] == ACTIVE), None)


def replica_state_reply(
    replica_state: str | None, synced_at: float | None
) -> values.ReplicaStateReply:
    """Return a reply about a replica; `synced_at` is seconds since 1970."""
    reply = values.ReplicaStateReply(replica_state=replica_state)
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
