"""Snapshot instances as administrators see them."""

from collections.abc import Sequence

import sqlalchemy as sa

from manila_lite import exception
from manila_lite.db.models import snapshots
from manila_lite.db.queries import pages
from manila_lite.db.rows import Page, SnapshotInstanceViewRow
from manila_lite.db.session import Session

SNAPSHOT = snapshots.Snapshot.__table__
INSTANCE = snapshots.SnapshotInstance.__table__

_SHOWN = sa.select(INSTANCE, SNAPSHOT.c.share_id).select_from(INSTANCE.join(SNAPSHOT))
_ONE = _SHOWN.where(INSTANCE.c.id == sa.bindparam('instance_id'))


def get(session: Session, instance_id: str) -> SnapshotInstanceViewRow:
    row = session.one(_ONE, instance_id=instance_id)
    if row is None:
        raise exception.SnapshotInstanceNotFound(snapshot_instance_id=instance_id)
    return row


def list_instances(
    session: Session, snapshot_id: str | None, page: Page
) -> Sequence[SnapshotInstanceViewRow]:
    """Return a page of all instances, or of those of a snapshot."""
    statement = _SHOWN
    if snapshot_id is not None:
        statement = statement.where(INSTANCE.c.snapshot_id == snapshot_id)
    return session.rows(pages.select_page(statement, page, INSTANCE))
