"""The snapshots of a share that moves to another pool.

They are sent before it, in the order of their creation and each on the basis
of the one before. At the destination they are created before the share is,
while clients still use the source: a snapshot does not change.
"""

from collections.abc import Callable, Sequence
import pathlib
from typing import NamedTuple

from manila_lite import exception
from manila_lite.share.drivers.btrfs import kernel
from manila_lite.share.drivers.btrfs.backend import BtrfsBackend
from manila_lite.share.drivers.btrfs.catalog import Kind
from manila_lite.share.drivers.btrfs.moves.copies import Copies
from manila_lite.share.drivers.btrfs.moves.sending import send_snapshot
from manila_lite.share.drivers.btrfs.volumes.pool import Pool
from manila_lite.share.drivers.records import Record


class SnapshotPair(NamedTuple):
    """The names of a snapshot on the source and on the destination."""

    source: str
    name: str


class MigratedSnapshots:
    """Snapshots on `here`, and their copies in a pool of `there`."""

    def __init__(
        self,
        here: BtrfsBackend,
        there: BtrfsBackend,
        pool: Pool,
        pairs: Sequence[SnapshotPair],
    ):
        self._here, self._there = here, there
        self._pool = pool
        self._pairs = pairs

    @property
    def names(self) -> list[str]:
        """The names that the snapshots have on the destination."""
        return [pair.name for pair in self._pairs]

    def used_bytes(self) -> int:
        """Return the size of the largest one; they have blocks in common."""
        sizes = {pool.top: kernel.sizes(pool.top) for pool in self._here.pools.values()}
        return max(
            (
                sizes[path.parents[1]][kernel.subvolume_id(path)].used
                for path in map(self._path, self._pairs)
            ),
            default=0,
        )

    def send(
        self,
        theirs: Copies,
        ours: Copies,
        check: Callable[[], None],
        count: Callable[[int], None],
    ) -> None:
        """Send those that were not sent yet."""
        for pair in self._missing():

            def create_snapshot(pair: SnapshotPair = pair) -> pathlib.Path:
                with self._here.changing(pair.source):
                    return theirs.create_snapshot(self._path(pair), pair.name)

            send_snapshot(create_snapshot, pair.name, theirs, ours, check, count)

    def create(self, fields: Record, copies: Copies | None) -> None:
        """Create those that do not exist yet, from copies or from themselves.

        `fields` are what their records have in common.
        """
        for pair in self._missing():
            with self._there.changing(pair.name):
                pool, source = self._at_source(pair)
                record = {
                    'volume': pair.name,
                    'share_proto': source['share_proto'],
                    **fields,
                }
                content = self._path(pair)
                if copies is not None:
                    *_, content = copies.received_for(pair.name)
                self._pool.discard(Kind.SNAPSHOT, pair.name)
                with self._pool.catalog.putting(Kind.SNAPSHOT, pair.name, record):
                    self._pool.add_snapshot(
                        pair.name,
                        content,
                        pool.limit_bytes(Kind.SNAPSHOT, source['volume']),
                    )
        self._pool.commit()

    def remove_sources(self) -> None:
        """Remove those on the source; missing ones are success."""
        for pair in self._pairs:
            with self._here.changing(pair.source):
                self._here.remove(Kind.SNAPSHOT, pair.source)

    def discard(self) -> None:
        """Remove those on the destination; missing ones are success."""
        for pair in self._pairs:
            with self._there.changing(pair.name):
                self._there.remove(Kind.SNAPSHOT, pair.name)

    def _missing(self) -> list[SnapshotPair]:
        """Return those that are still to be created, the oldest first."""
        return sorted(
            (
                pair
                for pair in self._pairs
                if self._pool.catalog.find(Kind.SNAPSHOT, pair.name) is None
            ),
            key=lambda pair: kernel.subvolume_id(self._path(pair)),
        )

    def _path(self, pair: SnapshotPair) -> pathlib.Path:
        pool, record = self._at_source(pair)
        return pool.path(Kind.SNAPSHOT, record['volume'])

    def _at_source(self, pair: SnapshotPair) -> tuple[Pool, Record]:
        found = self._here.find(Kind.SNAPSHOT, pair.source)
        if found is None:
            raise exception.ShareBackendException(
                msg=f'snapshot {pair.source} does not exist on the source'
            )
        return found
