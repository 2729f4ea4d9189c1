"""Managing existing volumes of the btrfs driver."""

from collections.abc import Mapping
import re

from manila_lite import exception
from manila_lite.share.drivers import base
from manila_lite.share.drivers.btrfs import kernel
from manila_lite.share.drivers.btrfs.backend import BtrfsBackend
from manila_lite.share.drivers.btrfs.catalog import Kind
from manila_lite.share.drivers.btrfs.exports.protocols import volume_at, volume_of
from manila_lite.share.drivers.btrfs.volumes import snapshots
from manila_lite.share.drivers.btrfs.volumes.pool import Pool
from manila_lite.share.drivers.records import Record
from manila_lite.share.drivers.space import managed_size

_LOCK = 'managing'
_VOLUME = re.compile(r'[A-Za-z0-9][A-Za-z0-9._-]{0,199}')


class BtrfsManaging:
    """Nothing is moved: a volume keeps its path and its name.

    Only the record says which share or snapshot it is. What was released
    keeps its clients; what is managed has none, as it has no rules.
    """

    def __init__(self, backend: BtrfsBackend):
        self._backend = backend

    def manage_existing(
        self, share: base.ShareForDriver, driver_options: Mapping[str, str]
    ) -> base.ManageReply:
        """Manage a volume in the directory `shares` of a pool.

        A repeated call ends the use by clients, too: there are no rules
        before it has succeeded. The option `size` gives its size in GiB.
        Otherwise it is the size it has, or else that of its content.
        """
        return self.manage_existing_with_server(share, driver_options)

    def manage_existing_with_server(
        self,
        share: base.ShareForDriver,
        driver_options: Mapping[str, str],
        share_server: base.ShareServerMapping | None = None,
    ) -> base.ManageReply:
        """Do the same on a share server.

        What it was exported from before has to be this server, or gone.
        """
        location = share['export_location'] or ''
        try:
            with self._backend.changing(_LOCK, share['name']):
                found = self._backend.find(Kind.SHARE, share['name'])
                pool, record = found or self._manage_share(
                    share, location, driver_options, share_server
                )
                volume = record['volume']
                path = pool.path(Kind.SHARE, volume)
                self._backend.exports.publish(Kind.SHARE, record, path, [])
                pool.commit()
        except ValueError as error:
            raise exception.ManageInvalidShare(reason=f'{location}: {error}') from error
        return {
            'size': pool.size_gib(Kind.SHARE, volume),
            'export_locations': self._backend.locations(Kind.SHARE, record),
        }

    def _manage_share(
        self,
        share: base.ShareForDriver,
        location: str,
        driver_options: Mapping[str, str],
        share_server: base.ShareServerMapping | None,
    ) -> tuple[Pool, Record]:
        self._backend.exports.check(share['share_proto'], 'any')
        volume = volume_at(share['share_proto'], location)
        if volume is None:
            raise ValueError('it is not an export location of this back end')
        self._backend.exports.check(share['share_proto'], volume)
        pool = self._manageable(Kind.SHARE, volume)
        record = pool.catalog.find_unmanaged(Kind.SHARE, volume) or {
            'volume': volume,
            'share_proto': share['share_proto'],
        }
        if record['share_proto'] != share['share_proto']:
            raise ValueError(f'it is a {record["share_proto"]} share')
        server = self._backend.server_fields(share_server, record['share_proto'])
        if self._is_elsewhere(record, server):
            raise ValueError(f'it is on share server {record["server"]}')
        record |= server
        if snapshots.LIMIT in record:  # an earlier version has released it
            pool.set_limit_bytes(volume, record.pop(snapshots.LIMIT))
        size = managed_size(
            pool.size_gib(Kind.SHARE, volume),
            pool.used_bytes(Kind.SHARE, volume),
            driver_options.get('size'),
        )
        pool.resize(volume, size)
        pool.catalog.put(Kind.SHARE, share['name'], record)
        return pool, record

    def _is_elsewhere(self, record: Record, server: Record) -> bool:
        """Return whether another share server exports a volume."""
        current = record.get('server')
        return (
            current is not None
            and current != server.get('server')
            and self._backend.has_servers
            and self._backend.servers.find(current) is not None
        )

    def unmanage(self, share: base.ShareForDriver) -> None:
        """Stop managing a share; its clients keep their access.

        One whose revert was interrupted has the limit before it.
        """
        with self._backend.changing(share['name']):
            found = self._backend.find(Kind.SHARE, share['name'])
            if found is not None:
                pool = found[0]
                snapshots.limit_interrupted(pool, share['name'])
                pool.catalog.unmanage(Kind.SHARE, share['name'])
                pool.commit()
            elif not self._is_unmanaged(share):
                raise exception.ShareResourceNotFound(share_id=share['id'])

    unmanage_with_server = unmanage

    def _is_unmanaged(self, share: base.ShareForDriver) -> bool:
        """Return whether an earlier call has ended the managing of a share."""
        volume = volume_of(share)
        return any(
            pool.catalog.find_unmanaged(Kind.SHARE, volume) is not None
            for pool in self._backend.pools.values()
        )

    def manage_existing_snapshot(
        self, snapshot: base.SnapshotForDriver
    ) -> base.ManageSnapshotReply:
        """Manage a read-only volume in the directory `snapshots` of a pool.

        The provider location is its name.
        """
        location = snapshot['provider_location'] or ''
        try:
            with self._backend.changing(_LOCK, snapshot['name']):
                owner_pool, owner = self._backend.get_share(snapshot['share_name'])
                found = self._backend.find(Kind.SNAPSHOT, snapshot['name'])
                pool, record = found or self._manage_snapshot(
                    snapshot, location, owner_pool, owner
                )
                self._backend.exports.publish(
                    Kind.SNAPSHOT,
                    record,
                    pool.path(Kind.SNAPSHOT, record['volume']),
                    [],
                    read_only=True,
                )
                pool.commit()
        except ValueError as error:
            raise exception.ManageInvalidShareSnapshot(
                reason=f'{location}: {error}'
            ) from error
        volume = record['volume']
        return {
            'size': pool.size_gib(Kind.SNAPSHOT, volume),
            'provider_location': volume,
            'export_locations': self._backend.locations(Kind.SNAPSHOT, record),
        }

    manage_existing_snapshot_with_server = manage_existing_snapshot

    def _manage_snapshot(
        self,
        snapshot: base.SnapshotForDriver,
        volume: str,
        owner_pool: Pool,
        owner: Record,
    ) -> tuple[Pool, Record]:
        if not _VOLUME.fullmatch(volume):
            raise ValueError('it is not the name of a snapshot')
        pool = self._manageable(Kind.SNAPSHOT, volume)
        record = pool.catalog.find_unmanaged(Kind.SNAPSHOT, volume) or {
            'volume': volume,
            'of': owner['volume'],
            'share_proto': owner['share_proto'],
        }
        if pool is not owner_pool or record['of'] != owner['volume']:
            raise ValueError(f'it belongs to {record["of"]}')
        path = pool.path(Kind.SNAPSHOT, volume)
        if not kernel.is_read_only(path):
            raise ValueError('it is not read-only')
        if not pool.size_gib(Kind.SNAPSHOT, volume):
            pool.adopt_size(owner['volume'], volume)
        if 'server' in owner:
            record |= {'server': owner['server']}
        pool.catalog.put(Kind.SNAPSHOT, snapshot['name'], record)
        return pool, record

    def unmanage_snapshot(self, snapshot: base.SnapshotForDriver) -> None:
        """Stop managing a snapshot; its clients keep their access."""
        with self._backend.changing(snapshot['name']):
            found = self._backend.find(Kind.SNAPSHOT, snapshot['name'])
            if found is not None:
                found[0].catalog.unmanage(Kind.SNAPSHOT, snapshot['name'])
                found[0].commit()

    unmanage_snapshot_with_server = unmanage_snapshot

    def _manageable(self, kind: Kind, volume: str) -> Pool:
        """Return the pool of a volume that nothing else has."""
        pools = [
            pool for pool in self._backend.pools.values() if pool.has(kind, volume)
        ]
        if len(pools) != 1:
            raise ValueError(f'it is in {len(pools)} pools')
        owner = pools[0].catalog.owner(kind, volume)
        if owner is not None:
            raise ValueError(f'it is already managed as {owner}')
        subvolume = kernel.subvolume_id(pools[0].path(kind, volume))
        if kernel.nested_subvolumes(pools[0].top, subvolume):
            # They are in no snapshot and do not count in the size.
            raise ValueError('there are other subvolumes in it')
        return pools[0]
