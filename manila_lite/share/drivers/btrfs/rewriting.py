"""Give a volume the content of a snapshot while clients have it mounted.

The volume itself remains, and with it the handle that a client has of its
root. The files share their blocks with the snapshot.
"""

import contextlib
import os

from manila_lite.share.drivers.btrfs.catalog import Kind
from manila_lite.share.drivers.btrfs.pool import Pool
from manila_lite.share.drivers.local import trees


def rewrite(pool: Pool, volume: str, snapshot: str) -> None:
    """Replace the content of a volume and its size.

    An interrupted call is completed by another one.
    """
    target = pool.path(Kind.SHARE, volume)
    source = pool.path(Kind.SNAPSHOT, snapshot)
    pool.remove_limit(volume)
    for name in os.listdir(target):
        path = target / name
        with contextlib.suppress(FileNotFoundError):
            if path.is_dir() and not path.is_symlink():
                trees.remove_tree(path)
            else:
                path.unlink()
    trees.fill_tree(source, target)
    trees.copy_attributes(source, target)
    pool.resize(volume, pool.size_gib(Kind.SNAPSHOT, snapshot))
