"""Shares that no client may use, because they move to another pool.

How they were exported is in the record of the move, so that it can be
restored after any interruption.
"""

from collections.abc import Callable

from manila_lite import exception
from manila_lite.share.drivers.btrfs.backend import BtrfsBackend
from manila_lite.share.drivers.btrfs.catalog import Kind
from manila_lite.share.drivers.btrfs.volumes.pool import Pool

_CLOSED = 'closed'
_MOST_ROUNDS = 5


def is_closed(pool: Pool, name: str) -> bool:
    """Return whether a share is closed to clients."""
    return _CLOSED in (pool.catalog.leaving.find(name) or {})


def close(backend: BtrfsBackend, name: str) -> None:
    """Admit no client, and wait until writes in progress have ended.

    The caller has locked the share, which has a record of its move.
    """
    pool, record = backend.get_share(name)
    if not is_closed(pool, name):
        leaving = pool.catalog.leaving.find(name) or {}
        text = backend.exports.listed(Kind.SHARE, record)
        pool.catalog.leaving.put(name, leaving | {_CLOSED: text})
    backend.exports.close(Kind.SHARE, record)


def reopen(backend: BtrfsBackend, name: str) -> None:
    """Admit the same clients as before; does nothing to a share that is open."""
    pool, record = backend.get_share(name)
    leaving = pool.catalog.leaving.find(name) or {}
    if _CLOSED not in leaving:
        return
    text = leaving.pop(_CLOSED)
    # First: what is written from now on must be sent by another attempt.
    pool.catalog.leaving.put(name, leaving)
    if text is not None and pool.has(Kind.SHARE, record['volume']):
        path = pool.path(Kind.SHARE, record['volume'])
        backend.exports.reopen(Kind.SHARE, record, path, text)


def forget(pool: Pool, name: str) -> None:
    """Forget how a share was exported; the caller exports it."""
    leaving = pool.catalog.leaving.find(name) or {}
    if leaving.pop(_CLOSED, leaving) is not leaving:
        pool.catalog.leaving.put(name, leaving)


def send_all(name: str, send: Callable[[], bool]) -> None:
    """Send changes of a closed share until there are none.

    `send` returns whether there was something. An SMB server may go on to
    write what a client had sent before it lost the share.
    """
    for _ in range(_MOST_ROUNDS):
        if not send():
            return
    raise exception.ShareBackendException(
        msg=f'{name} goes on changing, although no client can reach it'
    )
