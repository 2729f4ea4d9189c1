"""Shares that the local driver replicates on several back ends.

Each back end copies what its own replicas need. It writes to the root of
another back end only to make the previously active replica passive and to
register as its follower.
"""

from collections.abc import Iterator
import contextlib
import dataclasses

from manila_lite.share.drivers import base, trees
from manila_lite.share.drivers.contract.replication import (
    IN_SYNC,
    OUT_OF_SYNC,
    ReplicaList,
    find_active,
)
from manila_lite.share.drivers.files.promotion import Takeover
from manila_lite.share.drivers.files.replicas import (
    ReplicaUnreachable,
    Role,
    ignoring_read_only,
)
from manila_lite.share.drivers.files.replication import Creation, Replication, Update
from manila_lite.share.drivers.local.access import LocalAccess
from manila_lite.share.drivers.local.backend import LocalBackend
from manila_lite.share.drivers.local.peers import LocalPeers, LocalRoles
from manila_lite.share.drivers.local.replica import LocalReplica, raising_unreachable
from manila_lite.share.drivers.local.shares import LocalShares
from manila_lite.share.drivers.local.snapshots import LocalSnapshots
from manila_lite.share.drivers.space import is_out_of_space


class LocalReplication(Replication[LocalReplica]):
    """Keeps the roles of replicas in files beside the data."""

    def __init__(
        self,
        backend: LocalBackend,
        peers: LocalPeers,
        roles: LocalRoles,
        shares: LocalShares,
        snapshots: LocalSnapshots,
        access: LocalAccess,
    ):
        status_of = shares.get_share_status
        super().__init__(
            peers, roles, snapshots, status_of, backend.clock, backend.sleep
        )
        self._backend = backend
        self._access = access

    def _create(self, own: LocalReplica, new: Creation) -> None:
        with own.locked():
            if own.find() is None:
                share = new.new_replica
                own.publish(
                    {'size': share['size'], 'share_proto': share['share_proto']}
                )

    def _remove(self, own: LocalReplica, share: base.ShareForDriver) -> None:
        self._backend.store.remove(own.item)

    def _forget(self, own: LocalReplica, other: LocalReplica) -> None:
        own.unregister_from(other)

    def _synchronise(
        self, own: LocalReplica, leader: LocalReplica, update: Update
    ) -> bool:
        return own.follow(leader, self._backend.clock()) > 0

    def _outdated_state(
        self, own: LocalReplica, update: Update, error: Exception | None
    ) -> str:
        """Raise the error if a disk of our own has failed."""
        if isinstance(error, OSError) and not is_out_of_space(error):
            raise error
        is_recent = self._is_within_recovery_point(own, update.replica_list)
        return IN_SYNC if is_recent else OUT_OF_SYNC

    def _state_meanwhile(self, own: LocalReplica, update: Update) -> str:
        return self._outdated_state(own, update, None)

    def _is_within_recovery_point(
        self, own: LocalReplica, replica_list: ReplicaList
    ) -> bool:
        """Return whether potential data loss is within the recovery point."""
        state = own.state()
        leader = find_active(replica_list)
        oldest = (
            self._backend.clock()
            - self._backend.configuration.local_replication_recovery_point
        )
        return (
            leader is not None
            and state.role == Role.PASSIVE
            and state.source == leader['name']
            and not own.has_pending_changes()
            and state.synced_at is not None
            and state.synced_at >= oldest
        )

    def _restore_access(
        self, own: LocalReplica, update: Update, was_active: bool
    ) -> None:
        if was_active:
            self._access.update_access(update.replica, update.access_rules)

    def _ensure(
        self,
        own: LocalReplica,
        leader: LocalReplica | None,
        source: base.SnapshotForDriver | None,
        snapshot: base.SnapshotForDriver,
    ) -> bool:
        store, name = self._backend.store, snapshot['name']
        if store.has_work_directory(name):
            with store.try_locked_work_directory(name):
                pass  # what a killed process has left is removed
        return super()._ensure(own, leader, source, snapshot)

    def _copy_snapshot(
        self,
        own: LocalReplica,
        leader: LocalReplica,
        source: str,
        snapshot: base.SnapshotForDriver,
    ) -> bool:
        item = self._backend.store.snapshot(snapshot['name'])
        of = own.item.relative_data_path(own.record())
        theirs = leader.store.snapshot(source)
        with self._backend.store.try_locked_work_directory(item.name) as work:
            if work is None or item.find() is not None:
                return work is not None
            record = theirs.find()
            if record is None:  # not yet created, or deleted
                return False
            trees.copy_tree(theirs.data_path(record), work / 'data')
            if theirs.find() is None:  # the copy may be incomplete
                return False
            proto = record['share_proto']
            item.publish(work, {'size': record['size'], 'of': of, 'share_proto': proto})
        return True

    # Promotion

    @contextlib.contextmanager
    def _locked(
        self, takeover: Takeover[LocalReplica]
    ) -> Iterator[Takeover[LocalReplica]]:
        """Locks are always taken in the order of names to avoid deadlocks."""
        own, active = takeover.own, takeover.active
        with contextlib.ExitStack() as stack:
            for each in sorted([own, *([active] if active else [])], key=_name):
                if each is own:
                    stack.enter_context(own.locked())
                    continue
                try:
                    with raising_unreachable(), ignoring_read_only():
                        stack.enter_context(each.locked())
                except ReplicaUnreachable:
                    takeover = dataclasses.replace(takeover, active=None)
            own.apply_pending_changes()
            yield takeover

    def _hand_over(
        self, takeover: Takeover[LocalReplica], active: LocalReplica, generation: int
    ) -> None:
        own = takeover.own
        with raising_unreachable(), active.retiring(own):
            own.follow(active, self._backend.clock())
            own.become_active(generation)

    def _activate(self, takeover: Takeover[LocalReplica], generation: int) -> None:
        takeover.own.become_active(generation)

    def _reinstate(self, replica: LocalReplica, generation: int) -> None:
        replica.become_active(generation)


def _name(replica: LocalReplica) -> str:
    return replica.name
