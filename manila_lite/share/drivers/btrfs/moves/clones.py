"""Shares from snapshots in another pool of this machine."""

from collections.abc import Iterator
import contextlib
import pathlib

from manila_lite import exception
from manila_lite.share.drivers import base
from manila_lite.share.drivers.btrfs.backend import BtrfsBackend
from manila_lite.share.drivers.btrfs.catalog import Kind
from manila_lite.share.drivers.btrfs.moves.copies import ONCE, Copies
from manila_lite.share.drivers.btrfs.moves.peers import BtrfsPeers
from manila_lite.share.drivers.btrfs.moves.transfer import TransferFailed, transfer
from manila_lite.share.drivers.btrfs.volumes.pool import Pool


class BtrfsClones:
    """Copies of snapshots, for as long as a share is created from them."""

    def __init__(self, backend: BtrfsBackend, peers: BtrfsPeers):
        self._backend = backend
        self._peers = peers

    @contextlib.contextmanager
    def copied(
        self, name: str, snapshot: base.SnapshotForDriver, pool: Pool
    ) -> Iterator[pathlib.Path]:
        """Provide a read-only copy of a snapshot in a pool of this back end.

        Raises ShareRefused if there is not enough space for it. What a
        killed process has left of an earlier copy is removed.
        """
        source = self._peers.at(snapshot['share']['host'])
        if source is None:
            raise exception.ShareBackendException(
                msg=f'the back end of snapshot {snapshot["name"]} is out of reach'
            )
        found = source.find(Kind.SNAPSHOT, snapshot['name'])
        if found is None:
            raise exception.SnapshotResourceNotFound(snapshot_id=snapshot['id'])
        theirs = Copies(found[0].top, name)
        ours = Copies(pool.top, name)
        with contextlib.ExitStack() as stack:
            for backend in sorted({source, self._backend}, key=lambda each: each.root):
                stack.enter_context(backend.lock_copies(name))
            for copies in (theirs, ours):
                copies.drop()
                stack.callback(copies.drop)
            with source.changing(snapshot['name']):
                volume = source.get_snapshot(snapshot)[1]['volume']
                sent = theirs.create_snapshot(
                    found[0].path(Kind.SNAPSHOT, volume), ONCE
                )
                needed = found[0].used_bytes(Kind.SNAPSHOT, volume)
            pool.free_bytes(needed)
            yield self._received(sent, ours, pool)

    def forget(self, name: str, snapshot: base.SnapshotForDriver) -> None:
        """Remove what is left if the share was created all the same."""
        source = self._peers.at(snapshot['share']['host'])
        for backend in {source or self._backend, self._backend}:
            backend.forget_copies(name)

    def _received(self, sent: pathlib.Path, ours: Copies, pool: Pool) -> pathlib.Path:
        ours.prepare()
        try:
            received = transfer(
                sent, None, ours.folder, self._backend.fencing.check_call
            )
        except TransferFailed as error:
            if error.is_out_of_space:
                raise exception.ShareRefused(
                    reason=f'pool {pool.name}: {error}'
                ) from error
            raise
        assert received is not None
        return ours.confirm(received)
