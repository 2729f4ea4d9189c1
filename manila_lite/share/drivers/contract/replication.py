"""How a driver keeps further copies of a share on other back ends.

Names, parameters and answers are the published ones
(driver-interface.csv), and of the share replication design. Where not said
otherwise a method is called on the back end of the replica it is about.
`replica_list` has all replicas of the share, that one included; in each
`replica_state` says which of them is active. `access_rules` are those of
the share as the replica is to know them. All may be called twice and must
end in the same place.
"""

from collections.abc import Sequence

from manila_lite.context import RequestContext
from manila_lite.share.drivers.contract.interfaces import ShareServerMapping
from manila_lite.share.drivers.contract.values import AccessRuleForDriver
from manila_lite.share.drivers.contract.values import ReplicaReply
from manila_lite.share.drivers.contract.values import ReplicaSnapshot
from manila_lite.share.drivers.contract.values import ReplicatedSnapshotReply
from manila_lite.share.drivers.contract.values import ShareForDriver
from manila_lite.share.drivers.contract.values import SnapshotForDriver
from manila_lite.share.drivers.contract.values import StatusReply

ReplicaList = list[ShareForDriver]
AccessRules = list[AccessRuleForDriver]


class ReplicationDefaults:
    """The published methods; a driver writes those it can do."""

    # Replicas

    def create_replica(
        self,
        context: RequestContext,
        replica_list: ReplicaList,
        new_replica: ShareForDriver,
        access_rules: AccessRules,
        replica_snapshots: list[ReplicaSnapshot],
        share_server: ShareServerMapping | None = None,
    ) -> ReplicaReply | None:
        """Make a copy of the active replica, or begin to.

        A `replica_state` in the answer says that it can be used: in_sync
        only if it has all snapshots of the list, active only of a back
        end all of whose replicas can be written.
        """
        raise NotImplementedError

    def delete_replica(
        self,
        context: RequestContext,
        replica_list: ReplicaList,
        replica_snapshots: list[SnapshotForDriver],
        replica: ShareForDriver,
        share_server: ShareServerMapping | None = None,
    ) -> None:
        """Remove a replica with its snapshots; gone is success."""
        raise NotImplementedError

    def promote_replica(
        self,
        context: RequestContext,
        replica_list: ReplicaList,
        replica: ShareForDriver,
        access_rules: AccessRules,
        share_server: ShareServerMapping | None = None,
        quiesce_wait_time: int | None = None,
    ) -> Sequence[ReplicaReply] | None:
        """Have a replica be the active one, and no other be it any longer.

        Without an answer the old active replica is out of sync. Clients
        may be given `quiesce_wait_time` seconds to become quiet. The
        active replica of the list may be out of reach.
        """
        raise NotImplementedError

    def update_replica_state(
        self,
        context: RequestContext,
        replica_list: ReplicaList,
        replica: ShareForDriver,
        access_rules: AccessRules,
        replica_snapshots: list[ReplicaSnapshot],
        share_server: ShareServerMapping | None = None,
    ) -> str | None:
        """Whether a replica, not an active one, is up to date.

        in_sync only if it has all snapshots of the list, out_of_sync,
        error, or None for no news. One that can be written at last, as
        all others can, is active. What keeps it from following is mended
        if it can be.
        """
        raise NotImplementedError

    def get_replica_status(
        self,
        replica: ShareForDriver,
        share_server: ShareServerMapping | None = None,
    ) -> StatusReply:
        """What is really there of a replica, as for a share."""
        raise NotImplementedError

    # Their snapshots; instances of one on all replicas are `replica_snapshots`

    def create_replicated_snapshot(
        self,
        context: RequestContext,
        replica_list: ReplicaList,
        replica_snapshots: list[SnapshotForDriver],
        share_server: ShareServerMapping | None = None,
    ) -> Sequence[ReplicatedSnapshotReply] | None:
        """Take a snapshot of the active replica, and have it copied.

        Called on the back end with the active replica. The answer tells
        of the instances that there is news of.
        """
        raise NotImplementedError

    def delete_replicated_snapshot(
        self,
        context: RequestContext,
        replica_list: ReplicaList,
        replica_snapshots: list[SnapshotForDriver],
        share_server: ShareServerMapping | None = None,
    ) -> Sequence[ReplicatedSnapshotReply] | None:
        """Remove a snapshot, and have it removed everywhere.

        Called and answered like `create_replicated_snapshot`.
        """
        raise NotImplementedError

    def update_replicated_snapshot(
        self,
        context: RequestContext,
        replica_list: ReplicaList,
        share_replica: ShareForDriver,
        replica_snapshots: list[SnapshotForDriver],
        replica_snapshot: SnapshotForDriver,
        share_server: ShareServerMapping | None = None,
    ) -> ReplicatedSnapshotReply | None:
        """How far a snapshot that is creating or deleting has come.

        Raises SnapshotResourceNotFound when the replica does not have it.
        """
        raise NotImplementedError

    def revert_to_replicated_snapshot(
        self,
        context: RequestContext,
        active_replica: ShareForDriver,
        replica_list: ReplicaList,
        active_replica_snapshot: SnapshotForDriver,
        replica_snapshots: list[SnapshotForDriver],
        share_access_rules: AccessRules,
        snapshot_access_rules: AccessRules,
        share_server: ShareServerMapping | None = None,
    ) -> int | None:
        """`revert_to_snapshot` of a share that has replicas."""
        raise NotImplementedError
