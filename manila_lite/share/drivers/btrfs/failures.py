"""Errors of files as errors of a back end, and those that recur in the log."""

from collections.abc import Callable, Hashable
import errno
import logging
import pathlib
import time

from manila_lite import exception
from manila_lite.share.drivers.btrfs.daemons import root_directory
from manila_lite.share.drivers.space import is_out_of_space

_UNUSABLE = (errno.EROFS, errno.EIO, errno.ENOTCONN)


def text_of(error: OSError, path: pathlib.Path) -> str:
    """Return a text that names what has failed."""
    return f'{error.filename or path}: {error.strerror or error}'


def explained(error: OSError, root: pathlib.Path) -> exception.DriverError:
    """Return an error of the back end that says what has failed.

    A file system that is full, read-only or broken is not available: the
    same call may succeed later.
    """
    if root_directory.has_failed(root, error):
        return root_directory.unwritable(root, error)
    text = text_of(error, root)
    if is_out_of_space(error) or error.errno in _UNUSABLE:
        return exception.FileSystemUnusable(reason=text)
    return exception.ShareBackendException(msg=text)


def joined(problems: list[exception.DriverError]) -> exception.DriverError:
    """Return an error that names all pools that cannot be used."""
    reasons = [
        str(problem.params['reason'])
        for problem in problems
        if isinstance(problem, exception.StorageUnavailable)
    ]
    if len(reasons) < len(problems):
        return problems[0]
    return exception.StorageUnavailable(reason='; '.join(reasons))


def of_pool(name: str, error: Exception) -> exception.DriverError:
    """Return an error that names the pool that cannot be used."""
    if isinstance(error, exception.DriverError):
        return error
    return exception.StorageUnavailable(reason=f'pool {name}: {error}')


_INTERVAL = 600.0
"""Seconds before an error that recurs is logged again."""


class LimitedLog:
    """The errors of one part of a process, by what they concern."""

    def __init__(
        self, log: logging.Logger, clock: Callable[[], float] = time.monotonic
    ):
        self._log = log
        self._clock = clock
        self._logged: dict[str, dict[Hashable, float]] = {}

    def error(self, subject: str, error: Exception) -> None:
        """Log an error unless one of its kind was logged a short time ago.

        The text of an error is not compared: it may have names of files that
        never occur again.
        """
        logged = self._logged.setdefault(subject, {})
        kind = (type(error), getattr(error, 'errno', None))
        now = self._clock()
        if now >= logged.get(kind, now):
            logged[kind] = now + _INTERVAL
            is_expected = isinstance(error, OSError)
            self._log.error(
                '%s: %s', subject, error, exc_info=None if is_expected else error
            )

    def forget(self, subject: str) -> None:
        """Record that a subject works again: its next error is logged."""
        self._logged.pop(subject, None)
