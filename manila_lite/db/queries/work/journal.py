"""What the journal says of resources: their last moves, and all of them."""

from collections.abc import Collection, Mapping, Sequence

import sqlalchemy as sa

from manila_lite.db.models import engine
from manila_lite.db.rows import MoveRow
from manila_lite.db.session import Session

JOURNAL = engine.Transition.__table__

Ids = Mapping[str, Collection[str]]
"""Ids of resources by the names of their state machines."""


def list_last_moves(session: Session, ids: Ids) -> dict[tuple[str, str], MoveRow]:
    """Return the last move of each resource that the journal has."""
    parts = [
        sa.select(sa.func.max(JOURNAL.c.id))
        .where(JOURNAL.c.resource == resource, JOURNAL.c.resource_id.in_(some))
        .group_by(JOURNAL.c.resource_id)
        for resource, some in ids.items()
        if some
    ]
    if not parts:
        return {}
    newest = [row[0] for row in session.rows(sa.union_all(*parts))]
    rows = session.rows(sa.select(JOURNAL).where(JOURNAL.c.id.in_(newest)))
    return {(row.resource, row.resource_id): row for row in rows}


def list_moves(session: Session, ids: Ids, *, most: int) -> Sequence[MoveRow]:
    """Return the newest moves of all these resources, newest first."""
    parts = [
        sa.select(
            sa.select(JOURNAL)
            .where(JOURNAL.c.resource == resource, JOURNAL.c.resource_id.in_(some))
            .order_by(JOURNAL.c.id.desc())
            .limit(most)
            .subquery()
        )
        for resource, some in ids.items()
        if some
    ]
    if not parts:
        return []
    return session.rows(sa.union_all(*parts).order_by(sa.desc('id')).limit(most))
