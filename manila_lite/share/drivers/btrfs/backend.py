"""What all parts of the btrfs driver use."""

from collections.abc import Callable, Iterator
import contextlib
import ipaddress
import os
import pathlib
import time

from oslo_log import log

from manila_lite import exception
from manila_lite.host import Host
from manila_lite.share.drivers import base
from manila_lite.share.drivers.btrfs import failures, options
from manila_lite.share.drivers.btrfs.catalog import Kind, RecordsUnreadable
from manila_lite.share.drivers.btrfs.daemons import root_directory
from manila_lite.share.drivers.btrfs.daemons.daemons import Daemons
from manila_lite.share.drivers.btrfs.exports.nfs.exports import Exports
from manila_lite.share.drivers.btrfs.exports.nfs.handle_guard import GUARD
from manila_lite.share.drivers.btrfs.exports.protocols import (
    CIFS,
    Exporters,
    Protocols,
    location,
)
from manila_lite.share.drivers.btrfs.exports.smb import smb_settings
from manila_lite.share.drivers.btrfs.exports.smb.smb_exports import SmbExports
from manila_lite.share.drivers.btrfs.exports.smb.smb_users import SmbUsers
from manila_lite.share.drivers.btrfs.moves import copies, departures
from manila_lite.share.drivers.btrfs.moves.copies import ONCE, Copies
from manila_lite.share.drivers.btrfs.moves.departures import Departures
from manila_lite.share.drivers.btrfs.servers import servers
from manila_lite.share.drivers.btrfs.servers.servers import Servers
from manila_lite.share.drivers.btrfs.volumes import pool_disks, restoring
from manila_lite.share.drivers.btrfs.volumes.pool import (
    FREED_WITHIN,
    Pool,
    is_mounted,
    mounted_pool,
)
from manila_lite.share.drivers.btrfs.volumes.pool_disks import PoolDisks
from manila_lite.share.drivers.contract.configuration import Configuration
from manila_lite.share.drivers.fencing import FencingTokens
from manila_lite.share.drivers.file_locks import Locks
from manila_lite.share.drivers.records import Record

LOG = log.getLogger(__name__)

_COPYING = 'copying.'


