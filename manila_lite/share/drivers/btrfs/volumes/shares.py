"""Shares of the btrfs driver."""

from collections.abc import Iterable
import pathlib
from typing import Any

from oslo_log import log
from oslo_utils import timeutils

from manila_lite import exception
from manila_lite.share.drivers import base, silence
from manila_lite.share.drivers.btrfs.backend import BtrfsBackend
from manila_lite.share.drivers.btrfs.catalog import Kind
from manila_lite.share.drivers.btrfs.moves.clones import BtrfsClones
from manila_lite.share.drivers.btrfs.servers.servers import ShareServerMissing
from manila_lite.share.drivers.btrfs.volumes.pool import Pool
from manila_lite.share.drivers.btrfs.volumes.restoring import (
    restore_limits,
    restore_properties,
)
from manila_lite.share.drivers.contract.connections import identity_of
from manila_lite.share.drivers.records import Record
from manila_lite.share.drivers.space import GIB, is_out_of_space

LOG = log.getLogger(__name__)


class BtrfsShares:
    """Volumes with a size, without clients until there are rules."""

    def __init__(self, backend: BtrfsBackend, clones: BtrfsClones):
        self._backend = backend
        self._clones = clones

    def create_share(
        self,
        share: base.ShareForDriver,
        share_server: base.ShareServerMapping | None = None,
    ) -> base.ExportLocationsReply:
        with self._backend.changing(share['name']):
            found = self._backend.find(Kind.SHARE, share['name'])
            if found is None:
                pool = self._backend.pool_for(share)
                return self._create(pool, share, None, share_server)
            return self._ensure_export(*found)

    def create_share_from_snapshot(
        self,
        share: base.ShareForDriver,
        snapshot: base.SnapshotForDriver,
        share_server: base.ShareServerMapping | None = None,
    ) -> base.ExportLocationsReply:
        """Create a share that has its blocks in common with the snapshot.

        In another pool it has blocks of its own, which takes time.
        """
        with self._backend.changing(share['name'], snapshot['name']):
            found = self._backend.find(Kind.SHARE, share['name'])
            if found is not None:
                self._clones.forget(share['name'], snapshot)
                return self._ensure_export(*found)
            source = self._backend.find(Kind.SNAPSHOT, snapshot['name'])
            if source is not None and (
                len(self._backend.pools) == 1
                or self._backend.pool_for(share) is source[0]
            ):
                pool, record = source
                path = pool.path(Kind.SNAPSHOT, record['volume'])
                return self._create(pool, share, path, share_server)
        pool = self._backend.pool_for(share)
        with (
            self._clones.copied(share['name'], snapshot, pool) as copy,
            self._backend.changing(share['name']),
        ):
            found = self._backend.find(Kind.SHARE, share['name'])
            if found is not None:
                return self._ensure_export(*found)
            return self._create(pool, share, copy, share_server)

    def _create(
        self,
        pool: Pool,
        share: base.ShareForDriver,
        source: pathlib.Path | None,
        share_server: base.ShareServerMapping | None,
    ) -> base.ExportLocationsReply:
        """Create a share, empty or from a snapshot."""
        name = share['name']
        if pool.is_read_only():
            raise exception.ShareRefused(reason=f'pool {pool.name} is read-only')
        if not self._backend.is_leftover(Kind.SHARE, name):
            raise exception.ShareBackendException(
                msg=f'the volume {name} exists and is not managed as {name}'
            )
        try:
            self._backend.exports.check(share['share_proto'], name)
        except ValueError as error:
            raise exception.ShareRefused(reason=str(error)) from error
        record = {
            'volume': name,
            'share_proto': share['share_proto'],
            **self._backend.server_fields(share_server, share['share_proto']),
        }
        try:
            with pool.catalog.putting(Kind.SHARE, name, record):
                if source is None:
                    pool.create(name, share['size'])
                else:
                    pool.clone_from(source, name, share['size'])
                locations = self._ensure_export(pool, record)
            pool.commit_new(Kind.SHARE)
        except OSError as error:
            self._backend.exports.withdraw(Kind.SHARE, name)
            pool.catalog.drop(Kind.SHARE, name)
            pool.discard(Kind.SHARE, name)
            if is_out_of_space(error):
                raise exception.ShareRefused(
                    reason=f'pool {pool.name}: {error.strerror}'
                ) from error
            raise
        return locations

    def delete_share(self, share: base.ShareForDriver) -> None:
        """End the export, then move the share to the trash.

        The supervisor of the daemons empties it.
        """
        with self._backend.changing(share['name']):
            if not self._backend.remove(Kind.SHARE, share['name']):
                raise exception.ShareResourceNotFound(share_id=share['id'])

    def extend_share(self, share: base.ShareForDriver, new_size: int) -> None:
        with self._backend.changing(share['name']):
            pool, record = self._backend.get_share(share['name'])
            volume = record['volume']
            if pool.size_gib(Kind.SHARE, volume) < new_size:
                pool.resize(volume, new_size)
                pool.commit()

    def shrink_share(self, share: base.ShareForDriver, new_size: int) -> None:
        """Lower the limit, unless the content would exceed it.

        The content is counted again under the new limit, since clients may
        have written between.
        """
        with self._backend.changing(share['name']):
            pool, record = self._backend.get_share(share['name'])
            volume = record['volume']
            size = pool.size_gib(Kind.SHARE, volume)
            if size <= new_size:
                return
            self._require_fit(pool, volume, new_size, share)
            pool.resize(volume, new_size)
            try:
                self._require_fit(pool, volume, new_size, share)
            except exception.ShareShrinkingPossibleDataLoss:
                pool.resize(volume, size)
                raise
            pool.commit()

    def _require_fit(
        self, pool: Pool, volume: str, size: int, share: base.ShareForDriver
    ) -> None:
        if pool.used_bytes(Kind.SHARE, volume) > size * GIB:
            raise exception.ShareShrinkingPossibleDataLoss(share_id=share['id'])

    # State

    def get_share_status(self, share: base.ShareForDriver) -> base.StatusReply:
        pool, record = self._backend.get_share(share['name'])
        volume = record['volume']
        status: base.StatusReply = {
            'status': 'error',
            'share_proto': record['share_proto'],
            'export_locations': self._backend.locations(Kind.SHARE, record),
        }
        if pool.has(Kind.SHARE, volume):
            status['size'] = pool.size_gib(Kind.SHARE, volume)
            if 'reverting_to' not in record:
                status['status'] = 'available'
        return status

    def connection_get_info(self, share: base.ShareForDriver) -> base.ConnectionInfo:
        pool, record = self._backend.get_share(share['name'])
        return {'directory': identity_of(pool.path(Kind.SHARE, record['volume']))}

    def update_share_usage_size(
        self, shares: Iterable[base.ShareForDriver]
    ) -> list[dict[str, Any]]:
        """Return what the shares hold in GiB, as of the last commit."""
        gathered_at = timeutils.utcnow()
        sizes = {
            name: size
            for pool in self._backend.pools.values()
            for name, size in pool.share_sizes().items()
        }
        return [
            {
                'id': share['id'],
                'used_size': round(sizes[share['name']].used / GIB, 2),
                'gathered_at': gathered_at,
            }
            for share in shares
            if share['name'] in sizes
        ]

    def ensure_shares(
        self, shares: Iterable[base.ShareForDriver]
    ) -> dict[str, base.EnsureReply]:
        """Export and limit what is not, and return the replies.

        There is none of a share for which that fails, or which may be in a
        pool that is not mounted: it is not lost, and an administrator can
        repeat the request. The driver waits for a server that does not answer
        only once.
        """
        for pool in self._backend.pools.values():
            try:
                restore_limits(pool, self._backend.locks)
                restore_properties(pool, self._backend.locks)
            except OSError as error:
                LOG.error('Limits in pool %s are not compared: %s', pool.name, error)
        replies = {}
        with silence.waiting_once():
            try:
                self._backend.restore_exports()
            except (exception.DriverError, OSError) as error:
                LOG.error('Exports are not compared: %s', error)
            for share in shares:
                try:
                    replies[share['id']] = self._ensure_reply(share)
                except exception.StaleFencingToken:
                    raise
                except (exception.DriverError, OSError) as error:
                    LOG.error('Share %s is not exported: %s', share['name'], error)
        return replies

    def _ensure_reply(self, share: base.ShareForDriver) -> base.EnsureReply:
        try:
            locations = self.ensure_share(share)
        except exception.ShareResourceNotFound:
            self._backend.require()
            return {'status': 'error'}
        except ShareServerMissing as error:
            LOG.error('Share %s is not exported: %s', share['name'], error)
            return {'status': 'error'}
        return {
            'status': self.get_share_status(share)['status'],
            'reapply_access_rules': True,
            'export_locations': locations,
        }

    def ensure_share(self, share: base.ShareForDriver) -> base.ExportLocationsReply:
        with self._backend.changing(share['name']):
            pool, record = self._backend.get_share(share['name'])
            if not pool.has(Kind.SHARE, record['volume']):
                LOG.error(
                    'Share %s is lost: pool %s has no volume %s',
                    share['name'],
                    pool.name,
                    record['volume'],
                )
                raise exception.ShareResourceNotFound(share_id=share['name'])
            if not pool.limit_bytes(Kind.SHARE, record['volume']):
                # An earlier version has not recorded it, and it is lost.
                pool.resize(record['volume'], share['size'])
                pool.commit()
            return self._ensure_export(pool, record)

    def _ensure_export(self, pool: Pool, record: Record) -> base.ExportLocationsReply:
        volume = record['volume']
        path = pool.path(Kind.SHARE, volume)
        if not self._backend.exports.is_published(Kind.SHARE, volume, path):
            self._backend.exports.republish(Kind.SHARE, volume, path)
        return self._backend.locations(Kind.SHARE, record)
