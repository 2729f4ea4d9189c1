"""Errors of files as errors of a back end."""

import errno
import pathlib

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
