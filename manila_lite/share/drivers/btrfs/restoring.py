"""Limits of volumes that somebody else has changed or removed.

`btrfs quota disable` removes all limits of a pool. They are enabled again,
and each volume gets the limit of its record.
"""

from oslo_log import log

from manila_lite.share.drivers.btrfs.limits import Volume
from manila_lite.share.drivers.btrfs.locks import Locks
from manila_lite.share.drivers.btrfs.pool import Pool

LOG = log.getLogger(__name__)


def restore_limits(
    pool: Pool, locks: Locks, *, is_trusted: bool = True
) -> None:
    """Let the volumes of a pool have the limits of their records.

    A volume that is being changed is left to the next call, as is one for
    which that fails. The records are not trusted at the start: a release that
    does not know them may have changed sizes. Then only lost limits are
    restored, and the others are recorded.
    """
    if pool.enable_quota():
        LOG.error(
            'The quotas of pool %s were off: they are enabled again', pool.name
        )
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
            {
                'count': len(restored),
                'pool': pool.name,
                'names': ', '.join(restored),
            },
        )


def _is_restored(
    pool: Pool, locks: Locks, found: Volume, is_trusted: bool
) -> bool:
    """Restore the limit of a volume; return whether it was another one."""
    with locks.try_locked(found.name) as is_locked:
        if not is_locked:
            return False
        try:
            size = pool.restore_limit(
                found.kind, found.volume, is_trusted=is_trusted
            )
        except FileNotFoundError:
            return False  # it has just been removed
        except OSError as error:
            LOG.error(
                '%(name)s in pool %(pool)s does not have its limit: %(error)s',
                {'name': found.name, 'pool': pool.name, 'error': error},
            )
            return False
    if size is not None and size.used > size.limit:
        LOG.error(
            '%(name)s in pool %(pool)s holds %(used)d bytes, more than its '
            'limit of %(limit)d: clients can only remove files',
            {'name': found.name, 'pool': pool.name, **size._asdict()},
        )
    return size is not None
