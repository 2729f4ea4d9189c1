"""Promotion of replicas of the btrfs driver."""

from collections.abc import Iterator
import contextlib
import dataclasses
import time

from oslo_log import log

from manila_lite import exception
from manila_lite.share.drivers import base
from manila_lite.share.drivers.btrfs import kernel
from manila_lite.share.drivers.btrfs.backend import BtrfsBackend
from manila_lite.share.drivers.btrfs.catalog import Kind
from manila_lite.share.drivers.btrfs.moves import closing
from manila_lite.share.drivers.btrfs.moves.peers import BtrfsPeers
from manila_lite.share.drivers.btrfs.moves.replicas import Replica, ReplicaState
from manila_lite.share.drivers.btrfs.moves.syncing import BtrfsSyncing
from manila_lite.share.drivers.files.promotion import Promotion, Takeover
from manila_lite.share.drivers.files.replication import (
    DR,
    ReplicaUnreachable,
    Role,
    ignoring_read_only,
)

LOG = log.getLogger(__name__)


class BtrfsPromotion(Promotion[Replica]):
    """The roles are in records of the pools.

    If the previously active replica is out of reach, its exports are ended,
    provided that their server can be reached.
    """

    def __init__(self, backend: BtrfsBackend, peers: BtrfsPeers, syncing: BtrfsSyncing):
        super().__init__(peers, time.time, time.sleep)
        self._backend = backend
        self._peers = peers
        self._syncing = syncing

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
        own = takeover.own
        hosts = {
            each['name']: each['host']
            for each in takeover.replica_list
            if each['name'] != own.name and each['host']
        }
        with self._backend.changing(own.name):
            path = own.pool.path(Kind.SHARE, own.volume)
            kernel.set_read_only(path, False)
            own.write_state(
                ReplicaState(generation=generation, others=own.state().others | hosts)
            )
            own.pool.commit()

    def _demote(self, takeover: Takeover[Replica], active: Replica) -> None:
        with self._reaching(active, 'become passive'):
            state = active.state()
            if state.role != Role.PASSIVE or state.source != takeover.own.name:
                with active.backend.changing(active.name):
                    active.become_passive(takeover.own, takeover.replication_type)

    def _end_exports(self, own: Replica, replication_type: str | None) -> None:
        """End the exports of a source that cannot record that itself."""
        state = own.state()
        backend = self._peers.at(state.source_host)
        if backend is None or state.source_volume is None:
            return
        with self._reaching(own, 'end the export of its source'):
            backend.exports.withdraw(Kind.SHARE, state.source_volume)
        if replication_type != DR:
            return
        for snapshot in backend.exports.snapshots_of(state.source_volume):
            with self._reaching(own, f'end the export of {snapshot}'):
                backend.exports.withdraw(Kind.SNAPSHOT, snapshot)

    def _reinstate(self, replica: Replica, generation: int) -> None:
        others = replica.state().others
        with replica.backend.changing(replica.name):
            kernel.set_read_only(replica.pool.path(Kind.SHARE, replica.volume), False)
            replica.write_state(ReplicaState(generation=generation, others=others))

    @contextlib.contextmanager
    def _reaching(self, replica: Replica, action: str) -> Iterator[None]:
        try:
            yield
        except (OSError, exception.ShareBackendException) as error:
            LOG.warning(
                'Replica %(name)s cannot %(action)s: %(error)s',
                {'name': replica.name, 'action': action, 'error': error},
            )

    def _locations(self, own: Replica) -> list[base.ExportLocation]:
        return own.locations()


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
