"""Space in `btrfs_root` for what the supervisor and daemons write to start.

The supervisor releases it when the file system is full, and the share service
reserves it again when there is room. The supervisor imports this module.
"""

from collections.abc import Callable
import contextlib
import logging
import os
import pathlib

from manila_lite.share.drivers.space import is_out_of_space

LOG = logging.getLogger(__name__)

_NAME = 'reserve'
_SIZE = 1 << 20


def keep(root: pathlib.Path) -> None:
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


def used_by(root: pathlib.Path, write: Callable[[], None]) -> None:
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
