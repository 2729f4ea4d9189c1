"""Which disk a pool is on, whatever its device is called today.

    top/identity       a random id, see `disk_identity`
    root/disks.json    the file systems that the pools of a back end had when
                       it was started last, for other back ends

The file system has an id as well, which a copy of the file does not have.
"""

import os
import pathlib

from oslo_log import log

from manila_lite import exception
from manila_lite.share.drivers import disk_identity, records
from manila_lite.share.drivers.btrfs import kernel
from manila_lite.share.drivers.btrfs.catalog import Kind
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
