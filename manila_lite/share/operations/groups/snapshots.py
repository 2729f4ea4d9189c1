"""Accept requests about snapshots of share groups.

The shares of the group are moved with the request, so that nothing else is
done with them until the snapshot has been taken. A request locks the group
first: no share is added to it meanwhile, and of two snapshots of a group one
is taken at a time.
"""

from collections.abc import Sequence
import dataclasses
import datetime
import typing

from manila_lite import exception
from manila_lite.context import RequestContext
from manila_lite.db import rows
from manila_lite.db.moves.snapshots import release_shares
from manila_lite.db.queries.groups import member_sources, share_groups, snapshots
from manila_lite.db.session import Database, Session, transaction
from manila_lite.db.transitions import fire, fire_all, insert_row
from manila_lite.quota import charges
from manila_lite.quota.charges import Owner
from manila_lite.quota.limits import DefaultLimits
from manila_lite.quota.snapshots import GROUP_SNAPSHOT_DELTAS, remove_group_snapshot
from manila_lite.rpc.contract import Client
from manila_lite.rpc.share import ShareGroupSnapshotsRpc
from manila_lite.share.operations.reset_events import RecordOperations
from manila_lite.states.share_group import SHARE_GROUP_SNAPSHOT, GroupStatus
from manila_lite.states.share_instance import SHARE_INSTANCE
from manila_lite.work.admission import AdmissionControl, admission_controlled


@dataclasses.dataclass(eq=False)
class ShareGroupSnapshots(RecordOperations):
    """Operations on snapshots of groups. Each method is one transaction."""

    machine, records = SHARE_GROUP_SNAPSHOT, snapshots.RECORDS

    db: Database
    limits: DefaultLimits
    work: Client[ShareGroupSnapshotsRpc]
    admission: AdmissionControl

    @admission_controlled
    @transaction
    def create(
        self,
        session: Session,
        ctx: RequestContext,
        group: rows.ShareGroupRow,
        *,
        name: str | None = None,
        description: str | None = None,
    ) -> str:
        """Accept a snapshot of all shares of a group and return its id."""
        locked = share_groups.lock(session, group.id)
        if locked.status != GroupStatus.AVAILABLE:
            raise exception.InvalidShareGroup(
                reason=f'share group {group.id} must be available, not {locked.status}'
            )
        if locked.host is None:
            raise exception.InvalidShareGroup(
                reason=f'share group {group.id} is not on a back end'
            )
        if snapshots.is_being_created(session, group.id):
            raise exception.InvalidShareGroup(
                reason=f'a snapshot of share group {group.id} is being taken'
            )
        fire_all(
            session,
            SHARE_INSTANCE,
            [one.instance_id for one in snapshots.list_shares(session, group.id)],
            'snapshot',
        )
        # Behind the guard: none of them changes or leaves the group now.
        members = snapshots.list_shares(session, group.id)
        _refuse_unusable(members)
        charges.charge(
            session,
            Owner(locked.project_id, ctx.user_id),
            GROUP_SNAPSHOT_DELTAS,
            limits=self.limits,
        )
        snapshot_id = session.new_id()
        created_at = snapshots.next_created_at(session, group.id)
        insert_row(
            session,
            SHARE_GROUP_SNAPSHOT,
            'create',
            id=snapshot_id,
            share_group_id=group.id,
            project_id=locked.project_id,
            user_id=ctx.user_id,
            name=name,
            description=description,
            created_at=created_at,
        )
        snapshots.insert_members(
            session, _member_rows(session, snapshot_id, created_at, members)
        )
        self.work.on(locked.host).create_share_group_snapshot(
            session, ctx, share_group_snapshot_id=snapshot_id
        )
        return snapshot_id

    @transaction
    def delete(self, session: Session, ctx: RequestContext, snapshot_id: str) -> None:
        """Request the deletion of a snapshot with all its members."""
        fire(session, SHARE_GROUP_SNAPSHOT, snapshot_id, 'delete')
        member_sources.check_not_being_cloned(session, snapshot_id)
        snapshot = snapshots.get(session, snapshot_id)
        self.work.on(snapshot.host).delete_share_group_snapshot(
            session, ctx, share_group_snapshot_id=snapshot_id
        )

    @transaction
    def force_delete(
        self, session: Session, ctx: RequestContext, snapshot_id: str
    ) -> None:
        """Remove the rows of a snapshot, and release its shares.

        The back end is not called, as published.
        """
        snapshot = snapshots.get(session, snapshot_id)
        members = snapshots.list_members(session, [snapshot_id])[snapshot_id]
        release_shares(
            session, [one.share_instance_id for one in members], excluding=snapshot_id
        )
        remove_group_snapshot(session, snapshot, 'force_delete')


def _refuse_unusable(members: Sequence[rows.GroupShareRow]) -> None:
    for one in members:
        if one.is_soft_deleted:
            raise exception.InvalidShareGroup(
                reason=f'share {one.id} is in the recycle bin'
            )
        if not one.snapshot_support:
            raise exception.InvalidShareGroup(
                reason=f'snapshots of share {one.id} are not supported'
            )


def _member_rows(
    session: Session,
    snapshot_id: str,
    created_at: datetime.datetime,
    members: Sequence[rows.GroupShareRow],
) -> list[dict[str, typing.Any]]:
    return [
        {
            'id': session.new_id(),
            'share_group_snapshot_id': snapshot_id,
            'share_id': one.id,
            'share_instance_id': one.instance_id,
            'size': one.size,
            'share_proto': one.share_proto,
            'created_at': created_at,
        }
        for one in members
    ]
