"""Snapshots of share groups, and their members."""

from collections.abc import Collection, Mapping, Sequence
import datetime

import sqlalchemy as sa

from manila_lite import exception
from manila_lite.db.models import share_groups, shares, snapshots
from manila_lite.db.queries import pages
from manila_lite.db.queries.snapshots.snapshots import TICK
from manila_lite.db.rows import (
    GroupShareRow,
    GroupSnapshotMemberRow,
    Page,
    ShareGroupSnapshotRow,
)
from manila_lite.db.session import Session
from manila_lite.states.share_group_snapshot import GroupSnapshotStatus

SNAPSHOT = share_groups.ShareGroupSnapshot.__table__
MEMBER = share_groups.ShareGroupSnapshotMember.__table__
GROUP = share_groups.ShareGroup.__table__
SHARE = shares.Share.__table__
INSTANCE = shares.ShareInstance.__table__
SHARE_SNAPSHOT = snapshots.Snapshot.__table__

FILTERS = (
    'id',
    'name',
    'description',
    'status',
    'share_group_id',
    'project_id',
    'user_id',
)
"""The columns that a list can be filtered by, by equality."""

SORT_KEYS = (*FILTERS, 'created_at', 'updated_at')

_SHOWN = (*(SNAPSHOT.c[name] for name in SORT_KEYS), GROUP.c.host)
_LIST = sa.select(*_SHOWN).select_from(SNAPSHOT.join(GROUP))
_GET = _LIST.where(SNAPSHOT.c.id == sa.bindparam('snapshot_id'))
_LOCK_SHARED = _GET.with_for_update(read=True, of=SNAPSHOT)
_OF_GROUP = sa.select(SNAPSHOT.c.id).where(
    SNAPSHOT.c.share_group_id == sa.bindparam('of_group')
)
_ANY = _OF_GROUP.limit(1)
_CREATING = _ANY.where(SNAPSHOT.c.status == GroupSnapshotStatus.CREATING)
_IDS: sa.BindParameter[str] = sa.bindparam('ids', expanding=True)
_MEMBERS = (
    sa.select(MEMBER)
    .where(MEMBER.c.share_group_snapshot_id.in_(_IDS))
    .order_by(MEMBER.c.created_at, MEMBER.c.id)
)
_MEMBER = sa.select(MEMBER).where(MEMBER.c.id == sa.bindparam('member_id'))
_SHARES = (
    sa.select(
        SHARE.c.id,
        INSTANCE.c.id.label('instance_id'),
        SHARE.c.size,
        SHARE.c.share_proto,
        SHARE.c.snapshot_support,
        SHARE.c.is_soft_deleted,
    )
    .join(INSTANCE, INSTANCE.c.share_id == SHARE.c.id)
    .where(SHARE.c.share_group_id == sa.bindparam('of_group'))
    .order_by(INSTANCE.c.id)
)
_OF_MEMBERS = SHARE.c.share_group_id == sa.bindparam('of_group')
_NEWEST = (
    sa.select(sa.func.max(SHARE_SNAPSHOT.c.created_at).label('newest_at'))
    .join(SHARE, SHARE.c.id == SHARE_SNAPSHOT.c.share_id)
    .where(_OF_MEMBERS)
    .union_all(
        sa.select(sa.func.max(MEMBER.c.created_at))
        .join(SHARE, SHARE.c.id == MEMBER.c.share_id)
        .where(_OF_MEMBERS)
    )
)
_NEWER = (
    sa.select(MEMBER.c.share_group_snapshot_id)
    .where(
        MEMBER.c.share_instance_id == sa.bindparam('of_instance'),
        MEMBER.c.created_at
        > sa.select(SHARE_SNAPSHOT.c.created_at)
        .where(SHARE_SNAPSHOT.c.id == sa.bindparam('than_snapshot'))
        .scalar_subquery(),
    )
    .order_by(MEMBER.c.created_at.desc())
    .limit(1)
)
_SET_LOCATION = (
    sa.update(MEMBER)
    .where(MEMBER.c.id == sa.bindparam('member_id'))
    .values(provider_location=sa.bindparam('location'), updated_at=sa.bindparam('now'))
)


