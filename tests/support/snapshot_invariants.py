"""What must hold of snapshots whenever nothing is owed."""

from collections.abc import Iterator, Mapping
import typing

import sqlalchemy as sa

from manila_lite.db.models import shares
from manila_lite.db.models import snapshots
from manila_lite.db.session import Session
from manila_lite.states.snapshot_instance import SNAPSHOT_INSTANCE

SNAPSHOT = snapshots.Snapshot.__table__
INSTANCE = snapshots.SnapshotInstance.__table__
SHARE_INSTANCE = shares.ShareInstance.__table__

Inventories = Mapping[str, Mapping[str, int]]
"""By host of a back end: the size of every snapshot instance it has."""


def problems(session: Session, inventories: Inventories) -> list[str]:
    """Everything that is wrong, in words; rightly nothing."""
    rows = session.rows(
        sa.select(
            INSTANCE.c.id, INSTANCE.c.status, SHARE_INSTANCE.c.host
        ).select_from(
            INSTANCE.join(
                SHARE_INSTANCE,
                SHARE_INSTANCE.c.id == INSTANCE.c.share_instance_id,
            )
        )
    )
    return [
        *at_rest(session, rows),
        *back_ends(rows, inventories),
        *order(session),
    ]


def at_rest(session: Session, rows: typing.Sequence[sa.Row]) -> Iterator[str]:
    """Nothing is in flight, and nothing is left of what is gone."""
    for row in rows:
        if row.status in SNAPSHOT_INSTANCE.in_flight:
            yield f'snapshot {row.id} is {row.status}, nobody works on it'
    orphans = session.value(
        sa.select(sa.func.count())
        .select_from(SNAPSHOT)
        .where(~sa.exists().where(INSTANCE.c.snapshot_id == SNAPSHOT.c.id))
    )
    if orphans:
        yield f'{orphans} snapshots have no instance'


def back_ends(
    rows: typing.Sequence[sa.Row], inventories: Inventories
) -> Iterator[str]:
    """What is available is there, and nothing else is."""
    real = {id: host for host, found in inventories.items() for id in found}
    for row in rows:
        home = row.host and row.host.partition('#')[0]
        if row.status == 'available' and real.get(row.id) != home:
            yield (
                f'snapshot {row.id} should be on {home}, is on '
                f'{real.get(row.id)}'
            )
    for id in real.keys() - {row.id for row in rows}:
        yield f'snapshot {id} is on a back end and nobody knows it'


def order(session: Session) -> Iterator[str]:
    """No two snapshots of a share are of the same moment."""
    for row in session.rows(
        sa.select(SNAPSHOT.c.share_id, SNAPSHOT.c.created_at)
        .group_by(SNAPSHOT.c.share_id, SNAPSHOT.c.created_at)
        .having(sa.func.count() > 1)
    ):
        yield f'{row.share_id} has several snapshots of {row.created_at}'
