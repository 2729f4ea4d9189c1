"""What a snapshot counts for, and its end in the books."""

import typing

from manila_lite.db.queries.snapshots import snapshots
from manila_lite.db.session import Session
from manila_lite.quota import charges
from manila_lite.quota.charges import Owner


def owner_of(snapshot: typing.Any) -> Owner:
    """Whose quota a snapshot counts against.

    `snapshot` is an instance as `driver_view.find_snapshot` reads it.
    """
    return Owner(snapshot.project_id, snapshot.user_id, snapshot.share_type_id)


def deltas_of(size: int) -> dict[str, int]:
    """What one snapshot of so many GiB uses, by resource.

    What is yet to be taken over, or could not be, has no size and counts
    for nothing.
    """
    return {'snapshots': 1, 'snapshot_gigabytes': size} if size else {}


def remove_and_credit(
    session: Session, instance: typing.Any, event: str = 'deleted'
) -> None:
    """Remove an instance by its last move, and what it counted for."""
    if snapshots.remove_instance(session, instance, event):
        charges.credit(session, owner_of(instance), deltas_of(instance.size))
