"""Give a volume the content of a snapshot while clients have it mounted.

The volume itself remains, and with it the handle that a client has of its
root. The files share their blocks with the snapshot.
"""

from manila_lite.share.drivers import tree_removal
from manila_lite.share.drivers import trees
from manila_lite.share.drivers.btrfs.catalog import Kind
from manila_lite.share.drivers.btrfs.pool import Pool


def rewrite(pool: Pool, volume: str, snapshot: str) -> None:
    """Replace the content of a volume and its size.

    An interrupted call is completed by another one.
    """
    target = pool.path(Kind.SHARE, volume)
    source = pool.path(Kind.SNAPSHOT, snapshot)
    pool.remove_limit(volume)
    with trees.opened_directory(target) as directory:
        tree_removal.empty_directory(directory)
    trees.fill_tree(source, target)
    trees.copy_attributes(source, target)
    pool.resize(volume, pool.size_gib(Kind.SNAPSHOT, snapshot))
