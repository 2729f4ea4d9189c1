"""Moves in the journal, and those that have not been sent as events.

Each row of the journal says whether it has been sent. A position would not
do: a transaction may commit after another one whose rows have greater ids,
and a reader that has passed them would never see its rows. `start` is the
id from which on moves are sent; earlier ones were made before the first
sender ran.
"""

from collections.abc import Collection, Mapping, Sequence
import typing

import sqlalchemy as sa

from manila_lite.db import models, owners
from manila_lite.db.rows import MoveOwnerRow, MoveRow, UnsentMoveRow
from manila_lite.db.session import Session
from manila_lite.db.tables import JOURNAL, TASK
from manila_lite.states import machine

TASK_NAME = 'events'
"""The task of the cluster whose position is the start."""

_IS_TASK = TASK.c.name == TASK_NAME
_FIND_START = sa.select(TASK.c.position).where(_IS_TASK)
_SET_START = (
    sa.update(TASK)
    .where(_IS_TASK, TASK.c.position.is_(None))
    .values(
        position=sa.select(
            sa.func.coalesce(sa.func.max(JOURNAL.c.id), 0)
        ).scalar_subquery()
    )
)
_UNSENT = (
    sa.select(
        *(
            column
            for column in JOURNAL.c
            if column.key not in ('is_sent', 'transaction_id')
        )
    )
    .where(JOURNAL.c.is_sent.is_(None), JOURNAL.c.id > sa.bindparam('start'))
    # The order of the index, which PostgreSQL would not use for the id alone.
    .order_by(JOURNAL.c.is_sent, JOURNAL.c.id)
    .limit(sa.bindparam('most'))
)
_MARK = (
    sa.update(JOURNAL)
    .where(JOURNAL.c.id.in_(sa.bindparam('ids', expanding=True)))
    .values(is_sent=True)
)
_GONE = sa.select(
    JOURNAL.c.resource_id.label('id'), JOURNAL.c.parent_id, JOURNAL.c.project_id
).where(
    JOURNAL.c.resource.in_(sa.bindparam('resources', expanding=True)),
    JOURNAL.c.resource_id.in_(sa.bindparam('ids', expanding=True)),
    JOURNAL.c.to_status.is_(machine.GONE),
)


def find_start(session: Session) -> int | None:
    """Return the id after which moves are sent; None before the first."""
    return session.value(_FIND_START)


def set_start(session: Session) -> int:
    """Let events begin now, unless they have begun; return the start."""
    session.run(_SET_START)
    return session.value(_FIND_START)


def list_unsent(
    session: Session, start: int, most: int
) -> typing.Sequence[UnsentMoveRow]:
    """Return the oldest moves that are not marked as sent."""
    return session.rows(_UNSENT, start=start, most=most)


def mark_sent(session: Session, ids: Collection[int]) -> None:
    session.run(_MARK, ids=sorted(ids))


def find_owners(
    session: Session, table: str, resources: Collection[str], ids: Collection[str]
) -> dict[str, MoveOwnerRow]:
    """Return parent and project of rows of a table, by id.

    Those that are gone have them in the journal, where `resources` are the
    state machines of the table.
    """
    rows = models.metadata.tables[table]
    found = {
        row.id: row
        for row in session.rows(
            sa.select(
                rows.c.id,
                owners.parent_of(rows).label('parent_id'),
                owners.project_of(rows).label('project_id'),
            ).where(rows.c.id.in_(sorted(ids)))
        )
    }
    gone = sorted(set(ids) - found.keys())
    if gone:
        found |= {
            row.id: row
            for row in session.rows(_GONE, resources=list(resources), ids=gone)
        }
    return found


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
    return list_newest(session, JOURNAL, 'id', ids, most=most)


def list_newest(
    session: Session, table: sa.Table, order: str, ids: Ids, *, most: int
) -> Sequence[typing.Any]:
    """Return the newest rows of a table about any of these resources.

    Each kind of resource is read by its index; a limit for all of them alone would
    read every row.
    """
    parts = [
        sa.select(
            sa.select(table)
            .where(table.c.resource == resource, table.c.resource_id.in_(some))
            .order_by(table.c[order].desc())
            .limit(most)
            .subquery()
        )
        for resource, some in ids.items()
        if some
    ]
    if not parts:
        return []
    return session.rows(sa.union_all(*parts).order_by(sa.desc(order)).limit(most))
