"""Snapshots as sources of new shares."""

import sqlalchemy as sa

from manila_lite import exception
from manila_lite.db.queries.columns import columns
from manila_lite.db.queries.snapshots.snapshots import displayed_status
from manila_lite.db.rows import CloneSourceRow
from manila_lite.db.session import Session
from manila_lite.db.tables import (
    INSTANCE as PARENT_INSTANCE,
    SHARE as PARENT,
    SNAPSHOT,
    SNAPSHOT_INSTANCE,
    ZONE,
)
from manila_lite.states.share_instance import InstanceStatus
from manila_lite.states.share_replica import ReplicaState
from manila_lite.states.snapshot_instance import SnapshotStatus

_CREATING = (InstanceStatus.CREATING, InstanceStatus.CREATING_FROM_SNAPSHOT)

_LOCK_SHARED = (
    sa.select(
        *columns(
            CloneSourceRow,
            PARENT_INSTANCE,
            SNAPSHOT,
            PARENT,
            instance_id=SNAPSHOT_INSTANCE.c.id,
            parent_created_at=PARENT_INSTANCE.c.created_at,
            availability_zone=ZONE.c.name,
            id=SNAPSHOT.c.id,
            status=SNAPSHOT_INSTANCE.c.status,
        )
    )
    .select_from(
        SNAPSHOT_INSTANCE.join(SNAPSHOT)
        .join(
            PARENT_INSTANCE,
            PARENT_INSTANCE.c.id == SNAPSHOT_INSTANCE.c.share_instance_id,
        )
        .join(PARENT, PARENT.c.id == PARENT_INSTANCE.c.share_id)
        .outerjoin(ZONE, ZONE.c.id == PARENT_INSTANCE.c.availability_zone_id)
    )
    .where(SNAPSHOT.c.id == sa.bindparam('snapshot_id'))
    .order_by(SNAPSHOT_INSTANCE.c.id)
    .with_for_update(read=True, of=SNAPSHOT_INSTANCE)
)
_CLONE = (
    sa.select(PARENT.c.id)
    .select_from(PARENT.join(PARENT_INSTANCE))
    .where(
        PARENT.c.snapshot_id == sa.bindparam('of_snapshot'),
        PARENT_INSTANCE.c.status.in_(_CREATING),
    )
    .limit(1)
)
_LOCATED = (
    sa.select(SNAPSHOT_INSTANCE.c.id)
    .join(SNAPSHOT)
    .where(
        SNAPSHOT.c.share_id == sa.bindparam('of_share'),
        SNAPSHOT_INSTANCE.c.provider_location == sa.bindparam('location'),
        SNAPSHOT_INSTANCE.c.id != sa.bindparam('except_id'),
    )
    .limit(1)
)


def lock_source_shared(session: Session, snapshot_id: str) -> CloneSourceRow:
    """Lock the instances of a snapshot (shared); return the one to clone.

    The lock makes a request that removes the snapshot, and moves it first,
    see the new share. The result is the instance on the active replica if
    there are several; if the snapshot is not available, an instance with
    the status it is shown with. Raises ShareSnapshotNotFound.
    """
    found = session.rows(_LOCK_SHARED, snapshot_id=snapshot_id)
    if not found:
        raise exception.ShareSnapshotNotFound(snapshot_id=snapshot_id)
    status = displayed_status(found)
    if status != SnapshotStatus.AVAILABLE:
        return next(row for row in found if row.status == status)
    fit = [row for row in found if row.replica_state in (None, ReplicaState.ACTIVE)]
    if not fit:
        raise exception.InvalidShareSnapshot(
            reason=f'no active replica has snapshot {snapshot_id}'
        )
    return min(fit, key=lambda row: row.parent_created_at)


def check_not_being_cloned(session: Session, snapshot_id: str) -> None:
    """Raise InvalidShareSnapshot while a share is being created from it.

    Call it after the move that removes the snapshot and in the same
    transaction, so that no share can be created in between.
    """
    if session.value(_CLONE, of_snapshot=snapshot_id) is not None:
        raise exception.InvalidShareSnapshot(
            reason=f'a share is being created from snapshot {snapshot_id}'
        )


def is_location_in_use(
    session: Session, share_id: str, provider_location: str | None, except_id: str = ''
) -> bool:
    """Whether another snapshot of the share has this location."""
    return (
        session.value(
            _LOCATED, of_share=share_id, except_id=except_id, location=provider_location
        )
        is not None
    )
