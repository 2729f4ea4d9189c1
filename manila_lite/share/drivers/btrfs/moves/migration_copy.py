"""The copy of a share that moves to another pool.

    top/records/leaving/<share>.json     at the source: where it moves, and
                                         how it was exported if it is closed
    top/records/arriving/<share>.json    at the destination: what it copies

Below `copies`, both pools keep what was sent last, and all snapshots. The
share itself exists at the destination once it has a record there. It replaces
the source if that is closed; if not, an attempt has failed, and clients may
have written since.
"""

from collections.abc import Callable, Iterator, Sequence
import contextlib
import pathlib

from oslo_log import log

from manila_lite import exception
from manila_lite.share.drivers import base
from manila_lite.share.drivers.btrfs.backend import BtrfsBackend
from manila_lite.share.drivers.btrfs.catalog import Kind
from manila_lite.share.drivers.btrfs.moves import closing
from manila_lite.share.drivers.btrfs.moves.copies import Copies
from manila_lite.share.drivers.btrfs.moves.migrated_snapshots import (
    MigratedSnapshots,
    SnapshotPair,
)
from manila_lite.share.drivers.btrfs.moves.sending import find_common, send_copy
from manila_lite.share.drivers.btrfs.moves.transfer import TransferFailed
from manila_lite.share.drivers.btrfs.volumes.pool import Pool
from manila_lite.share.drivers.records import Record

LOG = log.getLogger(__name__)

_SMALL = 16 << 20
_MOST_ROUNDS = 10


