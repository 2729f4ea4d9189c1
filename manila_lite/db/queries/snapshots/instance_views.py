"""Snapshot instances as administrators see them."""

from collections.abc import Sequence

import sqlalchemy as sa

from manila_lite import exception
from manila_lite.db.models import snapshots
from manila_lite.db.rows import SnapshotInstanceViewRow
from manila_lite.db.session import Session

SNAPSHOT = snapshots.Snapshot.__table__
INSTANCE = snapshots.SnapshotInstance.__table__

_SHOWN = sa.select(INSTANCE, SNAPSHOT.c.share_id).select_from(
    INSTANCE.join(SNAPSHOT)
)
_ONE = _SHOWN.where(INSTANCE.c.id == sa.bindparam('instance_id'))
_ALL = _SHOWN.order_by(INSTANCE.c.created_at.desc(), INSTANCE.c.id.desc())
_OF_SNAPSHOT = _ALL.where(
    INSTANCE.c.snapshot_id == sa.bindparam('of_snapshot')
)


def get(session: Session, instance_id: str) -> SnapshotInstanceViewRow:
    row = session.one(_ONE, instance_id=instance_id)
    if row is None:
        raise exception.SnapshotInstanceNotFound(
            snapshot_instance_id=instance_id
        )
    return row


def list_instances(
    session: Session, snapshot_id: str | None
) -> Sequence[SnapshotInstanceViewRow]:
    """Return all instances, or those of a snapshot, newest first."""
    if snapshot_id is None:
        return session.rows(_ALL)
    return session.rows(_OF_SNAPSHOT, of_snapshot=snapshot_id)
