"""Space in `btrfs_root` for the files that a daemon needs to start.

The supervisor gives it up if the file system is full, and the share service
takes it again when there is room. The supervisor imports this module.
"""

import contextlib
import os
import pathlib

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


def release(root: pathlib.Path) -> bool:
    """Give up the space; return whether there was some."""
    try:
        (root / _NAME).unlink()
    except FileNotFoundError:
        return False
    return True
