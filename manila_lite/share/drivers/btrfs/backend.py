"""What all parts of the btrfs driver use."""

from collections.abc import Iterator
import contextlib
import ipaddress
import pathlib
import time

from oslo_utils import netutils

from manila_lite import exception
from manila_lite.host import Host
from manila_lite.share.drivers import base
from manila_lite.share.drivers.btrfs.catalog import Kind
from manila_lite.share.drivers.btrfs.daemons import Daemons
from manila_lite.share.drivers.btrfs.exports import Exports
from manila_lite.share.drivers.btrfs.exports import pseudo_path
from manila_lite.share.drivers.btrfs.ganesha import safe_path
from manila_lite.share.drivers.btrfs.locks import Locks
from manila_lite.share.drivers.btrfs.mounting import is_mounted
from manila_lite.share.drivers.btrfs.mounting import mounted_pool
from manila_lite.share.drivers.btrfs.pool import Pool
from manila_lite.share.drivers.contract.configuration import Configuration
from manila_lite.share.drivers.fencing import FencingTokens
from manila_lite.share.drivers.records import Record
from manila_lite.share.drivers.records import checked_file_name


class BtrfsBackend:
    """The pools, the exports and the locks of one back end."""

    def __init__(self, configuration: Configuration):
        self.configuration = configuration
        self.root = pathlib.Path(configuration.btrfs_root)
        self.locks = Locks(self.root / 'locks')
        self.fencing = FencingTokens(self.root / 'fencing')
        self.pools: dict[str, Pool] = {}
        self._addresses: list[str] = configuration.btrfs_export_addresses

    # Start

    def start(self, has_shares: bool) -> None:
        """Mount the pools, then let the NFS server export what it should.

        If there are shares, one of the pools must have been used before.
        """
        self._check_options()
        for folder in ('locks', 'fencing', 'pools'):
            (self.root / folder).mkdir(parents=True, exist_ok=True)
        self.root.chmod(0o700)
        with self.locks.locked('start'):
            pools = {
                name: Pool(
                    name,
                    mounted_pool(
                        pathlib.Path(source), self.root / 'pools' / name
                    ),
                )
                for name, source in self.configuration.btrfs_pools.items()
            }
            if has_shares and all(pool.is_new() for pool in pools.values()):
                raise exception.StorageUnavailable(
                    reason='no pool has a directory "shares"; are these the '
                    'right file systems? If the shares are lost for good, '
                    'create it'
                )
            for pool in pools.values():
                pool.prepare()
                self._discard_unfinished(pool)
            self.pools = pools
            self.daemons = self._daemons()
            self.exports = Exports(
                self.root / 'exports', self.daemons.server, self.locks
            )
            self.exports.prepare()
            self.exports.restore_mounts(self._find_volume)
            self.daemons.start()
            self.exports.reconcile()
        self.fencing.forget_old(time.time())

    def require(self) -> None:
        """Raise StorageUnavailable if a pool is not mounted.

        The directory below would look like a pool without shares.
        """
        for pool in self.pools.values():
            if not is_mounted(pool.top):
                raise exception.StorageUnavailable(
                    reason=f'pool {pool.name} is not mounted'
                )

    def check_health(self) -> None:
        """Raise StorageUnavailable if clients cannot use what is there.

        What can be repaired is: a pool is mounted, a supervisor started.
        """
        try:
            self.require()
        except exception.StorageUnavailable:
            self.start(has_shares=True)
        self.daemons.keep_supervised()
        for pool in self.pools.values():
            if pool.is_read_only():
                raise exception.StorageUnavailable(
                    reason=f'pool {pool.name} is read-only; look for errors '
                    'of the disk in the log of the kernel'
                )
        if not self.daemons.is_answering():
            raise exception.StorageUnavailable(
                reason='the NFS server does not answer'
            )
        self.fencing.forget_old(time.time())

    def _check_options(self) -> None:
        section = self.configuration.config_group
        if not self.root.is_absolute():
            raise exception.BadConfiguration(
                reason=f'back end "{section}": btrfs_root {self.root} is not '
                'an absolute path'
            )
        safe_path(self.root)
        if not self.configuration.btrfs_pools:
            raise exception.BadConfiguration(
                reason=f'back end "{section}": btrfs_pools names no pool; '
                'create one with "manila-lite-manage storage prepare"'
            )
        for name in self.configuration.btrfs_pools:
            checked_file_name(name)
        for address in self._addresses or ['']:
            try:
                ipaddress.ip_address(address)
            except ValueError as error:
                raise exception.BadConfiguration(
                    reason=f'back end "{section}": btrfs_export_addresses: '
                    f'{error}'
                ) from error

    def _daemons(self) -> Daemons:
        return Daemons(
            self.root / 'nfs',
            self.root / 'exports',
            self.configuration.btrfs_nfs_port,
            [
                folder
                for pool in self.pools.values()
                for folder in pool.folders
            ],
        )

    def _discard_unfinished(self, pool: Pool) -> None:
        """Discard what killed processes have begun to create."""
        for kind, volume in pool.unfinished():
            with self.locks.try_locked(volume) as is_locked:
                if is_locked:
                    pool.discard_unfinished(kind, volume)

    def _find_volume(self, kind: Kind, volume: str) -> pathlib.Path | None:
        return next(
            (
                pool.path(kind, volume)
                for pool in self.pools.values()
                if pool.has(kind, volume)
            ),
            None,
        )

    # Shares and snapshots

    @contextlib.contextmanager
    def changing(self, *names: str) -> Iterator[None]:
        """Lock shares and snapshots to change them.

        Errors of the file system become errors of the back end.
        """
        try:
            with contextlib.ExitStack() as stack:
                for name in sorted(set(names)):
                    stack.enter_context(self.locks.locked(name))
                self.fencing.check_call()
                yield
        except OSError as error:
            raise exception.ShareBackendException(
                msg=f'{error.filename or self.root}: {error.strerror or error}'
            ) from error

    def find(self, kind: Kind, name: str) -> tuple[Pool, Record] | None:
        """Return the pool and the record of a share or snapshot."""
        for pool in self.pools.values():
            record = pool.catalog.find(kind, name)
            if record is not None:
                return pool, record
        return None

    def get_share(self, name: str) -> tuple[Pool, Record]:
        found = self.find(Kind.SHARE, name)
        if found is None:
            raise exception.ShareResourceNotFound(share_id=name)
        return found

    def get_snapshot(
        self, snapshot: base.SnapshotForDriver
    ) -> tuple[Pool, Record]:
        found = self.find(Kind.SNAPSHOT, snapshot['name'])
        if found is None:
            raise exception.SnapshotResourceNotFound(
                snapshot_id=snapshot['id']
            )
        return found

    def remove(self, kind: Kind, name: str) -> None:
        """Remove a share or snapshot; a missing one is success.

        What a killed process left behind of its creation is removed as well.
        """
        found = self.find(kind, name)
        if found is not None:
            pools, volume = [found[0]], found[1]['volume']
        elif self.is_leftover(kind, name):
            pools, volume = list(self.pools.values()), name
        else:
            return
        self.exports.withdraw(kind, volume)
        for pool in pools:
            pool.discard(kind, volume)
            pool.catalog.drop_unmanaged(kind, volume)
            pool.catalog.drop(kind, name)
            pool.commit()

    def is_leftover(self, kind: Kind, volume: str) -> bool:
        """Return whether no share or snapshot can have a volume.

        Only of one that exists is it worth reading all records.
        """
        return all(
            not pool.has(kind, volume)
            or (
                pool.catalog.find_unmanaged(kind, volume) is None
                and pool.catalog.owner(kind, volume) is None
            )
            for pool in self.pools.values()
        )

    def pool_for(self, share: base.ShareForDriver) -> Pool:
        """Return the pool that a share is to be created in."""
        name = Host.parse(share['host'] or '').pool
        if not name and len(self.pools) == 1:
            return next(iter(self.pools.values()))
        if name not in self.pools:
            raise exception.ShareBackendException(
                msg=f'there is no pool {name}'
            )
        return self.pools[name]

    def locations(self, kind: Kind, volume: str) -> list[base.ExportLocation]:
        """Return the export locations of a volume."""
        return [
            {
                'path': f'{netutils.escape_ipv6(address)}:'
                f'{pseudo_path(kind, volume)}',
                'is_admin_only': False,
                'metadata': {'preferred': str(number == 0)},
            }
            for number, address in enumerate(self._addresses)
        ]

    def ip_versions(self) -> list[int]:
        return sorted(
            {
                ipaddress.ip_address(address).version
                for address in self._addresses
            }
        )
