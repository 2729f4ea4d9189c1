"""Export locations of snapshot instances, for managers and views."""

from collections.abc import Collection
import typing

import sqlalchemy as sa

from manila_lite.db.rows import SnapshotExportLocationRow
from manila_lite.db.session import Session
from manila_lite.db.tables import (
    INSTANCE as SHARE_INSTANCE,
    SNAPSHOT_EXPORT as EXPORT,
    SNAPSHOT_INSTANCE as INSTANCE,
)
from manila_lite.states.share_replica import ReplicaState
from manila_lite.states.snapshot_instance import SnapshotStatus

_OF_INSTANCE = (
    sa.select(EXPORT)
    .where(EXPORT.c.share_snapshot_instance_id == sa.bindparam('of_instance'))
    .order_by(EXPORT.c.created_at, EXPORT.c.path)
)
_OF_SNAPSHOT = (
    sa.select(EXPORT, INSTANCE.c.status, SHARE_INSTANCE.c.replica_state)
    .select_from(EXPORT.join(INSTANCE).join(SHARE_INSTANCE))
    .where(INSTANCE.c.snapshot_id == sa.bindparam('of_snapshot'))
    .order_by(EXPORT.c.created_at, EXPORT.c.path)
)
_INSERT = sa.insert(EXPORT)
_REMOVE = sa.delete(EXPORT).where(EXPORT.c.id.in_(sa.bindparam('ids', expanding=True)))


def list_for_instance(
    session: Session, snapshot_instance_id: str
) -> typing.Sequence[SnapshotExportLocationRow]:
    return session.rows(_OF_INSTANCE, of_instance=snapshot_instance_id)


def list_for_snapshot(
    session: Session, snapshot_id: str, *, every_instance: bool
) -> list[SnapshotExportLocationRow]:
    """Return the export locations of a snapshot.

    Without `every_instance` they are those that users can mount: of
    available instances, for a replicated share only on the active replica.
    """
    return [
        row
        for row in session.rows(_OF_SNAPSHOT, of_snapshot=snapshot_id)
        if every_instance
        or (
            row.status == SnapshotStatus.AVAILABLE
            and row.replica_state in (None, ReplicaState.ACTIVE)
        )
    ]


def replace(
    session: Session,
    snapshot_instance_id: str,
    locations: Collection[typing.Mapping[str, typing.Any]],
) -> None:
    """Replace the export locations of an instance.

    A location has path and is_admin_only, as `drivers.base` completes the
    reply of a driver. A location that exists already keeps its id.
    """
    known = {row.path: row for row in list_for_instance(session, snapshot_instance_id)}
    wanted = {location['path']: location for location in locations}
    gone = [
        row.id
        for path, row in known.items()
        if path not in wanted or row.is_admin_only != wanted[path]['is_admin_only']
    ]
    if gone:
        session.run(_REMOVE, ids=sorted(gone))
    session.run_many(
        _INSERT,
        [
            {
                'id': session.new_id(),
                'path': path,
                'share_snapshot_instance_id': snapshot_instance_id,
                'is_admin_only': location['is_admin_only'],
                'created_at': session.now,
                'updated_at': session.now,
            }
            for path, location in wanted.items()
            if path not in known or known[path].id in gone
        ],
    )
