"""The fencing tokens that a local back end has seen.

A file per resource has the largest value. It outlives the resource, so that
a late call does not create it again.
"""

from collections.abc import Iterator
import contextlib
import fcntl
import os
import pathlib

from manila_lite import exception
from manila_lite.context import FencingToken
from manila_lite.context import current_fencing_token
from manila_lite.share.drivers import records

KEEP_SECONDS = 7 * 86400
"""No worker is paused for longer, and then calls the driver."""

_DIGITS = 20


class FencingTokens:
    """Refuses calls of workers that have lost their claim."""

    def __init__(self, path: pathlib.Path):
        self._path = path

    def admit_call(self) -> None:
        """Record the token of the current call, durably.

        Raises StaleFencingToken after a call with a later one.
        """
        token = current_fencing_token()
        if token is None:
            return
        with self._locked(token.resource) as descriptor:
            seen = _read(descriptor)
            _check(token, seen)
            if token.value > seen:
                # One sector, which is written as a whole.
                os.pwrite(descriptor, b'%0*d' % (_DIGITS, token.value), 0)
                os.fsync(descriptor)

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

    def forget(self, before: float) -> None:
        """Remove the tokens that were last seen before a time."""
        with contextlib.suppress(FileNotFoundError):
            for file in list(self._path.iterdir()):
                with contextlib.suppress(FileNotFoundError):
                    if file.stat().st_mtime < before:
                        file.unlink()

    def _file(self, resource: str) -> pathlib.Path:
        return self._path / records.checked_file_name(
            resource.replace(':', '.')
        )

    @contextlib.contextmanager
    def _locked(self, resource: str) -> Iterator[int]:
        """Open and lock the file of a resource; create it on demand."""
        file = self._file(resource)
        descriptor = _try_lock(file)
        while descriptor is None:
            descriptor = _try_lock(file)
        try:
            yield descriptor
        finally:
            os.close(descriptor)


def _try_lock(file: pathlib.Path) -> int | None:
    """Return the open, locked file; None if it was removed meanwhile."""
    is_new = not file.exists()
    file.parent.mkdir(exist_ok=True)
    descriptor = os.open(file, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        if is_new:
            records.sync_directory(file.parent)
        with contextlib.suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(descriptor), file.stat()):
                return descriptor
    except BaseException:
        os.close(descriptor)
        raise
    os.close(descriptor)
    return None


def _read(descriptor: int) -> int:
    return int(os.pread(descriptor, _DIGITS, 0) or 0)


def _check(token: FencingToken, seen: int) -> None:
    if token.value < seen:
        raise exception.StaleFencingToken(resource=token.resource, seen=seen)