def get(session: Session, snapshot_id: str) -> ShareGroupSnapshotRow:
    """Return a snapshot of any project.

    Raises ShareGroupSnapshotNotFound.
    """
    return _found(session.one(_GET, snapshot_id=snapshot_id), snapshot_id)


def find(session: Session, snapshot_id: str) -> ShareGroupSnapshotRow | None:
    """Like `get`, but return None if the snapshot is gone."""
    return session.one(_GET, snapshot_id=snapshot_id)


def lock_shared(session: Session, snapshot_id: str) -> ShareGroupSnapshotRow:
    """Lock a snapshot (shared) against moves, and return it."""
    row = session.one(_LOCK_SHARED, snapshot_id=snapshot_id)
    return _found(row, snapshot_id)


def _found(
    row: ShareGroupSnapshotRow | None, snapshot_id: str
) -> ShareGroupSnapshotRow:
    if row is None:
        raise exception.ShareGroupSnapshotNotFound(share_group_snapshot_id=snapshot_id)
    return row


def list_snapshots(
    session: Session, exact: Mapping[str, str], like: Mapping[str, str], page: Page
) -> Sequence[ShareGroupSnapshotRow]:
    """Return a page of snapshots; `exact` and `like` are column values."""
    return pages.list_rows(session, _LIST, SNAPSHOT, page, exact, like)


def list_members(
    session: Session, ids: Collection[str]
) -> dict[str, list[GroupSnapshotMemberRow]]:
    """Return the members of each of these snapshots."""
    found: dict[str, list[GroupSnapshotMemberRow]] = {id: [] for id in ids}
    if found:
        for row in session.rows(_MEMBERS, ids=sorted(found)):
            found[row.share_group_snapshot_id].append(row)
    return found


def get_member(session: Session, member_id: str) -> GroupSnapshotMemberRow:
    """Return a member; raises ShareGroupSnapshotMemberNotFound."""
    row = session.one(_MEMBER, member_id=member_id)
    if row is None:
        raise exception.ShareGroupSnapshotMemberNotFound(
            share_group_snapshot_member_id=member_id
        )
    return row


def list_shares(session: Session, group_id: str) -> Sequence[GroupShareRow]:
    """Return the shares of a group, which have no other replicas."""
    return session.rows(_SHARES, of_group=group_id)


def has_any(session: Session, group_id: str) -> bool:
    """Whether the group has any snapshot, in any status."""
    return session.value(_ANY, of_group=group_id) is not None


def is_being_created(session: Session, group_id: str) -> bool:
    """Whether a snapshot of the group is being taken."""
    return session.value(_CREATING, of_group=group_id) is not None


def next_created_at(session: Session, group_id: str) -> datetime.datetime:
    """Return `created_at` of the next snapshot of a group.

    It is later than those of all snapshots of its shares, whatever the
    clocks of services say.
    """
    newest = [
        row.newest_at
        for row in session.rows(_NEWEST, of_group=group_id)
        if row.newest_at is not None
    ]
    return max([session.now, *(at + TICK for at in newest)])


def find_newer(
    session: Session, share_instance_id: str, snapshot_id: str
) -> str | None:
    """Return a group snapshot with the share, newer than its snapshot."""
    return session.value(
        _NEWER, of_instance=share_instance_id, than_snapshot=snapshot_id
    )


def insert_members(session: Session, rows: list[dict[str, object]]) -> None:
    if rows:
        session.run_many(sa.insert(MEMBER), rows)


def update(session: Session, snapshot_id: str, values: Mapping[str, object]) -> None:
    """Change columns of a snapshot; raises ShareGroupSnapshotNotFound."""
    if (
        session.run(
            sa.update(SNAPSHOT)
            .where(SNAPSHOT.c.id == snapshot_id)
            .values(updated_at=session.now, **values)
        )
        != 1
    ):
        raise exception.ShareGroupSnapshotNotFound(share_group_snapshot_id=snapshot_id)


def set_locations(session: Session, locations: Mapping[str, str | None]) -> None:
    """Store where the back end has members, by member id."""
    if locations:
        session.run_many(
            _SET_LOCATION,
            [
                {'member_id': id, 'location': value, 'now': session.now}
                for id, value in sorted(locations.items())
            ],
        )
