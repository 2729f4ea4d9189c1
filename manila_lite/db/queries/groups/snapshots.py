"""Snapshots of share groups, and their members."""

from collections.abc import Collection, Mapping, Sequence
import datetime

import sqlalchemy as sa

from manila_lite import exception
from manila_lite.db.queries.columns import columns
from manila_lite.db.queries.records import Records
from manila_lite.db.queries.snapshots.snapshots import TICK
from manila_lite.db.rows import (
    GroupShareRow,
    GroupSnapshotMemberRow,
    ShareGroupSnapshotRow,
)
from manila_lite.db.session import Session
from manila_lite.db.tables import (
    GROUP,
    GROUP_MEMBER as MEMBER,
    GROUP_SNAPSHOT as SNAPSHOT,
    INSTANCE,
    SHARE,
    SNAPSHOT as SHARE_SNAPSHOT,
)
from manila_lite.states.share_group import GroupSnapshotStatus

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
RECORDS: Records[ShareGroupSnapshotRow] = Records(
    SNAPSHOT, exception.ShareGroupSnapshotNotFound, 'share_group_snapshot_id', _LIST
)
MEMBERS: Records[GroupSnapshotMemberRow] = Records(
    MEMBER, exception.ShareGroupSnapshotMemberNotFound, 'share_group_snapshot_member_id'
)
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
_IN_GROUP = SHARE.c.share_group_id == sa.bindparam('of_group')
_SHARES = (
    sa.select(*columns(GroupShareRow, SHARE, instance_id=INSTANCE.c.id))
    .join(INSTANCE, INSTANCE.c.share_id == SHARE.c.id)
    .where(_IN_GROUP)
    .order_by(INSTANCE.c.id)
)
_NEWEST = (
    sa.select(sa.func.max(SHARE_SNAPSHOT.c.created_at).label('newest_at'))
    .join(SHARE, SHARE.c.id == SHARE_SNAPSHOT.c.share_id)
    .where(_IN_GROUP)
    .union_all(
        sa.select(sa.func.max(MEMBER.c.created_at))
        .join(SHARE, SHARE.c.id == MEMBER.c.share_id)
        .where(_IN_GROUP)
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


get, find, lock_shared = RECORDS.get, RECORDS.find, RECORDS.lock_shared
list_snapshots, update = RECORDS.list_page, RECORDS.update
get_member = MEMBERS.get


def list_members(
    session: Session, ids: Collection[str]
) -> dict[str, list[GroupSnapshotMemberRow]]:
    """Return the members of each of these snapshots."""
    found: dict[str, list[GroupSnapshotMemberRow]] = {id: [] for id in ids}
    if found:
        for row in session.rows(_MEMBERS, ids=sorted(found)):
            found[row.share_group_snapshot_id].append(row)
    return found


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
