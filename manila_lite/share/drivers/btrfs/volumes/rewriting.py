"""Give a volume the content of a snapshot while clients have it mounted.

The volume itself remains, and with it the handle that a client has of its
root. The files share their blocks with the snapshot. Until it is complete, the
record of the share has the limit before, in bytes, in `limit_before`.
"""

import contextlib

from manila_lite.share.drivers import tree_removal, trees
from manila_lite.share.drivers.btrfs.catalog import Kind
from manila_lite.share.drivers.btrfs.volumes.pool import Pool
from manila_lite.share.drivers.records import Record

LIMIT = 'limit_before'
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


def limit_before(pool: Pool, record: Record) -> int:
    """Return the limit that a share had before it was reverted.

    An earlier version removed it, and left it so if it was interrupted.
    """
    limit = record.get(LIMIT) or pool.limit_bytes(Kind.SHARE, record['volume'])
    if not limit:
        source = pool.catalog.find(Kind.SNAPSHOT, record['reverting_to'])
        if source:
            limit = pool.limit_bytes(Kind.SNAPSHOT, source['volume'])
    return limit


def limit_interrupted(pool: Pool, name: str) -> None:
    """Limit a share as before its revert, if one was interrupted.

    The caller has locked it. Its size may be changed from then on.
    """
    record = pool.catalog.find(Kind.SHARE, name)
    if (
        record is None
        or 'reverting_to' not in record
        or not pool.has(Kind.SHARE, record['volume'])
    ):
        return
    pool.set_limit_bytes(record['volume'], limit_before(pool, record))
    if record.pop(LIMIT, None) is not None:
        pool.catalog.put(Kind.SHARE, name, record)
