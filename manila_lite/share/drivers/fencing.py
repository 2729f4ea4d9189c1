"""The fencing tokens that a back end has seen.

A file per resource has the largest value. It outlives the resource, so that
a late call does not create it again.
"""

import contextlib
import os
import pathlib

from manila_lite import exception
from manila_lite.context import FencingToken, current_fencing_token
from manila_lite.share.drivers import file_locks, records

KEEP_SECONDS = 7 * 86400
"""No worker is paused for longer, and then calls the driver."""

_FORGET_INTERVAL = 86400
_DIGITS = 20


class FencingTokens:
    """Refuses calls of workers that have lost their claim."""

    def __init__(self, path: pathlib.Path):
        self._path = path
        self._forgotten_at = 0.0

    def admit_call(self) -> None:
        """Record the token of the current call, durably.

        Raises StaleFencingToken after a call with a later one.
        """
        token = current_fencing_token()
        if token is None:
            return
        file = self._file(token.resource)
        with file_locks.locked(file, _opened) as descriptor:
            seen = _read(descriptor)
            _check(token, seen)
            if token.value > seen:
                _write(file, descriptor, token.value)
                if not seen:  # it may be new
                    records.sync_directory(file.parent)

    def check_call(self) -> None:
        """Raise StaleFencingToken if a later call came during this one.

        Before a change: the worker may have been paused since `admit_call`.
        """
        token = current_fencing_token()
        if token is None:
            return
        with contextlib.suppress(FileNotFoundError):
            descriptor = os.open(self._file(token.resource), os.O_RDONLY)
            try:
                _check(token, _read(descriptor))
            finally:
                os.close(descriptor)

    def forget_old(self, now: float) -> None:
        """Once a day, remove the tokens of workers that cannot exist."""
        if now - self._forgotten_at >= _FORGET_INTERVAL:
            self._forgotten_at = now
            self._forget(now - KEEP_SECONDS)

    def _forget(self, before: float) -> None:
        with contextlib.suppress(FileNotFoundError):
            for file in list(self._path.iterdir()):
                with contextlib.suppress(FileNotFoundError):
                    if file.stat().st_mtime < before:
                        _remove(file, before)

    def _file(self, resource: str) -> pathlib.Path:
        return self._path / records.checked_file_name(resource.replace(':', '.'))


def _opened(file: pathlib.Path) -> int:
    file.parent.mkdir(exist_ok=True)
    return file_locks.opened_file(file)


def _remove(file: pathlib.Path, before: float) -> None:
    """Remove a file unless a call has come meanwhile."""
    descriptor = file_locks.open_locked(
        file, lambda path: os.open(path, os.O_RDWR), wait=False
    )
    if descriptor is None:
        return
    try:
        if os.fstat(descriptor).st_mtime < before:
            file.unlink()
    finally:
        os.close(descriptor)


def _write(file: pathlib.Path, descriptor: int, value: int) -> None:
    try:
        # One sector, which is written as a whole.
        os.pwrite(descriptor, b'%0*d' % (_DIGITS, value), 0)
        os.fsync(descriptor)
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(file)) from error


def _read(descriptor: int) -> int:
    return int(os.pread(descriptor, _DIGITS, 0) or 0)


def _check(token: FencingToken, seen: int) -> None:
    if token.value < seen:
        raise exception.StaleFencingToken(resource=token.resource, seen=seen)
