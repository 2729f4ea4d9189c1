"""Shares that the btrfs driver replicates in several pools.

Each back end copies what its own replicas need. At another one it changes
only what the promotion of a replica ends there, and the copies that are sent.
"""

from collections.abc import Iterator
import contextlib
import dataclasses
import time

from manila_lite import exception
from manila_lite.share.drivers import base
from manila_lite.share.drivers.btrfs.backend import BtrfsBackend
from manila_lite.share.drivers.btrfs.catalog import Kind
from manila_lite.share.drivers.btrfs.exports.access import BtrfsAccess
from manila_lite.share.drivers.btrfs.moves import closing
from manila_lite.share.drivers.btrfs.moves.peers import BtrfsPeers
from manila_lite.share.drivers.btrfs.moves.replicas import Replica, ReplicaState
from manila_lite.share.drivers.btrfs.moves.roles import BtrfsRoles
from manila_lite.share.drivers.btrfs.moves.syncing import BtrfsSyncing
from manila_lite.share.drivers.btrfs.moves.transfer import TransferFailed
from manila_lite.share.drivers.btrfs.volumes.shares import BtrfsShares
from manila_lite.share.drivers.btrfs.volumes.snapshots import BtrfsSnapshots
from manila_lite.share.drivers.contract.access import RuleChanges
from manila_lite.share.drivers.contract.replication import ERROR, OUT_OF_SYNC
from manila_lite.share.drivers.files.promotion import Takeover
from manila_lite.share.drivers.files.replicas import (
    DR,
    ReplicaUnreachable,
    Role,
    ignoring_failures,
    ignoring_read_only,
)
from manila_lite.share.drivers.files.replication import Creation, Replication, Update
from manila_lite.share.drivers.space import is_out_of_space


