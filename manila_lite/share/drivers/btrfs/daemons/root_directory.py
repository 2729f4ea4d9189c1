"""The directory of a back end, `btrfs_root`, which belongs to root.

Other services, which have no capabilities, may run as the same user as the
share service. They cannot change the configuration of the servers in this
directory: the share service itself enters it by CAP_DAC_OVERRIDE.

A reserve of space in it is for what the supervisor and daemons write to start.
The supervisor releases it when the file system is full, and the share service
reserves it again when there is room. The supervisor imports this module.
"""

from collections.abc import Callable
import contextlib
import os
import pathlib
import stat

from oslo_log import log

from manila_lite import exception
from manila_lite.share.drivers import records
from manila_lite.share.drivers.space import is_out_of_space

LOG = log.getLogger(__name__)

_OTHERS = stat.S_IWGRP | stat.S_IWOTH
_TRIAL = 'trial'
_BLOCK = 4096


def prepare(path: pathlib.Path) -> None:
    """Create the directory and those above it; let only root enter it."""
    for folder in reversed(path.parents):
        with contextlib.suppress(FileExistsError):
            folder.mkdir(mode=stat.S_IRWXU | stat.S_IXGRP | stat.S_IXOTH)
            os.chown(folder, 0, 0)
    path.mkdir(mode=stat.S_IRWXU, exist_ok=True)
    os.chown(path, 0, 0)
    path.chmod(stat.S_IRWXU)
    for folder in path.parents:
        if _is_changed_by_others(folder):
            LOG.warning(
                'Users other than root can replace %(path)s, since they can '
                'write to %(folder)s; move it to a directory of root',
                {'path': path, 'folder': folder},
            )


def _is_changed_by_others(folder: pathlib.Path) -> bool:
    found = folder.stat()
    return found.st_uid != 0 or bool(
        found.st_mode & _OTHERS and not found.st_mode & stat.S_ISVTX
    )


def require_writable(path: pathlib.Path) -> None:
    """Raise FileSystemUnusable if nothing can be written to the directory.

    Access to the servers could not be changed then.
    """
    file = path / _TRIAL
    try:
        keep_reserve(path)
        records.write_text(file, ' ' * _BLOCK)
        file.unlink(missing_ok=True)
    except OSError as error:
        raise unwritable(path, error) from error


def unwritable(path: pathlib.Path, error: OSError) -> exception.FileSystemUnusable:
    """Return an error that names the file system that cannot be written."""
    return exception.FileSystemUnusable(
        reason=f'the file system of btrfs_root, {path}, cannot be written: '
        f'{error.filename or path}: {error.strerror or error}'
    )


def has_failed(path: pathlib.Path, error: OSError) -> bool:
    """Return whether an error is one of the directory, not of a pool.

    Pools and their volumes are mounted below it.
    """
    if not isinstance(error.filename, str):
        return False
    file = pathlib.Path(error.filename)
    if not file.is_relative_to(path):
        return False
    parts = file.relative_to(path).parts
    return parts[:1] != ('pools',) and 'mounts' not in parts


_NAME = 'reserve'
_SIZE = 1 << 20


def keep_reserve(root: pathlib.Path) -> None:
    """Reserve the space, unless it is; raises OSError if there is none."""
    file = root / _NAME
    if file.exists():
        return
    new = root / f'{_NAME}.new'
    try:
        with new.open('wb') as content:
            os.posix_fallocate(content.fileno(), 0, _SIZE)
    except OSError as error:
        new.unlink(missing_ok=True)
        raise OSError(error.errno, error.strerror, str(file)) from error
    with contextlib.suppress(FileNotFoundError):  # another process has it
        new.replace(file)


def use_reserve(root: pathlib.Path, write: Callable[[], None]) -> None:
    """Call a function that writes; release the space if there is no other."""
    try:
        write()
    except OSError as error:
        if not is_out_of_space(error) or not _release(root):
            raise
        LOG.error('The reserve in %s is given up: %s', root, error)
        write()


def _release(root: pathlib.Path) -> bool:
    """Release the space; return whether there was some."""
    try:
        (root / _NAME).unlink()
    except FileNotFoundError:
        return False
    return True
