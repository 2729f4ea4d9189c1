"""The disk of a pool, which fails when a test says so."""

import contextlib
import fcntl
import os
import pathlib
import struct
import subprocess

_SET_STATUS, _GET_STATUS = 0x4C04, 0x4C05
_STATUS_SIZE, _SIZE_LIMIT = 232, 32
_BEGINNING = 4096
_DROP_ALL = '3'


class FailingDisk:
    """The loop device of an image that is mounted.

    The kernel refuses what is beyond the end of a device with an I/O error,
    as it does once a disk is gone.
    """

    def __init__(self, image: pathlib.Path):
        self._image = image
        self._device: int | None = None

    def fail(self) -> None:
        """Fail all that is read and written, but what is in memory."""
        self._limit(_BEGINNING)

    def break_file_system(self, top: pathlib.Path) -> None:
        """Fail, and let the file system notice that by a write."""
        self.fail()
        descriptor = os.open(top, os.O_RDONLY)
        with contextlib.suppress(OSError):
            os.utime(top)
            os.fsync(descriptor)
        os.close(descriptor)

    def fail_and_forget(self, top: pathlib.Path) -> None:
        """Do the same, and let nothing that is on disk be in memory."""
        self.break_file_system(top)
        pathlib.Path('/proc/sys/vm/drop_caches').write_text(_DROP_ALL)

    def heal(self) -> None:
        """Let it work again, if it has failed."""
        if self._device is not None:
            self._limit(0)
            os.close(self._device)
            self._device = None

    def is_in_use(self) -> bool:
        """Return whether the image has a device, as while it is mounted."""
        return bool(self._path())

    def _limit(self, size: int) -> None:
        if self._device is None:
            # While it is open, no other one takes its place.
            self._device = os.open(self._path(), os.O_RDWR)
        status = bytearray(_STATUS_SIZE)
        fcntl.ioctl(self._device, _GET_STATUS, status, True)
        struct.pack_into('<Q', status, _SIZE_LIMIT, size)
        fcntl.ioctl(self._device, _SET_STATUS, status, True)

    def _path(self) -> str:
        return subprocess.run(
            ['losetup', '--associated', self._image, '--noheadings']
            + ['--output', 'NAME'],
            check=True,
            capture_output=True,
            text=True,
        ).stdout.strip()