class BtrfsBackend:
    """The pools, the exports and the locks of one back end."""

    def __init__(self, configuration: Configuration):
        self.configuration = configuration
        # The kernel and the NFS server know mounts by their real paths.
        self.root = pathlib.Path(configuration.btrfs_root).resolve()
        self.locks = Locks(self.root / 'locks')
        self.fencing = FencingTokens(self.root / 'fencing')
        self.departures = Departures(self.root)
        self.pools: dict[str, Pool] = {}
        self._reported_nested: dict[str, set[str]] = {}
        self.disks = PoolDisks(self.root)
        self.before_exports: Callable[[Pool], None] = lambda pool: None
        self._addresses: list[str] = configuration.btrfs_export_addresses

    # Start

    def start(self, has_shares: bool) -> None:
        """Mount the pools, then let the NFS server export what it should.

        If there are shares, one of the pools must have been used before.
        """
        options.check(self.configuration, self.root)
        options.check_privileges(self.configuration)
        GUARD.require()
        root_directory.prepare(self.root)
        for folder in ('locks', 'fencing', 'pools'):
            (self.root / folder).mkdir(parents=True, exist_ok=True)
        with self.locks.locked('start'), contextlib.ExitStack() as stack:
            self._assemble()
            if self.has_servers:
                self.servers.prepare()
            problems = self._open_pools(has_shares, stack)
            problems += self._prepare_exports()
            if self.has_servers:
                self.servers.start()
            else:
                self._serve()
        self.fencing.forget_old(time.time())
        if problems:
            raise failures.joined(problems)

    def _open_pools(
        self, has_shares: bool, stack: contextlib.ExitStack
    ) -> list[exception.DriverError]:
        """Mount the pools, and prepare them; return what is wrong.

        Unusable pools do not affect the others, unless all are unusable. They
        are locked until `stack` is left.
        """
        problems: list[exception.DriverError] = []
        pools: dict[str, Pool] = {}
        are_new = True
        for name, source in self.configuration.btrfs_pools.items():
            try:
                pool = Pool(name, self._mounted(name, pathlib.Path(source)))
                self.disks.claim(pool, source)
                are_new = pool.is_new() and are_new
            except (OSError, exception.DriverError) as error:
                problems.append(failures.of_pool(name, error))
            else:
                pools[name] = pool
        if has_shares and are_new:
            problems.append(
                exception.StorageUnavailable(
                    reason='no pool has a directory "shares"; are these the '
                    'right file systems? If the shares are lost for good, '
                    'say so with "manila-lite-manage storage declare-lost"'
                )
            )
            raise problems[0]
        if not pools:
            raise failures.joined(problems)
        stack.enter_context(pool_disks.claimed(pools.values(), self.root))
        self.pools = pools
        for pool in pools.values():
            try:
                self._require_writable(pool)
                pool.prepare()
                self._discard_unfinished(pool)
                restoring.restore_limits(pool, self.locks, is_trusted=False)
                restoring.restore_properties(pool, self.locks)
            except (OSError, exception.DriverError) as error:
                problems.append(failures.of_pool(pool.name, error))
        return problems

    def _mounted(self, name: str, source: pathlib.Path) -> pathlib.Path:
        """Mount a pool, even after its disk was missing for a time.

        The kernel does not remount a failed file system while any part of it is
        still mounted.
        """
        target = self.root / 'pools' / name
        try:
            return mounted_pool(source, target)
        except exception.DriverError:
            tops = [
                top
                for each, top in self._tops().items()
                if each != name and is_mounted(top)
            ]
            if self.has_servers:
                self.servers.detach_lost(target, tops)
            else:
                nfs, cifs = self._exporters
                nfs.detach_lost(tops)
                if cifs:
                    cifs.close_below(target)
        return mounted_pool(source, target)

    def _prepare_exports(self) -> list[exception.DriverError]:
        """Create folders, and end the use of what others have replaced.

        A pool of which that is not known is not exported; return which.
        """
        if self.has_servers:
            self._undo_abandoned_departures()
        else:
            self._exporters.nfs.prepare()
        problems: list[exception.DriverError] = []
        known: dict[str, Pool] = {}
        for name, pool in self.pools.items():
            try:
                self.before_exports(pool)
                if self.has_servers:
                    self._drop_departed(pool)
            except OSError as error:
                problems.append(failures.of_pool(name, error))
            else:
                known[name] = pool
        self.pools = known
        return problems

    def _serve(self) -> None:
        nfs, cifs = self._exporters
        nfs.restore_mounts(self._find_volume)
        self.daemons.end_blind_server(nfs.is_seen_by)
        if cifs:
            cifs.prepare()
        self.daemons.start()
        try:
            nfs.reconcile()
            self.daemons.require_guarded()
        finally:
            if cifs:
                cifs.reconcile()

    def _serve_from_servers(self) -> None:
        self.servers = Servers(
            self.root,
            servers.Ports(
                self.configuration.btrfs_nfs_port,
                self.configuration.btrfs_smb_port
                if self.configuration.btrfs_cifs
                else None,
            ),
            self._trash(),
            self._find_volume,
        )
        self.exports = Protocols(
            self._exporters_of,
            lambda: (
                Exporters(server.exports, server.smb) for server in self.servers.ready()
            ),
            self.configuration.btrfs_cifs,
        )

    def _undo_abandoned_departures(self) -> None:
        """Let servers serve whose migration was abandoned without us."""
        for server_id, moving in self.departures.abandoned():
            with self.try_lock_copies(moving) as is_locked:
                if is_locked:
                    try:
                        with self.locks.locked(server_id):
                            self.servers.enable(server_id)
                        departures.drop_copies(self.pools.values(), moving)
                    except (OSError, exception.ManilaLiteError) as error:
                        LOG.error(
                            'Share server %(id)s, which was to be migrated, '
                            'does not serve its clients: %(error)s',
                            {'id': server_id, 'error': error},
                        )
                        continue
                    self.departures.end(moving)

    def _drop_departed(self, pool: Pool) -> None:
        """Remove the copies of share servers that are not migrated now."""
        for moving in departures.moving_in(pool):
            with self.try_lock_copies(moving) as is_locked:
                if is_locked and not self.departures.is_moving(moving):
                    departures.drop_copies([pool], moving)

    def _exporters_of(self, kind: Kind, volume: str) -> Exporters | None:
        """Return the daemons of the share server of a volume, if any.

        It is not exported before it has a record, nor when the server is
        gone. Only a managed volume has a name other than its share. The
        record of a volume that is still exported may be lost with its pool.
        """
        record = None
        # Exports of a failing disk can still be ended.
        with contextlib.suppress(OSError, exception.ShareBackendException):
            found = self.find(kind, volume)
            record = found[1] if found else None
            if record is None or record['volume'] != volume:
                record = self._record_of(kind, volume)
        if record is None:
            last = self.servers.find_exporting(kind, volume)
            return Exporters(last.exports, last.smb) if last else None
        name = record.get('server')
        server = name and self.servers.find(name)
        if not server:
            return None
        is_cifs = self.exports.has_protocol(CIFS) and (record['share_proto'] == CIFS)
        return Exporters(server.exports, server.smb if is_cifs else None)

    def _record_of(self, kind: Kind, volume: str) -> Record | None:
        for pool in self.pools.values():
            name = pool.catalog.owner(kind, volume) if pool.has(kind, volume) else None
            if name is not None:
                return pool.catalog.find(kind, name)
        return None

    def attach(self) -> bool:
        """Use what another process has started; return whether it is there.

        It has the pools that are mounted now.
        """
        if not (self.root / 'locks').is_dir():
            return False
        found = (Pool(name, top) for name, top in self._tops().items())
        self.pools = {
            pool.name: pool
            for pool in found
            if is_mounted(pool.top) and self.disks.is_claimed(pool)
        }
        if not hasattr(self, 'exports'):
            self._assemble()
        return True

    def _tops(self) -> dict[str, pathlib.Path]:
        """Return where the pools are mounted, if they are."""
        return {
            name: pathlib.Path(source)
            if os.path.isdir(source)
            else self.root / 'pools' / name
            for name, source in self.configuration.btrfs_pools.items()
        }

    def _assemble(self) -> None:
        if self.has_servers:
            self._serve_from_servers()
            return
        self.daemons = self._daemons()
        nfs = Exports(self.root / 'exports', self.daemons.server, self.locks)
        cifs = None
        if self.daemons.smb_server:
            folder = self.root / 'smb'
            cifs = SmbExports(folder, self.daemons.smb_server, SmbUsers(folder))
        exporters = self._exporters = Exporters(nfs, cifs)
        self.exports = Protocols(
            lambda kind, volume: exporters, lambda: [exporters], cifs is not None
        )

    def require(self) -> None:
        """Raise StorageUnavailable if a pool is not mounted.

        The directory below would look like a pool without shares.
        """
        for name in self.configuration.btrfs_pools:
            if name not in self.pools or not is_mounted(self.pools[name].top):
                raise exception.StorageUnavailable(reason=f'pool {name} is not mounted')
            if self.disks.is_replaced(self.pools[name]):
                raise exception.StorageUnavailable(
                    reason=f'another disk is mounted as pool {name}'
                )

    def keep_exportable(self) -> None:
        """Mount again what exports need, if somebody has unmounted it.

        The servers are started again where they would not see it.
        """
        if not hasattr(self, 'exports'):
            return  # it has not been started
        exports = (
            [server.exports for server in self.servers.ready()]
            if self.has_servers
            else [self._exporters.nfs]
        )
        if not all(one.is_in_place() for one in exports):
            LOG.error(
                'Mounts of exports in %s were unmounted: they are mounted again',
                self.root,
            )
            self.start(has_shares=True)

    def restore_exports(self) -> None:
        """Let running servers export what they should, and nothing else."""
        for nfs, cifs in self._all_exporters():
            restored = nfs.restore(self._find_volume)
            if cifs:
                restored += cifs.restore()
            if restored:
                LOG.error(
                    'Exports were not as recorded, and are restored: %s',
                    ', '.join(restored),
                )

    def _all_exporters(self) -> Iterator[Exporters]:
        if not self.has_servers:
            yield self._exporters
            return
        for server in self.servers.ready():
            yield Exporters(server.exports, server.smb if server.runs_smb() else None)

    def _require_writable(self, pool: Pool) -> None:
        if not pool.is_read_only():
            return
        is_ours = pool.top == self.root / 'pools' / pool.name
        raise exception.StorageUnavailable(
            reason=f'pool {pool.name} is read-only; look for errors of the '
            'disk in the log of the kernel. When it works again, unmount '
            f'{pool.top}'
            + ('; it is then mounted again' if is_ours else ' and mount it')
        )

    def check_health(self) -> None:
        """Raise StorageUnavailable if clients cannot use what is there.

        Mounts a pool again and starts a supervisor if that helps.
        """
        try:
            self.require()
        except exception.StorageUnavailable:
            self.start(has_shares=True)
        GUARD.require()  # a server that is started next needs it
        self.keep_exportable()
        if not self.has_servers:
            self.daemons.keep_supervised()
        for pool in self.pools.values():
            self._require_writable(pool)
            try:
                self.disks.check(pool)
                pool.read()
                restoring.restore_limits(pool, self.locks)
                restoring.restore_properties(pool, self.locks)
                self._report_nested(pool)
                if pool.count_again():
                    LOG.warning(
                        'The sizes of the shares in pool %s are wrong, and '
                        'clients may exceed them: they are counted again',
                        pool.name,
                    )
            except OSError as error:
                raise failures.of_pool(pool.name, error) from error
        if self.has_servers:
            self.servers.check_health()
        else:
            self._require_answers()
            self.daemons.require_guarded()
            self.daemons.require_free_files()
        self.restore_exports()
        root_directory.require_writable(self.root)
        self.fencing.forget_old(time.time())

    def _report_nested(self, pool: Pool) -> None:
        """Log which shares have subvolumes in them, each once."""
        found = pool.names_with_nested()
        reported = self._reported_nested.get(pool.name, set())
        self._reported_nested[pool.name] = found
        if found - reported:
            LOG.error(
                'There are other subvolumes in shares of pool %(pool)s, which '
                'NFS clients do not see. They are in no snapshot and do not '
                'count in the size: replace them with directories, in '
                '%(names)s',
                {'pool': pool.name, 'names': ', '.join(sorted(found - reported))},
            )

    def watch(self) -> None:
        """Replace the supervisor of the servers if it has ended or hangs."""
        (self.servers if self.has_servers else self.daemons).watch()

    def _require_answers(self) -> None:
        silent = self.daemons.silent_server()
        if silent:
            raise exception.StorageUnavailable(
                reason=f'the {silent} server does not answer'
            )

    def _daemons(self) -> Daemons:
        return Daemons(
            self.root / 'nfs',
            self.root / 'exports',
            self.configuration.btrfs_nfs_port,
            self._trash(),
            self._smb_config() if self.configuration.btrfs_cifs else None,
        )

    def _trash(self) -> list[pathlib.Path]:
        return [
            folder
            for name, top in self._tops().items()
            for folder in Pool(name, top).folders
        ]

    def _smb_config(self) -> smb_settings.SmbConfig:
        return smb_settings.base_config(
            self.root / 'smb', self.configuration.btrfs_smb_port, self._addresses
        )

    def _discard_unfinished(self, pool: Pool) -> None:
        """Discard what killed processes have begun to create."""
        for kind, volume in pool.unfinished():
            with self.locks.try_locked(volume) as is_locked:
                if is_locked:
                    pool.discard_unfinished(kind, volume)
        for name in copies.owners(pool.top):
            self.forget_copies(name)

    def forget_copies(self, name: str) -> None:
        """Remove copies that a killed process needed once, if it has ended.

        All copies are removed if there is no such share, and none arrives.
        """
        with self.try_lock_copies(name) as is_locked:
            for pool in self.pools.values() if is_locked else ():
                found = Copies(pool.top, name)
                found.discard(ONCE)
                if (
                    pool.catalog.find(Kind.SHARE, name) is None
                    and pool.catalog.arriving.find(name) is None
                ):
                    found.drop()
                else:
                    found.remove_empty()

    def free_removed(self) -> bool:
        """Free the space of removed volumes; return whether there was any.

        Waits for a few seconds at most.
        """
        deadline = time.monotonic() + FREED_WITHIN
        freed = [pool.free_removed(deadline) for pool in self.pools.values()]
        return any(freed)

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

        Errors of the file system are raised as errors of the back end.
        """
        with self.explained_errors(), contextlib.ExitStack() as stack:
            for name in sorted(set(names)):
                stack.enter_context(self.locks.locked(name))
            self.fencing.check_call()
            yield

    @contextlib.contextmanager
    def explained_errors(self) -> Iterator[None]:
        """Raise errors of the file system as errors of the back end."""
        try:
            yield
        except OSError as error:
            raise failures.explained(error, self.root) from error

    @contextlib.contextmanager
    def lock_copies(self, *names: str) -> Iterator[None]:
        """Lock the copies of shares, which may take long.

        The shares themselves can be changed meanwhile.
        """
        with contextlib.ExitStack() as stack:
            for name in sorted(set(names)):
                stack.enter_context(self.locks.locked(_COPYING + name))
            self.fencing.check_call()
            yield

    def try_lock_copies(self, name: str) -> contextlib.AbstractContextManager[bool]:
        """Do the same without waiting; False if they are locked already."""
        return self.locks.try_locked(_COPYING + name)

    def find(self, kind: Kind, name: str) -> tuple[Pool, Record] | None:
        """Return the pool and the record of a share or snapshot.

        Raises RecordsUnreadable if it is not found, and a pool cannot be
        read: it may be there.
        """
        errors: list[RecordsUnreadable] = []
        for pool in self.pools.values():
            try:
                record = pool.catalog.find(kind, name)
            except OSError as error:
                errors.append(
                    RecordsUnreadable(reason=failures.text_of(error, pool.top))
                )
                continue
            if record is not None:
                return pool, record
        if errors:
            raise errors[0]
        return None

    def get_share(self, name: str) -> tuple[Pool, Record]:
        found = self.find(Kind.SHARE, name)
        if found is None:
            raise exception.ShareResourceNotFound(share_id=name)
        return found

    def get_snapshot(self, snapshot: base.SnapshotForDriver) -> tuple[Pool, Record]:
        found = self.find(Kind.SNAPSHOT, snapshot['name'])
        if found is None:
            raise exception.SnapshotResourceNotFound(snapshot_id=snapshot['id'])
        return found

    def remove(self, kind: Kind, name: str) -> bool:
        """Remove a share or snapshot; return whether there was one.

        What a killed process left behind of its creation is removed as well.
        """
        was_arriving = False
        if kind is Kind.SHARE:
            for pool in self.pools.values():
                was_arriving |= pool.catalog.arriving.find(name) is not None
                self._remove_arriving_snapshots(pool, name)
                pool.catalog.arriving.drop(name)
                Copies(pool.top, name).drop()
        found = self.find(kind, name)
        if found is not None:
            self._remove(kind, name, found[1]['volume'], [found[0]])
        elif self.is_leftover(kind, name):
            self._remove(kind, name, name, list(self.pools.values()))
        if kind is Kind.SHARE:
            for pool in self.pools.values():
                pool.catalog.replicas.drop(name)
                pool.catalog.leaving.drop(name)
        return found is not None or was_arriving

    def _remove_arriving_snapshots(self, pool: Pool, name: str) -> None:
        """Remove what was created for a share that will not arrive."""
        arriving = pool.catalog.arriving.find(name) or {}
        for snapshot in arriving.get('snapshots', ()):
            self.remove(Kind.SNAPSHOT, snapshot)

    def _remove(self, kind: Kind, name: str, volume: str, pools: list[Pool]) -> None:
        self.exports.withdraw(kind, volume)
        for pool in pools:
            pool.discard(kind, volume)
            pool.catalog.drop_unmanaged(kind, volume)
            pool.catalog.drop(kind, name)
            pool.commit()

    def is_leftover(self, kind: Kind, volume: str) -> bool:
        """Return whether no share or snapshot can have a volume.

        All records are read only if a volume exists.
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
            raise exception.ShareBackendException(msg=f'there is no pool {name}')
        return self.pools[name]

    def locations(self, kind: Kind, record: Record) -> list[base.ExportLocation]:
        """Return the export locations of a volume."""
        return [
            {
                'path': location(kind, record, address),
                'is_admin_only': False,
                'metadata': {'preferred': str(number == 0)},
            }
            for number, address in enumerate(self._addresses_of(record))
        ]

    def _addresses_of(self, record: Record) -> list[str]:
        if not self.has_servers:
            return self._addresses
        if 'server' not in record:
            raise servers.ShareServerMissing(
                msg=f'{record["volume"]} is on no share server'
            )
        return [link.host for link in self.servers.get(record['server']).links()]

    # Share servers

    @property
    def has_servers(self) -> bool:
        """Whether shares are on share servers."""
        return self.configuration.driver_handles_share_servers

    def server_fields(
        self, share_server: base.ShareServerMapping | None, share_proto: str
    ) -> Record:
        """Return the fields of a new share's record that name its server.

        There are none without share servers. The first CIFS share of a server
        makes it run smbd.
        """
        server_id = self.server_for(share_server)
        if server_id is None:
            return {}
        if share_proto == CIFS:
            self.servers.start_smb(server_id)
        return {'server': server_id}

    def server_for(self, share_server: base.ShareServerMapping | None) -> str | None:
        """Return the id of a new share's server, if there are servers.

        Raises an error if it has none, or if that does not exist.
        """
        if not self.has_servers:
            return None
        if share_server is None:
            raise exception.ShareBackendException(
                msg='a share needs a share server, and none was given'
            )
        return self.servers.get(share_server['id']).id

    def list_share_names_on_server(self, server_id: str) -> Iterator[str]:
        """Yield the names of the shares on a server."""
        for pool in self.pools.values():
            for name, record in pool.catalog.records(Kind.SHARE):
                if record.get('server') == server_id:
                    yield name

    def ip_versions(self) -> list[int]:
        if self.has_servers:
            return [4, 6]
        return sorted(
            {ipaddress.ip_address(address).version for address in self._addresses}
        )
