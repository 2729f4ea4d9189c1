"""Give a volume the content of a snapshot while clients have it mounted.

The volume itself remains, and with it the handle that a client has of its
root. The files share their blocks with the snapshot.
"""

import contextlib

from manila_lite.share.drivers import tree_removal
from manila_lite.share.drivers import trees
from manila_lite.share.drivers.btrfs.catalog import Kind
from manila_lite.share.drivers.btrfs.pool import Pool

_METADATA = 64 << 20


def rewrite(pool: Pool, volume: str, snapshot: str, limit: int) -> None:
    """Replace the content of a volume and its size.

    `limit` is what it may hold if that fails. Meanwhile it may hold both
    contents: what is removed counts for a while, as do files that clients
    have open. An interrupted call is completed by another one.
    """
    target = pool.path(Kind.SHARE, volume)
    source = pool.path(Kind.SNAPSHOT, snapshot)
    both = limit + pool.limit_bytes(Kind.SNAPSHOT, snapshot) + _METADATA
    try:
        pool.set_limit_bytes(volume, both)
        with trees.opened_directory(target) as directory:
            tree_removal.empty_directory(directory)
        trees.fill_tree(source, target)
        trees.copy_attributes(source, target)
        pool.resize(volume, pool.size_gib(Kind.SNAPSHOT, snapshot))
    except BaseException:
        with contextlib.suppress(OSError):
            pool.set_limit_bytes(volume, limit)
        raise
