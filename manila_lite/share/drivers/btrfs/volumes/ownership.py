"""Which back end uses a pool.

    top/owner.json      the `btrfs_root` of the one that was started last

Two would remove what the other one creates. A pool may be moved to another
machine, and a back end to another `btrfs_root`: the former owner counts only
while its daemons run here.
"""

from collections.abc import Iterable, Iterator
import contextlib
import os
import pathlib

from oslo_log import log

from manila_lite import exception
from manila_lite.share.drivers import file_locks, records
from manila_lite.share.drivers.btrfs import kernel
from manila_lite.share.drivers.btrfs.daemons import processes
from manila_lite.share.drivers.btrfs.volumes.pool import Pool

LOG = log.getLogger(__name__)

_RECORD = 'owner.json'
_DAEMONS = ('supervisor', 'server', 'smbd')


@contextlib.contextmanager
def claimed(pools: Iterable[Pool], root: pathlib.Path) -> Iterator[None]:
    """Own pools; the daemons of the back end are started in the block.

    Raises BadConfiguration if another back end uses one of them. Pools
    that were mounted before that are unmounted.
    """
    with contextlib.ExitStack() as stack:
        # All back ends lock them in the same order.
        pools = sorted(pools, key=lambda pool: pool.top.stat().st_dev)
        for pool in pools:
            stack.enter_context(file_locks.locked(pool.top, _opened))
        foreign = [pool for pool in pools if _owner(pool) != root]
        try:
            for pool in foreign:
                _require_free(pool)
        except exception.BadConfiguration:
            for pool in foreign:
                if pool.top.is_relative_to(root):
                    kernel.unmount(pool.top)
            raise
        for pool in foreign:
            _record(pool, root)
        yield


def _record(pool: Pool, root: pathlib.Path) -> None:
    file = pool.top / _RECORD
    try:
        records.write(file, {'root': str(root)}, durable=True)
    except OSError as error:
        # The clients of a full or read-only pool are served, so that they can
        # delete or read what is there.
        LOG.warning('Pool %s: %s', pool.name, error)
        with contextlib.suppress(OSError):
            for part in pool.top.glob(f'{_RECORD}.*'):
                part.unlink(missing_ok=True)


def _owner(pool: Pool) -> pathlib.Path | None:
    try:
        record = records.find(pool.top / _RECORD)
    except OSError as error:
        LOG.warning('Pool %s: %s', pool.name, error)
        return None
    return pathlib.Path(record['root']) if record else None


def _require_free(pool: Pool) -> None:
    owner = _owner(pool)
    if owner is not None and _is_running(owner):
        raise exception.BadConfiguration(
            reason=f'pool {pool.name} is used by the back end with the '
            f'btrfs_root {owner}; to end that one, use '
            f'"manila-lite-manage storage stop --root {owner}"'
        )


def _opened(top: pathlib.Path) -> int:
    return os.open(top, os.O_RDONLY | os.O_DIRECTORY)


def _is_running(root: pathlib.Path) -> bool:
    """Return whether a daemon of a back end runs on this machine."""
    return any(
        processes.is_running(folder / f'{daemon}.json')
        for folder in (root / 'nfs', *root.glob('servers/*/nfs'))
        for daemon in _DAEMONS
    )