class MigrationCopy:
    """A share in a pool of `here`, and its copy in one of `there`."""

    def __init__(
        self,
        here: BtrfsBackend,
        source: base.ShareForDriver,
        there: BtrfsBackend,
        destination: base.ShareForDriver,
        snapshots: Sequence[SnapshotPair] = (),
    ):
        self._here, self._there = here, there
        self.source, self.name = source['name'], destination['name']
        self._hosts = source['host'], destination['host']
        self._size = destination['size']
        self._pool = there.pool_for(destination)
        self._snapshots = MigratedSnapshots(here, there, self._pool, snapshots)

    # State

    def find_share(self) -> Record | None:
        """Return the record of the share at the destination."""
        return self._pool.catalog.find(Kind.SHARE, self.name)

    def is_begun(self) -> bool:
        return self._pool.catalog.arriving.find(self.name) is not None

    def has_content(self) -> bool:
        """Return whether a whole copy was received at least once.

        That is one of the snapshots if there are some.
        """
        return all(
            self._ours.received_for(name)
            for name in self._snapshots.names or [self.name]
        )

    def is_in_one_pool(self) -> bool:
        """Return whether nothing has to be sent."""
        return self._here.get_share(self.source)[0].top == self._pool.top

    def used_bytes(self) -> int:
        """Return a lower bound of the bytes to send.

        What share and snapshots have in common is sent once.
        """
        pool, record = self._here.get_share(self.source)
        used = pool.used_bytes(Kind.SHARE, record['volume'])
        return max(used, self._snapshots.used_bytes())

    @property
    def _ours(self) -> Copies:
        return Copies(self._pool.top, self.name)

    # The first phase

    def begin(self) -> None:
        """Record the copy; raise an error if there is no space for it."""
        if not self.is_begun():
            self._require_space()
            with self._there.changing(self.name):
                self._pool.catalog.arriving.put(
                    self.name,
                    {
                        'source': self.source,
                        'host': self._hosts[0],
                        'snapshots': self._snapshots.names,
                    },
                )
                self._pool.commit()
        with self.locked(), self._here.changing(self.source):
            pool, _ = self._here.get_share(self.source)
            leaving = pool.catalog.leaving.find(self.source)
            if leaving is None or leaving['to'] != self.name:
                Copies(pool.top, self.source).drop()  # of an earlier one
                pool.catalog.leaving.put(
                    self.source,
                    {
                        'host': self._hosts[0],
                        'to': self.name,
                        'to_host': self._hosts[1],
                    },
                )
                pool.commit()

    def _require_space(self) -> None:
        if self.is_in_one_pool():
            return
        needed = self.used_bytes()
        free = self._pool.free_bytes(needed)
        if needed > free:
            raise exception.ShareBackendException(
                msg=f'pool {self._pool.name} has {free >> 20} MiB left, and '
                f'the share has {needed >> 20}'
            )

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Lock the copies on both sides."""
        with self._here.lock_copies(self.source), self._there.lock_copies(self.name):
            yield

    def catch_up(self, count: Callable[[int], None]) -> None:
        """Send changes until there are few, while clients make more.

        The caller has locked the copies. `count` is called with the number
        of bytes of each part that was sent.
        """
        if self.is_in_one_pool():
            return
        self._send_snapshots(count)
        for _ in range(_MOST_ROUNDS):
            if self._send(count)[0] <= _SMALL:
                return

    def _send_snapshots(self, count: Callable[[int], None]) -> None:
        with _reporting_errors(self._pool):
            self._require_begun()
            self._snapshots.send(self._theirs(), self._ours, self._require_begun, count)

    def _theirs(self) -> Copies:
        return Copies(self._here.get_share(self.source)[0].top, self.source)

    def _send(
        self, count: Callable[[int], None] = lambda sent: None
    ) -> tuple[int, pathlib.Path]:
        """Send what has changed; return how many bytes, and our copy.

        What was sent and received only in part is removed before.
        """
        sent_bytes = 0

        def counted(number: int) -> None:
            nonlocal sent_bytes
            sent_bytes += number
            count(number)

        with _reporting_errors(self._pool):
            self._require_begun()
            ours, theirs = self._ours, self._theirs()
            with self._here.changing(self.source):
                pool, record = self._here.get_share(self.source)
                common = find_common(theirs, ours)
                theirs.discard(self.name, *common[:1] if common else ())
                sent = theirs.create_snapshot(
                    pool.path(Kind.SHARE, record['volume']), self.name
                )
            ours.discard(self.name, *common[1:] if common else ())
            kept = send_copy(sent, theirs, ours, self._require_begun, counted)
            ours.discard(self.name, kept.ours)
            theirs.discard(self.name, kept.theirs)
        return sent_bytes, kept.ours

    def _require_begun(self) -> None:
        """Raise an error after the migration was cancelled."""
        if not self.is_begun():
            raise exception.ShareBackendException(
                msg=f'{self.name} is no longer copied from {self.source}'
            )

    def discard(self) -> None:
        """End the copy, even while it is being sent, and remove it."""
        with _reporting_errors(self._pool):
            self._pool.catalog.arriving.drop(self.name)
            with self.locked():
                forget_leaving(self._here, self.source, self.name)
                if self.find_share() is None:  # of a second phase
                    self._pool.discard(Kind.SHARE, self.name)
                    self._snapshots.discard()
                self._remove_traces()
                self._pool.commit()

    # The second phase

    def replace_source(
        self, count: Callable[[int], None], share_server: base.ShareServerMapping | None
    ) -> Record:
        """Let the destination replace the source; return its record.

        It is on the share server if there is one. The caller has locked the
        copies. If it fails, the source is unchanged, or only has to be removed.
        """
        with _reporting_errors(self._pool):
            record = self.find_share()
            if record is None or not self._is_source_unchanged():
                _, source = self._here.get_share(self.source)
                fields = self._there.server_fields(share_server, source['share_proto'])
                with self._reopening_source():
                    self.catch_up(count)
                    self._create_snapshots(fields)
                    record = self._cut_over(fields)
            with self._here.changing(self.source):
                self._here.remove(Kind.SHARE, self.source)
            self._snapshots.remove_sources()
            self._pool.catalog.arriving.drop(self.name)
            self._remove_traces()
            return record

    def _is_source_unchanged(self) -> bool:
        """Return whether the source cannot have changed since it was copied.

        It is closed, or has been removed.
        """
        found = self._here.find(Kind.SHARE, self.source)
        if found is None:
            return True
        pool, record = found
        return closing.is_closed(pool, self.source) or not pool.has(
            Kind.SHARE, record['volume']
        )

    def _create_snapshots(self, fields: Record) -> None:
        copies = None if self.is_in_one_pool() else self._ours
        self._snapshots.create({'of': self.name, **fields}, copies)

    def _cut_over(self, fields: Record) -> Record:
        self._require_begun()
        with self._here.changing(self.source):
            closing.close(self._here, self.source)
        if self.is_in_one_pool():
            pool, source = self._here.get_share(self.source)
            content = pool.path(Kind.SHARE, source['volume'])
        else:
            content = self._send_all()
        return self._create_share(content, fields)

    def _send_all(self) -> pathlib.Path:
        """Send what a closed source still has; return our copy."""
        copies: list[pathlib.Path] = []

        def send() -> bool:
            sent_bytes, copy = self._send()
            copies.append(copy)
            return sent_bytes > 0

        closing.send_all(self.source, send)
        return copies[-1]

    @contextlib.contextmanager
    def _reopening_source(self) -> Iterator[None]:
        """Reopen the source to clients if the block fails."""
        try:
            yield
        except exception.StaleFencingToken:
            raise  # another process completes it
        except BaseException:
            try:
                with self._here.changing(self.source):
                    closing.reopen(self._here, self.source)
            except exception.DriverError as error:
                LOG.error(
                    'Share %(name)s cannot be used: %(error)s',
                    {'name': self.source, 'error': error},
                )
            raise

    def _create_share(self, content: pathlib.Path, fields: Record) -> Record:
        _, source = self._here.get_share(self.source)
        record = {'volume': self.name, 'share_proto': source['share_proto'], **fields}
        catalog = self._pool.catalog
        with self._there.changing(self.name):
            self._remove_share()  # of an attempt that has failed
            try:
                with catalog.putting(Kind.SHARE, self.name, record):
                    self._pool.clone_from(content, self.name, self._size)
                self._pool.commit()
            except BaseException:
                with contextlib.suppress(OSError):
                    self._remove_share()
                raise
        return record

    def _remove_share(self) -> None:
        self._pool.catalog.drop(Kind.SHARE, self.name)
        self._pool.discard(Kind.SHARE, self.name)

    def _remove_traces(self) -> None:
        self._ours.drop()


def forget_leaving(here: BtrfsBackend, source: str, name: str) -> None:
    """Remove what a source keeps for its copy; the caller has locked it."""
    with here.changing(source):
        found = here.find(Kind.SHARE, source)
        if found is None:
            return
        pool, _ = found
        leaving = pool.catalog.leaving.find(source)
        if leaving is not None and leaving['to'] == name:
            closing.reopen(here, source)
            Copies(pool.top, source).drop()
            pool.catalog.leaving.drop(source)
            pool.commit()


@contextlib.contextmanager
def _reporting_errors(pool: Pool) -> Iterator[None]:
    """Turn errors of file systems into those of back ends."""
    try:
        yield
    except TransferFailed as error:
        if not error.is_out_of_space:
            raise
        raise exception.ShareBackendException(
            msg=f'pool {pool.name} has no space left for the share'
        ) from error
    except OSError as error:
        raise exception.ShareBackendException(
            msg=f'{error.filename or pool.top}: {error.strerror or error}'
        ) from error
