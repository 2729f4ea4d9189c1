"""Which disk a pool is on, whatever its device is called today, and its back end.

    top/identity       a random id, see `disk_identity`
    top/owner.json     the `btrfs_root` of the back end that was started last
    root/disks.json    the file systems that the pools of a back end had when
                       it was started last, for other back ends

The file system has an id as well, which a copy of the file does not have.

Two back ends in one pool would remove what the other one creates. A pool may be
moved to another machine, and a back end to another `btrfs_root`: the former
owner counts only while its daemons run here.
"""

from collections.abc import Iterable, Iterator
import contextlib
import os
import pathlib

from oslo_log import log

from manila_lite import exception
from manila_lite.share.drivers import disk_identity, file_locks, records
from manila_lite.share.drivers.btrfs import kernel
from manila_lite.share.drivers.btrfs.catalog import Kind
from manila_lite.share.drivers.btrfs.daemons import processes
from manila_lite.share.drivers.btrfs.volumes.pool import Pool
from manila_lite.share.drivers.contract import statistics

LOG = log.getLogger(__name__)


class PoolDisks:
    """The disks of the pools of one back end."""

    def __init__(self, root: pathlib.Path):
        self.registry: statistics.DiskRegistry = statistics.AnyDisk()
        self._root = root
        self._record = root / 'disks.json'
        self._sources: dict[str, str] = {}
        self._numbers: dict[str, int] = {}

    def claim(self, pool: Pool, source: str) -> None:
        """Use the disk of a pool, or raise StorageUnavailable.

        A disk that is refused is unmounted if it was mounted for us, and
        nothing is written to it.
        """
        self._sources[pool.name] = source
        self._numbers.pop(pool.name, None)
        try:
            self._claim(pool)
        except exception.StorageUnavailable:
            if pool.top.is_relative_to(self._root):
                kernel.unmount(pool.top)
            raise
        self._numbers[pool.name] = os.statvfs(pool.top).f_fsid
        self._publish(pool)

    def _publish(self, pool: Pool) -> None:
        known = records.find(self._record) or {}
        found = known | {pool.name: kernel.file_system_id(pool.top)}
        if found != known:
            try:
                records.write(self._record, found, durable=True)
            except OSError as error:
                LOG.warning('No other back end uses %s: %s', pool.name, error)

    def _claim(self, pool: Pool) -> None:
        disk = self._disk(pool)
        try:
            disk_identity.claim(self.registry, disk, _file(pool), _holder(pool))
        except OSError as error:
            # It is full or read-only. Its clients are served, since it has
            # been checked, and it is recorded when it can be written.
            LOG.warning('Pool %s has no identity yet: %s', pool.name, error)

    def check(self, pool: Pool) -> None:
        """Raise StorageUnavailable if a disk belongs elsewhere meanwhile."""
        disk = self._disk(pool)
        if disk.identity is None:
            self._claim(pool)
        else:
            self.registry.check(disk, _holder(pool))

    def is_replaced(self, pool: Pool) -> bool:
        """Return whether the pool is on another disk than at the start."""
        number = self._numbers.get(pool.name)
        try:
            return number not in (None, os.statvfs(pool.top).f_fsid)
        except OSError:
            return False  # it fails, and is the same

    def is_claimed(self, pool: Pool) -> bool:
        """Return whether the back end, in any process, uses the disk.

        An earlier release has recorded none.
        """
        known = (records.find(self._record) or {}).get(pool.name)
        try:
            return known in (None, kernel.file_system_id(pool.top))
        except OSError:
            return True  # it fails, and so will requests

    def _disk(self, pool: Pool) -> statistics.Disk:
        return statistics.Disk(
            pool.name,
            disk_identity.find(_file(pool)),
            kernel.file_system_id(pool.top),
            disk_identity.location(pool.top, self._sources.get(pool.name, pool.top)),
        )


def _file(pool: Pool) -> pathlib.Path:
    return pool.top / 'identity'


def _holder(pool: Pool) -> statistics.Holds:
    return lambda id, name: pool.catalog.find(Kind.SHARE, name) is not None


_RECORD = 'owner.json'
_DAEMONS = ('supervisor', 'server', 'smbd')


@contextlib.contextmanager
def claimed(pools: Iterable[Pool], root: pathlib.Path) -> Iterator[None]:
    """Own pools; the daemons of the back end are started in the block.

    Raises BadConfiguration if another back end uses one of them. Pools
    that were mounted before that are unmounted.
    """
    with contextlib.ExitStack() as stack:
        # All back ends lock them in the same order.
        pools = sorted(pools, key=lambda pool: pool.top.stat().st_dev)
        for pool in pools:
            stack.enter_context(file_locks.locked(pool.top, _opened))
        foreign = [pool for pool in pools if _owner(pool) != root]
        try:
            for pool in foreign:
                _require_free(pool)
        except exception.BadConfiguration:
            for pool in foreign:
                if pool.top.is_relative_to(root):
                    kernel.unmount(pool.top)
            raise
        for pool in foreign:
            _record(pool, root)
        yield


def _record(pool: Pool, root: pathlib.Path) -> None:
    file = pool.top / _RECORD
    try:
        records.write(file, {'root': str(root)}, durable=True)
    except OSError as error:
        # The clients of a full or read-only pool are served, so that they can
        # delete or read what is there.
        LOG.warning('Pool %s: %s', pool.name, error)
        with contextlib.suppress(OSError):
            for part in pool.top.glob(f'{_RECORD}.*'):
                part.unlink(missing_ok=True)


def _owner(pool: Pool) -> pathlib.Path | None:
    try:
        record = records.find(pool.top / _RECORD)
    except OSError as error:
        LOG.warning('Pool %s: %s', pool.name, error)
        return None
    return pathlib.Path(record['root']) if record else None


def _require_free(pool: Pool) -> None:
    owner = _owner(pool)
    if owner is not None and _is_running(owner):
        raise exception.BadConfiguration(
            reason=f'pool {pool.name} is used by the back end with the '
            f'btrfs_root {owner}; to end that one, use '
            f'"manila-lite-manage storage stop --root {owner}"'
        )


def _opened(top: pathlib.Path) -> int:
    return os.open(top, os.O_RDONLY | os.O_DIRECTORY)


def _is_running(root: pathlib.Path) -> bool:
    """Return whether a daemon of a back end runs on this machine."""
    return any(
        processes.is_running(folder / f'{daemon}.json')
        for folder in (root / 'nfs', *root.glob('servers/*/nfs'))
        for daemon in _DAEMONS
    )
