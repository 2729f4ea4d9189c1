"""Whether the root is on the disk that holds the shares.

A file system that is not mounted leaves an empty directory, which looks like
a new root. So a file marks the root, and without it nothing is used: shares
would be created on the wrong disk, and those on the right one seem lost.
Another file says which disk it is: see `disk_identity`.
"""

import contextlib
import os
import pathlib

from oslo_log import log

from manila_lite import exception
from manila_lite.share.drivers import disk_identity
from manila_lite.share.drivers.contract.statistics import Disk, DiskRegistry, Holds
from manila_lite.share.drivers.space import is_out_of_space

LOG = log.getLogger(__name__)

MARKER = '.manila_lite'
IDENTITY = '.manila_lite_disk'

_TEXT = (
    'The share driver "local" of manila_lite keeps its shares here. Without '
    'this file it refuses to\nuse the directory, because its file system '
    'seems not to be mounted.\n'
)


class LocalDisk:
    """The marker of one root, and the disk that it was on at the start."""

    def __init__(self, root: pathlib.Path):
        self.root = root
        self.marker = root / MARKER
        self.identity_file = root / IDENTITY
        self._identity: str | None = None
        self._device: int | None = None

    def start(
        self, *, has_shares: bool, is_in_use: bool, registry: DiskRegistry, holds: Holds
    ) -> None:
        """Check marker and identity, or create them in a root that is new.

        `is_in_use` is whether the root has files of the driver: an earlier
        release created no marker. Raises StorageUnavailable if there ought
        to be one, or if the disk belongs elsewhere.
        """
        self._registry, self._holds = registry, holds
        is_marked = self.marker.exists()
        if not is_marked and has_shares and not is_in_use:
            raise self._unmarked()
        self._device = None
        registry.check(self._found(), holds)
        self.root.mkdir(parents=True, exist_ok=True)
        try:
            self._identity = disk_identity.claim(
                registry, self._found(), self.identity_file, holds
            )
        except OSError as error:
            if not is_out_of_space(error):
                raise
            # It has been checked, and is recorded at a later start.
            LOG.warning('%s has no identity yet: %s', self.root, error)
        if not is_marked:
            with (
                contextlib.suppress(FileExistsError),
                self.marker.open('x', encoding='utf-8') as file,
            ):
                file.write(_TEXT)
                file.flush()
                os.fsync(file.fileno())
        self._device = self.root.stat().st_dev

    def require(self) -> None:
        """Raise StorageUnavailable if the marker is not there."""
        if self._device is None:
            return  # not started yet
        try:
            self.marker.stat()
            found = disk_identity.find(self.identity_file)
        except FileNotFoundError as error:
            raise self._unmarked() from error
        except OSError as error:
            raise self._unavailable(error) from error
        if found != self._identity:
            raise exception.StorageUnavailable(
                reason=f'{self.root} is on another disk than before'
            )

    def _found(self) -> Disk:
        return Disk(
            None,
            disk_identity.find(self.identity_file),
            disk_identity.find_file_system(self.root),
            disk_identity.location(self.root),
        )

    def require_writable(self) -> None:
        """Raise StorageUnavailable if no file can be created.

        A full disk is not an error: files can be deleted.
        """
        self.require()
        self._registry.check(self._found(), self._holds)
        probe = self.root / 'work' / f'.probe-{os.getpid()}'
        try:
            probe.touch()
            probe.unlink(missing_ok=True)
        except OSError as error:
            if not is_out_of_space(error):
                raise self._unavailable(error) from error

    def is_deleted(self) -> bool:
        """Whether the root was deleted, and its disk is still there.

        If the disk is gone, the directory above is on another one.
        """
        if self._device is None or self.root.exists():
            return False
        above = next(path for path in self.root.parents if path.exists())
        return above.stat().st_dev == self._device

    def _unmarked(self) -> exception.StorageUnavailable:
        return exception.StorageUnavailable(
            reason=f'{self.root} has no file {MARKER}; is its file system '
            'mounted? If its shares are lost for good, say so with '
            '"manila-lite-manage storage declare-lost"'
        )

    def _unavailable(self, error: OSError) -> exception.StorageUnavailable:
        return exception.StorageUnavailable(
            reason=f'{self.root} cannot be used: {error.strerror}'
        )
