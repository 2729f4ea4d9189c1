"""Snapshots of share groups as sources of new groups."""

from collections.abc import Collection, Sequence

import sqlalchemy as sa

from manila_lite import exception
from manila_lite.db.queries.columns import columns
from manila_lite.db.queries.groups import share_groups as share_group_rows, snapshots
from manila_lite.db.rows import MemberSourceRow, ShareGroupSnapshotRow
from manila_lite.db.session import Session
from manila_lite.db.tables import GROUP, GROUP_MEMBER as MEMBER, INSTANCE, SHARE
from manila_lite.states.share_group import GroupSnapshotStatus, GroupStatus
from manila_lite.states.share_instance import InstanceStatus

_CREATING = (InstanceStatus.CREATING, InstanceStatus.CREATING_FROM_SNAPSHOT)

_SOURCES = (
    sa.select(*columns(MemberSourceRow, MEMBER, INSTANCE, SHARE, share_id=SHARE.c.id))
    .select_from(
        MEMBER.join(INSTANCE, INSTANCE.c.id == MEMBER.c.share_instance_id).join(
            SHARE, SHARE.c.id == INSTANCE.c.share_id
        )
    )
    .where(MEMBER.c.share_group_snapshot_id == sa.bindparam('of_snapshot'))
    .order_by(MEMBER.c.id)
)
_NEW_GROUP = (
    sa.select(GROUP.c.id)
    .where(
        GROUP.c.source_share_group_snapshot_id == sa.bindparam('of_snapshot'),
        GROUP.c.status == GroupStatus.CREATING,
    )
    .limit(1)
)
_NEW_SHARE = (
    sa.select(SHARE.c.id)
    .select_from(
        MEMBER.join(
            SHARE, SHARE.c.source_share_group_snapshot_member_id == MEMBER.c.id
        ).join(INSTANCE, INSTANCE.c.share_id == SHARE.c.id)
    )
    .where(
        MEMBER.c.share_group_snapshot_id == sa.bindparam('of_snapshot'),
        INSTANCE.c.status.in_(_CREATING),
    )
    .limit(1)
)
_STATUSES = (
    sa.select(INSTANCE.c.status)
    .join(SHARE, SHARE.c.id == INSTANCE.c.share_id)
    .where(SHARE.c.share_group_id == sa.bindparam('of_group'))
    .distinct()
)


_CREATED_WITH_GROUP = (
    sa.select(INSTANCE.c.id)
    .join(SHARE, SHARE.c.id == INSTANCE.c.share_id)
    .where(
        SHARE.c.share_group_id == sa.bindparam('of_group'),
        INSTANCE.c.status == InstanceStatus.CREATING,
    )
    .order_by(INSTANCE.c.id)
)
_LOCK_CREATING = (
    sa.select(INSTANCE.c.id)
    .where(
        INSTANCE.c.id.in_(sa.bindparam('ids', expanding=True)),
        INSTANCE.c.status == InstanceStatus.CREATING,
    )
    .order_by(INSTANCE.c.id)
    .with_for_update()
)


def lock_available(session: Session, snapshot_id: str) -> ShareGroupSnapshotRow:
    """Lock an available snapshot (shared), and return it.

    A deletion moves the snapshot before it checks for groups that are being
    created, so it sees this one. Raises InvalidShareGroupSnapshot.
    """
    found = snapshots.lock_shared(session, snapshot_id)
    if found.status != GroupSnapshotStatus.AVAILABLE:
        raise exception.InvalidShareGroupSnapshot(
            reason=f'share group snapshot {snapshot_id} must be available, '
            f'not {found.status}'
        )
    return found


def list_sources(session: Session, snapshot_id: str) -> Sequence[MemberSourceRow]:
    """Return the members of a snapshot, with what is known of shares."""
    return session.rows(_SOURCES, of_snapshot=snapshot_id)


def check_not_being_cloned(session: Session, snapshot_id: str) -> None:
    """Raise InvalidShareGroupSnapshot while a group is created from it.

    Call it after the move that removes the snapshot and in the same
    transaction, so that no group can be created in between.
    """
    for query in (_NEW_GROUP, _NEW_SHARE):
        if session.value(query, of_snapshot=snapshot_id) is not None:
            raise exception.InvalidShareGroupSnapshot(
                reason='a share group is being created from share group '
                f'snapshot {snapshot_id}'
            )


def are_shares_created(session: Session, group_id: str) -> bool:
    """Whether all shares of the group have been created.

    Raises InvalidShareGroup if one of them is in error.
    """
    found = {row.status for row in session.rows(_STATUSES, of_group=group_id)}
    if not found.isdisjoint(_CREATING):
        return False
    if InstanceStatus.ERROR in found:
        raise exception.InvalidShareGroup(
            reason=f'a share of share group {group_id} could not be created'
        )
    return True


def check_group_created(session: Session, group_id: str | None) -> None:
    """Raise InvalidShareGroup if a group, if any, could not be created."""
    if group_id is None:
        return
    group = share_group_rows.find(session, group_id)
    if group is not None and group.status == GroupStatus.ERROR:
        raise exception.InvalidShareGroup(
            reason=f'share group {group_id} could not be created'
        )


def list_creating(session: Session, group_id: str) -> list[str]:
    """Return the ids of the instances of a group that are being created."""
    rows = session.rows(_CREATED_WITH_GROUP, of_group=group_id)
    return [row.id for row in rows]


def lock_creating(session: Session, instance_ids: Collection[str]) -> set[str]:
    """Lock those of these instances that are being created; return ids."""
    rows = session.rows(_LOCK_CREATING, ids=sorted(instance_ids))
    return {row.id for row in rows}
