"""Print the size of a share and what is free in it, for smbd.

    python -m manila_lite.share.drivers.btrfs.free_space PATH

Both are in KiB. smbd itself would show clients those of the whole pool.
"""

import errno
import os
import pathlib
import sys

from manila_lite.share.drivers.btrfs import kernel


def free_space(path: pathlib.Path) -> tuple[int, int]:
    """Return the size of the share with a path, and what is free.

    Raises NotADirectoryError if the path is in no share, as that of a pool
    that is not mounted.
    """
    path = top = path.resolve()
    while path.stat().st_ino != kernel.SUBVOLUME_INODE:
        if path == path.parent:
            raise NotADirectoryError(errno.ENOTDIR, 'not in a subvolume', str(top))
        path = path.parent
    disk = os.statvfs(path)
    free = disk.f_bavail * disk.f_frsize
    # <pool>/shares/<volume>
    subvolume = kernel.subvolume_id(path)
    size = kernel.sizes(path.parent.parent, subvolume)[subvolume]
    if not size.limit:
        return disk.f_blocks * disk.f_frsize, free
    return size.limit, max(0, min(size.limit - size.used, free))


if __name__ == '__main__':
    print(*(number >> 10 for number in free_space(pathlib.Path(sys.argv[1]))))
