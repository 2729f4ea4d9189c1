"""The directory of a back end, `btrfs_root`, which belongs to root.

The share service may be a user that other services are, too, which have no
capabilities. None of them can change in this directory what the servers are
told: the share service itself enters it by CAP_DAC_OVERRIDE.
"""

import contextlib
import os
import pathlib
import stat

from oslo_log import log

LOG = log.getLogger(__name__)

_OTHERS = stat.S_IWGRP | stat.S_IWOTH


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
