"""Limits and flags of volumes that somebody else has changed or removed.

`btrfs quota disable` removes all limits of a pool. They are enabled again,
and each volume gets the limit of its record. Shares can be written, unless
they are replicas that follow others; snapshots cannot.
"""

from collections.abc import Callable
import typing

from oslo_log import log

from manila_lite.share.drivers.btrfs.catalog import Kind
from manila_lite.share.drivers.btrfs.volumes.limits import Volume
from manila_lite.share.drivers.btrfs.volumes.pool import Pool
from manila_lite.share.drivers.file_locks import Locks
from manila_lite.share.drivers.files.replicas import Role

LOG = log.getLogger(__name__)

Result = typing.TypeVar('Result')


def restore_limits(pool: Pool, locks: Locks, *, is_trusted: bool = True) -> None:
    """Give the volumes of a pool the limits of their records.

    A volume that is being changed is left to the next call, as is one for
    which that fails. The records are not trusted at the start: a release that
    does not know them may have changed sizes. Then only lost limits are
    restored, and the others are recorded.
    """
    if pool.enable_quota():
        LOG.error('The quotas of pool %s were off: they are enabled again', pool.name)
    restored = [
        found.name
        for found in pool.differing_limits()
        if _is_restored(pool, locks, found, is_trusted)
    ]
    if restored:
        pool.commit()
        LOG.error(
            'The limits of %(count)d shares and snapshots in pool %(pool)s '
            'were not those of their records, and are restored: %(names)s',
            {'count': len(restored), 'pool': pool.name, 'names': ', '.join(restored)},
        )


def _is_restored(pool: Pool, locks: Locks, found: Volume, is_trusted: bool) -> bool:
    """Restore the limit of a volume; return whether it differed."""
    size = _unless_changing(
        pool,
        locks,
        found,
        lambda: pool.restore_limit(found.kind, found.volume, is_trusted=is_trusted),
        'does not have its limit',
    )
    if size is not None and size.used > size.limit:
        LOG.error(
            '%(name)s in pool %(pool)s holds %(used)d bytes, more than its '
            'limit of %(limit)d: clients can only remove files',
            {'name': found.name, 'pool': pool.name, **size._asdict()},
        )
    return size is not None


def restore_properties(pool: Pool, locks: Locks) -> None:
    """Let only root enter a pool, and make its snapshots read-only.

    Shares that cannot be written can be again.
    """
    if pool.protect():
        LOG.error(
            'Users other than root could enter pool %s: they no longer can', pool.name
        )
    restored = [
        found.name
        for found in pool.differing_flags()
        if _has_restored_flag(pool, locks, found)
    ]
    if restored:
        LOG.error(
            'Somebody has let snapshots in pool %(pool)s be written, or '
            'shares not: that is undone: %(names)s. The content of such a '
            'snapshot may have changed',
            {'pool': pool.name, 'names': ', '.join(restored)},
        )


def _has_restored_flag(pool: Pool, locks: Locks, found: Volume) -> bool:
    """Restore the flag of a volume; return whether it differed."""

    def restore() -> bool:
        if found.kind is Kind.SNAPSHOT:
            return pool.restore_flag(found.kind, found.volume, read_only=True)
        return _is_written_here(pool, found.name) and pool.restore_flag(
            found.kind, found.volume, read_only=False
        )

    return bool(
        _unless_changing(
            pool, locks, found, restore, 'may be written, or not, against its record'
        )
    )


def _is_written_here(pool: Pool, name: str) -> bool:
    """Return whether a share is not a replica that follows another one."""
    replica = pool.catalog.replicas.find(name)
    return replica is None or replica['role'] == Role.ACTIVE


def _unless_changing(
    pool: Pool, locks: Locks, found: Volume, restore: Callable[[], Result], problem: str
) -> Result | None:
    """Call a function, unless the volume is being changed; None if not."""
    with locks.try_locked(found.name) as is_locked:
        if not is_locked:
            return None
        try:
            return restore()
        except FileNotFoundError:
            return None  # it has just been removed
        except OSError as error:
            LOG.error(
                '%(name)s in pool %(pool)s %(problem)s: %(error)s',
                {
                    'name': found.name,
                    'pool': pool.name,
                    'problem': problem,
                    'error': error,
                },
            )
            return None
