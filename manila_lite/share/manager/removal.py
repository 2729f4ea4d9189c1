"""Whether a share that a driver does not find may count as removed.

It was never there, or its removal began while the driver had it. Otherwise
it is somewhere else, perhaps on a disk that is not in its place, and the
request has failed.
"""

from collections.abc import Callable
import contextlib

from manila_lite import exception
from manila_lite.db.queries.shares import instances
from manila_lite.db.rows import InstanceRow
from manila_lite.share.drivers.base import (
    ShareDriver,
    ShareForDriver,
    ShareServerMapping,
)
from manila_lite.work.job import JobContext

_STEP = 'removing'


def was_never_made(row: InstanceRow) -> bool:
    """Return whether no driver has ever said that it has the share."""
    return row.launched_at is None


def require_share(
    driver: ShareDriver,
    row: InstanceRow,
    share: ShareForDriver,
    server: ShareServerMapping | None,
) -> None:
    """Raise ShareResourceNotFound if the back end lacks what it should have.

    A driver that cannot tell, or fails to, is asked nothing: what is done
    next will fail if it must.
    """
    if was_never_made(row) or row.removal_began_at is not None:
        return
    _has_share(driver, share, server)


def begin(
    job: JobContext,
    driver: ShareDriver,
    row: InstanceRow,
    share: ShareForDriver,
    server: ShareServerMapping | None,
) -> Callable[[], contextlib.AbstractContextManager[object]]:
    """Begin to remove a share; return the context for calls that do so.

    In it, a share that is not found is success. Raises ShareResourceNotFound
    if that would be a mistake.
    """
    if was_never_made(row) or row.removal_began_at is not None:
        return _suppressed
    if not _has_share(driver, share, server):
        return contextlib.nullcontext
    job.checkpoint(_STEP, instances.begin_removal, row.id)
    return _suppressed


def _suppressed() -> contextlib.AbstractContextManager[object]:
    return contextlib.suppress(exception.ShareResourceNotFound)


def _has_share(
    driver: ShareDriver, share: ShareForDriver, server: ShareServerMapping | None
) -> bool:
    """Return whether the driver has a share, False if it fails to say so.

    Drivers that cannot be asked say nothing when they do not find a share.
    """
    try:
        driver.get_share_status(share, server)
    except exception.ShareResourceNotFound:
        raise
    except NotImplementedError:
        return True
    except exception.DriverError:
        return False
    return True
