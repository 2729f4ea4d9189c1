"""The shares and snapshots of a share server that is moving here."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
import contextlib
import pathlib
from typing import NamedTuple

from manila_lite import exception
from manila_lite.share.drivers import base
from manila_lite.share.drivers.btrfs import kernel
from manila_lite.share.drivers.btrfs.backend import BtrfsBackend
from manila_lite.share.drivers.btrfs.catalog import Kind
from manila_lite.share.drivers.btrfs.moves.departures import copies_of
from manila_lite.share.drivers.btrfs.moves.sending import send_copy, send_snapshot
from manila_lite.share.drivers.btrfs.moves.transfer import TransferFailed
from manila_lite.share.drivers.btrfs.volumes.pool import Pool
from manila_lite.share.drivers.records import Record


class Item(NamedTuple):
    """A share or a snapshot that moves, and the name of its share."""

    kind: Kind
    name: str
    share: str
    id: str

    @property
    def target(self) -> str:
        return f'{self.kind}.{self.name}'


def items_of(
    shares: Sequence[base.ShareForDriver], snapshots: Sequence[base.SnapshotForDriver]
) -> list[Item]:
    return [
        *(
            Item(Kind.SHARE, share['name'], share['name'], share['id'])
            for share in shares
        ),
        *(
            Item(
                Kind.SNAPSHOT, snapshot['name'], snapshot['share_name'], snapshot['id']
            )
            for snapshot in snapshots
        ),
    ]


class Move:
    """The volumes of one share server on their way to this back end.

    Callers have locked the copies of the server on both sides.
    """

    def __init__(self, own: BtrfsBackend, source: BtrfsBackend, server_id: str):
        self._own = own
        self._source = source
        self._id = server_id

    # Copies

    def copy(
        self, items: Sequence[Item], pools: Mapping[str, str]
    ) -> dict[Item, pathlib.Path]:
        """Send what has changed since the last call; return our copies.

        Each is sent on the basis of the one before. `pools` has the name of
        the pool of each share.
        """
        return {
            item: self._copy(item, self._own.pools[pools[item.share]])
            for item in self._in_order(items)
        }

    def _in_order(self, items: Sequence[Item]) -> list[Item]:
        """Return the items of each share together, in order of creation."""

        def place(item: Item) -> tuple[str, bool, int]:
            path = self._path(item)
            return (item.share, item.kind is Kind.SHARE, kernel.subvolume_id(path))

        return sorted(items, key=place)

    def _copy(self, item: Item, pool: Pool) -> pathlib.Path:
        ours = copies_of(pool, self._id, item.share)
        source_pool, record = self._at_source(item)
        theirs = copies_of(source_pool, self._id, item.share)

        def create_snapshot() -> pathlib.Path:
            path = source_pool.path(item.kind, record['volume'])
            with self.changing_source(item.name):
                return theirs.create_snapshot(path, item.target)

        check = self._own.fencing.check_call
        try:
            if item.kind is Kind.SNAPSHOT:
                return send_snapshot(create_snapshot, item.target, theirs, ours, check)
            common = send_copy(create_snapshot(), theirs, ours, check)
        except TransferFailed as error:
            if error.is_out_of_space:
                raise exception.ShareBackendException(
                    msg=f'pool {pool.name} has no space for {item.name}'
                ) from error
            raise
        theirs.discard(item.target, common.theirs)
        ours.discard(item.target, common.ours)
        return common.ours

    def progress(self, items: Sequence[Item], pools: Mapping[str, str]) -> int:
        """Return how much has been copied in percent, as last committed."""
        sizes = {
            pool.top: kernel.sizes(pool.top)
            for backend in (self._source, self._own)
            for pool in backend.pools.values()
        }

        def used(pool: Pool, path: pathlib.Path) -> int:
            with contextlib.suppress(FileNotFoundError, KeyError):
                return sizes[pool.top][kernel.subvolume_id(path)].used
            return 0  # it has just been created or removed

        total = done = 0
        for item in items:
            source_pool, record = self._at_source(item)
            path = source_pool.path(item.kind, record['volume'])
            whole = used(source_pool, path)
            pool = self._own.pools[pools[item.share]]
            ours = copies_of(pool, self._id, item.share)
            found = ours.sent_for(item.target), ours.received_for(item.target)
            total += whole
            done += min(
                whole, max((used(pool, path) for path in sum(found, [])), default=0)
            )
        return min(99, 100 * done // total) if total else 99

    # Arrival

    def create_volumes(
        self, received: Mapping[Item, pathlib.Path], pools: Mapping[str, str]
    ) -> None:
        """Create what clients will see; it has no records yet."""
        for item, copy in received.items():
            pool = self._own.pools[pools[item.share]]
            source_pool, record = self._at_source(item)
            limit = source_pool.limit_bytes(item.kind, record['volume'])
            with self._own.changing(item.name):
                self._require_new(item)
                pool.discard(item.kind, item.name)
                if item.kind is Kind.SHARE:
                    pool.clone_from(copy, item.name, 0)
                    pool.set_limit_bytes(item.name, limit)
                else:
                    pool.add_snapshot(item.name, copy, limit)
        for name in set(pools.values()):
            self._own.pools[name].commit()

    def discard_volumes(self, names: Sequence[tuple[str, str]]) -> None:
        """Remove what has been created without records."""
        for kind, name in names:
            with self._own.changing(name):
                if self._own.find(Kind(kind), name) is None:
                    for pool in self._own.pools.values():
                        pool.discard(Kind(kind), name)

    def _require_new(self, item: Item) -> None:
        if self._own.find(item.kind, item.name) is not None:
            raise exception.ShareBackendException(
                msg=f'{item.name} exists on both back ends'
            )

    def register(self, items: Sequence[Item], pools: Mapping[str, str]) -> None:
        """Write the records of the volumes that have arrived."""
        for item in items:
            pool = self._own.pools[pools[item.share]]
            with self._own.changing(item.name):
                if self._own.find(item.kind, item.name) is not None:
                    continue  # and it may be gone from the source
                record: Record = {
                    'volume': item.name,
                    'share_proto': self._at_source(item)[1]['share_proto'],
                    'server': self._id,
                }
                if item.kind is Kind.SNAPSHOT:
                    record['of'] = item.share
                pool.catalog.put(item.kind, item.name, record)
        for name in set(pools.values()):
            self._own.pools[name].commit()

    def remove_from_source(self, items: Sequence[Item]) -> None:
        for item in items:
            with self.changing_source(item.name):
                self._source.remove(item.kind, item.name)

    # The source

    def _at_source(self, item: Item) -> tuple[Pool, Record]:
        found = self._source.find(item.kind, item.name)
        if found is None:
            raise exception.ShareBackendException(
                msg=f'{item.name} does not exist on the source'
            )
        return found

    def protocols(self, items: Iterable[Item]) -> set[str]:
        """Return the protocols of shares and snapshots on the source."""
        return {self._at_source(item)[1]['share_proto'] for item in items}

    def _path(self, item: Item) -> pathlib.Path:
        pool, record = self._at_source(item)
        return pool.path(item.kind, record['volume'])

    @contextlib.contextmanager
    def changing_source(self, name: str) -> Iterator[None]:
        """Lock something on the source, unless this call is too late."""
        with self._source.changing(name):
            # The source does not see the calls of the destination.
            self._own.fencing.check_call()
            yield
