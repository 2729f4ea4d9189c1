"""Invariants of snapshots while no work is pending."""

from collections.abc import Iterator, Mapping
import typing

import sqlalchemy as sa

from manila_lite.db.models import share_groups, shares, snapshots
from manila_lite.db.session import Session
from manila_lite.states.share_group import SHARE_GROUP_SNAPSHOT
from manila_lite.states.share_task import WAITING
from manila_lite.states.snapshot_instance import MOVING, SNAPSHOT_INSTANCE

SNAPSHOT = snapshots.Snapshot.__table__
INSTANCE = snapshots.SnapshotInstance.__table__
MEMBER = share_groups.ShareGroupSnapshotMember.__table__
GROUP_SNAPSHOT = share_groups.ShareGroupSnapshot.__table__
SHARE = shares.Share.__table__
SHARE_INSTANCE = shares.ShareInstance.__table__

Inventories = Mapping[str, Mapping[str, int]]
"""By host of a back end: the size of every snapshot instance it has."""


def problems(session: Session, inventories: Inventories) -> list[str]:
    """Return a description of every violated invariant."""
    rows = session.rows(
        sa.select(
            INSTANCE.c.id, INSTANCE.c.status, SHARE_INSTANCE.c.host, SHARE.c.task_state
        ).select_from(
            INSTANCE.join(
                SHARE_INSTANCE, SHARE_INSTANCE.c.id == INSTANCE.c.share_instance_id
            ).join(SHARE, SHARE.c.id == SHARE_INSTANCE.c.share_id)
        )
    )
    members = session.rows(
        sa.select(
            MEMBER.c.id, GROUP_SNAPSHOT.c.status, SHARE_INSTANCE.c.host
        ).select_from(
            GROUP_SNAPSHOT.join(MEMBER).join(
                SHARE_INSTANCE, SHARE_INSTANCE.c.id == MEMBER.c.share_instance_id
            )
        )
    )
    return [
        *at_rest(session, rows),
        *groups_at_rest(session),
        *back_ends([*rows, *members], inventories),
        *creation_times(session),
    ]


def at_rest(session: Session, rows: typing.Sequence[sa.Row]) -> Iterator[str]:
    """Nothing is in flight, and no rows are left of deleted snapshots."""
    for row in rows:
        # After phase one the next move is up to an administrator.
        waits = row.task_state in WAITING and row.status in MOVING
        if row.status in SNAPSHOT_INSTANCE.in_flight and not waits:
            yield f'snapshot {row.id} is {row.status}, without work'
    orphans = session.value(
        sa.select(sa.func.count())
        .select_from(SNAPSHOT)
        .where(~sa.exists().where(INSTANCE.c.snapshot_id == SNAPSHOT.c.id))
    )
    if orphans:
        yield f'{orphans} snapshots have no instance'


def groups_at_rest(session: Session) -> Iterator[str]:
    """No snapshot of a share group is in flight."""
    for row in session.rows(sa.select(GROUP_SNAPSHOT.c.id, GROUP_SNAPSHOT.c.status)):
        if row.status in SHARE_GROUP_SNAPSHOT.in_flight:
            yield f'group snapshot {row.id} is {row.status}, without work'


def back_ends(rows: typing.Sequence[sa.Row], inventories: Inventories) -> Iterator[str]:
    """Available snapshots are on their back end, and no others are."""
    actual = {id: host for host, found in inventories.items() for id in found}
    for row in rows:
        service = row.host and row.host.partition('#')[0]
        if row.status == 'available' and actual.get(row.id) != service:
            yield (
                f'snapshot {row.id} should be on {service}, is on {actual.get(row.id)}'
            )
    for id in actual.keys() - {row.id for row in rows}:
        yield f'snapshot {id} is on a back end and has no row'


def creation_times(session: Session) -> Iterator[str]:
    """No two snapshots of a share have the same created_at."""
    for row in session.rows(
        sa.select(SNAPSHOT.c.share_id, SNAPSHOT.c.created_at)
        .group_by(SNAPSHOT.c.share_id, SNAPSHOT.c.created_at)
        .having(sa.func.count() > 1)
    ):
        yield f'{row.share_id} has several snapshots of {row.created_at}'