class BtrfsReplication(Replication[Replica]):
    """The roles are in records of the pools.

    If the active replica is out of reach when another one is promoted, its exports
    are ended, provided that their server can be reached.
    """

    def __init__(
        self,
        backend: BtrfsBackend,
        peers: BtrfsPeers,
        roles: BtrfsRoles,
        shares: BtrfsShares,
        snapshots: BtrfsSnapshots,
        access: BtrfsAccess,
    ):
        status_of = shares.get_share_status
        super().__init__(peers, roles, snapshots, status_of, time.time, time.sleep)
        self._backend = backend
        self._peers = peers
        self._syncing = BtrfsSyncing(backend, peers)
        self._shares = shares
        self._access = access

    def _create(self, own: Replica, new: Creation) -> None:
        """Create the volume of a replica, or leave nothing behind."""
        if own.find() is not None:
            return
        leader = self._peers.reachable_active(new.replica_list)
        if leader is not None and leader.pool.top == own.pool.top:
            raise exception.ShareBackendException(
                msg=f'pool {own.pool.name} has a replica of the share'
            )
        # Without the state it would be an active replica.
        own.write_state(ReplicaState(role=Role.PASSIVE))
        try:
            self._shares.create_share(new.new_replica, new.share_server)
        except (OSError, exception.DriverError):
            with (
                contextlib.suppress(OSError, exception.DriverError),
                # A stale call is refused here: the state belongs to another
                # call.
                self._backend.changing(own.name),
            ):
                if own.find() is None:
                    own.forget_state()
            raise

    def _remove(self, own: Replica, share: base.ShareForDriver) -> None:
        with self._backend.changing(own.name):
            self._backend.remove(Kind.SHARE, own.name)

    def _forget(self, own: Replica, other: Replica) -> None:
        other.copies.discard(own.name)
        other.copies.remove_empty()

    def _waiting(self, own: Replica) -> contextlib.AbstractContextManager[object]:
        return self._backend.lock_copies(own.name)

    def _synchronise(self, own: Replica, leader: Replica, update: Update) -> bool:
        try:
            return self._syncing.follow(own, leader)
        finally:
            self._syncing.forget_others(own, leader, update.replica_list)

    def _outdated_state(
        self, own: Replica, update: Update, error: Exception | None
    ) -> str:
        return ERROR if _is_full(error) else OUT_OF_SYNC

    def _restore_access(self, own: Replica, update: Update, was_active: bool) -> None:
        if self._backend.exports.listed(Kind.SHARE, own.record()) is None:
            rules = RuleChanges(access_rules=update.access_rules)
            self._access.update_access(update.replica, rules)

    def _copy_snapshot(
        self,
        own: Replica,
        leader: Replica,
        source: str,
        snapshot: base.SnapshotForDriver,
    ) -> bool:
        return self._syncing.copy_snapshot(own, leader, source, snapshot['name'])

    # Promotion

    @contextlib.contextmanager
    def _locked(self, takeover: Takeover[Replica]) -> Iterator[Takeover[Replica]]:
        both = [takeover.own, *([takeover.active] if takeover.active else [])]
        with contextlib.ExitStack() as stack:
            for each in sorted(both, key=lambda each: each.name):
                stack.enter_context(each.backend.lock_copies(each.name))
            yield takeover

    def _hand_over(
        self, takeover: Takeover[Replica], active: Replica, generation: int
    ) -> None:
        own = takeover.own
        with _retiring(active, own):
            closing.send_all(active.name, lambda: self._syncing.follow(own, active))
            self._make_active(takeover, generation)

    def _activate(self, takeover: Takeover[Replica], generation: int) -> None:
        self._end_exports(takeover.own, takeover.replication_type)
        self._make_active(takeover, generation)

    def _make_active(self, takeover: Takeover[Replica], generation: int) -> None:
        hosts = {
            each['name']: each['host']
            for each in takeover.replica_list
            if each['name'] != takeover.own.name and each['host']
        }
        takeover.own.become_active(generation, hosts)

    def _reinstate(self, replica: Replica, generation: int) -> None:
        replica.become_active(generation, {})

    def _end_exports(self, own: Replica, replication_type: str | None) -> None:
        """End the exports of a source that cannot record that itself."""
        state = own.state()
        backend = self._peers.at(state.source_host)
        if backend is None or state.source_volume is None:
            return
        with ignoring_failures(own.name, 'end the export of its source'):
            backend.exports.withdraw(Kind.SHARE, state.source_volume)
        if replication_type != DR:
            return
        for snapshot in backend.exports.snapshots_of(state.source_volume):
            with ignoring_failures(own.name, f'end the export of {snapshot}'):
                backend.exports.withdraw(Kind.SNAPSHOT, snapshot)


@contextlib.contextmanager
def _retiring(active: Replica, successor: Replica) -> Iterator[None]:
    """Deny all access to a replica; restore it if the block fails.

    One on a pool that is read-only cannot record it; its exports end.
    """
    with contextlib.ExitStack() as stack:
        try:
            with active.backend.changing(active.name):
                before = active.state()
                pool, record = active.pool, active.record()
                path = pool.path(Kind.SHARE, record['volume'])
                stack.enter_context(
                    active.backend.exports.suspended(Kind.SHARE, record, path)
                )
                retiring = dataclasses.replace(
                    before,
                    role=Role.RETIRING,
                    source=successor.name,
                    source_host=successor.host,
                )
                with ignoring_read_only():
                    active.write_state(retiring)
        except exception.ShareBackendException as error:
            raise ReplicaUnreachable(msg=f'{active.name}: {error}') from error
        try:
            yield
        except BaseException:
            with contextlib.suppress(OSError):
                active.write_state(before)
            raise


def _is_full(error: Exception | None) -> bool:
    """Return whether our own pool has no space for what is new."""
    if error is None or isinstance(error, ReplicaUnreachable):
        return False
    if isinstance(error, TransferFailed):
        return error.is_out_of_space
    cause = error if isinstance(error, OSError) else error.__cause__
    return isinstance(cause, OSError) and is_out_of_space(cause)
