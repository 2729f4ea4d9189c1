"""Volumes that are being removed, in the pool and beside the others.

The supervisor empties the trash. It imports little, to stay small.
"""

from collections.abc import Callable, Iterable
import contextlib
import errno
import logging
import os
import pathlib
import time
from typing import NamedTuple
import uuid

from manila_lite.share.drivers.btrfs import kernel
from manila_lite.share.drivers.btrfs.failures import LimitedLog

LOG = logging.getLogger(__name__)

_TRASH = '.trash-'
_FIRST_DELAY, _LONGEST_DELAY = 1.0, 60.0


def has_any(folders: Iterable[pathlib.Path]) -> bool:
    """Return whether something is to be removed from folders of volumes."""
    return any(
        name.startswith(_TRASH) for folder in folders for name in os.listdir(folder)
    )


def discard(path: pathlib.Path) -> None:
    """Move a volume to the trash; a missing one is success."""
    try:
        path.rename(path.with_name(f'{_TRASH}{uuid.uuid4().hex}'))
    except FileNotFoundError:
        return


class _Retry(NamedTuple):
    """When to try again, and how long to wait if that fails, too."""

    at: float
    delay: float


class Trash:
    """What is in the trash of folders of volumes."""

    def __init__(
        self,
        folders: Iterable[pathlib.Path],
        clock: Callable[[], float] = time.monotonic,
    ):
        self._folders = list(folders)
        self._clock = clock
        self._log = LimitedLog(LOG, clock)
        self._retries: dict[pathlib.Path, _Retry] = {}

    def empty(self) -> None:
        """Remove it; the kernel frees the space in the background.

        What cannot be removed is tried again after a while.
        """
        found = set()
        for folder in self._folders:
            with contextlib.suppress(OSError):  # not mounted now
                for name in os.listdir(folder):
                    if name.startswith(_TRASH):
                        found.add(folder / name)
        for path in self._retries.keys() - found:
            self._forget(path)
        for path in found:
            self._remove(path)

    def _remove(self, path: pathlib.Path) -> None:
        now = self._clock()
        retry = self._retries.get(path, _Retry(now, _FIRST_DELAY))
        if now < retry.at:
            return
        try:
            _destroy(path)
        except OSError as error:
            self._log.error(str(path), error)
            self._retries[path] = _Retry(
                now + retry.delay, min(2 * retry.delay, _LONGEST_DELAY)
            )
        else:
            self._forget(path)

    def _forget(self, path: pathlib.Path) -> None:
        self._log.forget(str(path))
        self._retries.pop(path, None)


def _destroy(path: pathlib.Path) -> None:
    try:
        kernel.destroy(path)
    except OSError as error:
        if error.errno != errno.ENOTEMPTY:
            raise
        # An administrator has created subvolumes in it.
        kernel.set_read_only(path, False)
        kernel.destroy_nested(path)
        kernel.destroy(path)
