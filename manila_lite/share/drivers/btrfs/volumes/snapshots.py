"""Snapshots of the btrfs driver.

A revert gives a volume the content of a snapshot while clients have it
mounted. The volume itself remains, and with it the handle that a client has of its
root. The files share their blocks with the snapshot. Until it is complete, the
record of the share has the limit before, in bytes, in `limit_before`.
"""

import contextlib

from oslo_log import log

from manila_lite import exception
from manila_lite.share.drivers import base, tree_removal, trees
from manila_lite.share.drivers.btrfs.backend import BtrfsBackend
from manila_lite.share.drivers.btrfs.catalog import Kind
from manila_lite.share.drivers.btrfs.volumes.pool import Pool
from manila_lite.share.drivers.records import Record

LIMIT = 'limit_before'
_METADATA = 64 << 20


def rewrite(pool: Pool, volume: str, snapshot: str, limit: int) -> None:
    """Replace the content of a volume and its size.

    `limit` is what it may hold if that fails. Meanwhile it may hold both
    contents: what is removed counts for a while, as do files that clients
    have open. A later call completes an interrupted one.
    """
    target = pool.path(Kind.SHARE, volume)
    source = pool.path(Kind.SNAPSHOT, snapshot)
    both = limit + pool.limit_bytes(Kind.SNAPSHOT, snapshot) + _METADATA
    try:
        pool.set_limit_bytes(volume, both)
        with trees.opened_directory(target) as directory:
            tree_removal.empty_directory(directory)
        trees.fill_tree(source, target)
        trees.copy_attributes(source, target)
        pool.resize(volume, pool.size_gib(Kind.SNAPSHOT, snapshot))
    except BaseException:
        with contextlib.suppress(OSError):
            pool.set_limit_bytes(volume, limit)
        raise


def limit_before(pool: Pool, record: Record) -> int:
    """Return the limit that a share had before it was reverted.

    An earlier version removed the limit, and did not restore it when
    interrupted.
    """
    limit = record.get(LIMIT) or pool.limit_bytes(Kind.SHARE, record['volume'])
    if not limit:
        source = pool.catalog.find(Kind.SNAPSHOT, record['reverting_to'])
        if source:
            limit = pool.limit_bytes(Kind.SNAPSHOT, source['volume'])
    return limit


def limit_interrupted(pool: Pool, name: str) -> None:
    """Limit a share as before its revert, if one was interrupted.

    The caller has locked it. Its size may be changed from then on.
    """
    record = pool.catalog.find(Kind.SHARE, name)
    if (
        record is None
        or 'reverting_to' not in record
        or not pool.has(Kind.SHARE, record['volume'])
    ):
        return
    pool.set_limit_bytes(record['volume'], limit_before(pool, record))
    if record.pop(LIMIT, None) is not None:
        pool.catalog.put(Kind.SHARE, name, record)


LOG = log.getLogger(__name__)


class BtrfsSnapshots:
    """Read-only volumes, which have the size that the share had."""

    def __init__(self, backend: BtrfsBackend):
        self._backend = backend

    def create_snapshot(self, snapshot: base.SnapshotForDriver) -> base.SnapshotReply:
        name = snapshot['name']
        with self._backend.changing(name, snapshot['share_name']):
            if self._backend.find(Kind.SNAPSHOT, name) is None:
                pool, share = self._backend.get_share(snapshot['share_name'])
                if not self._backend.is_leftover(Kind.SNAPSHOT, name):
                    raise exception.ShareBackendException(
                        msg=f'the volume {name} exists and is not managed as {name}'
                    )
                record = {
                    'volume': name,
                    'of': share['volume'],
                    'share_proto': share['share_proto'],
                }
                if 'server' in share:
                    record['server'] = share['server']
                with pool.catalog.putting(Kind.SNAPSHOT, name, record):
                    pool.take_snapshot(share['volume'], name)
                pool.commit_new(Kind.SNAPSHOT)
        return self.reply(snapshot)

    def reply(self, snapshot: base.SnapshotForDriver) -> base.SnapshotReply:
        """Return where a snapshot is, and its size."""
        pool, record = self._backend.get_snapshot(snapshot)
        volume = record['volume']
        return {
            'provider_location': volume,
            'size': pool.size_gib(Kind.SNAPSHOT, volume),
            'export_locations': self._backend.locations(Kind.SNAPSHOT, record),
        }

    def delete_snapshot(self, snapshot: base.SnapshotForDriver) -> None:
        with self._backend.changing(snapshot['name']):
            self._backend.remove(Kind.SNAPSHOT, snapshot['name'])

    def get_snapshot_status(self, snapshot: base.SnapshotForDriver) -> base.StatusReply:
        pool, record = self._backend.get_snapshot(snapshot)
        volume = record['volume']
        if not pool.has(Kind.SNAPSHOT, volume):
            return {'status': 'error'}
        return {
            **self.reply(snapshot),
            'status': 'available',
            'share_proto': record['share_proto'],
        }

    def revert_to_snapshot(self, snapshot: base.SnapshotForDriver) -> int:
        """Give the share the content and the size of the snapshot.

        Its status is error until it is exported with that content.
        """
        name = snapshot['share_name']
        with self._backend.changing(name, snapshot['name']):
            pool, record = self._backend.get_share(name)
            source_pool, source = self._backend.get_snapshot(snapshot)
            volume = record['volume']
            if source_pool is not pool or source['of'] != volume:
                raise exception.ShareBackendException(
                    msg=f'{snapshot["name"]} is not a snapshot of {name}'
                )
            reverting = record | {'reverting_to': snapshot['name']}
            if self._backend.configuration.btrfs_revert_mode == 'rewrite':
                limit = limit_before(pool, reverting)
                reverting[LIMIT] = limit
                pool.catalog.put(Kind.SHARE, name, reverting)
                self._rewrite(pool, name, volume, source['volume'], limit)
            else:
                pool.catalog.put(Kind.SHARE, name, reverting)
                pool.replace(volume, source['volume'])
            self._backend.exports.refresh(Kind.SHARE, volume)
            path = pool.path(Kind.SHARE, volume)
            self._backend.exports.republish(Kind.SHARE, volume, path)
            done = {
                key: value
                for key, value in record.items()
                if key not in ('reverting_to', LIMIT)
            }
            pool.catalog.put(Kind.SHARE, name, done)
            pool.commit()
            return pool.size_gib(Kind.SHARE, volume)

    def limit_interrupted(self) -> None:
        """Limit shares as before a revert that was interrupted."""
        for pool in self._backend.pools.values():
            for name, record in list(pool.catalog.records(Kind.SHARE)):
                if 'reverting_to' in record:
                    self._try_to_limit(pool, name)

    def _try_to_limit(self, pool: Pool, name: str) -> None:
        with self._backend.locks.try_locked(name) as is_locked:
            try:
                if is_locked:
                    limit_interrupted(pool, name)
            except OSError as error:
                LOG.error(
                    'Share %(name)s is not limited: %(error)s',
                    {'name': name, 'error': error},
                )

    def _rewrite(
        self, pool: Pool, name: str, volume: str, snapshot: str, limit: int
    ) -> None:
        try:
            rewrite(pool, volume, snapshot, limit)
        except OSError as error:
            with contextlib.suppress(OSError):
                limit_interrupted(pool, name)
            # It names a file of the user, relative to its directory.
            path = pool.path(Kind.SHARE, volume)
            raise OSError(error.errno, error.strerror, str(path)) from error
