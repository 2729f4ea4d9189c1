"""Accept requests about snapshots, and to go back to one."""

from collections.abc import Mapping
import typing

from manila_lite import exception
from manila_lite.context import RequestContext
from manila_lite.db.queries import share_sources
from manila_lite.db.queries import snapshot_access
from manila_lite.db.queries import snapshots
from manila_lite.db.session import Database
from manila_lite.db.session import Session
from manila_lite.db.session import transaction
from manila_lite.db.transitions import Together
from manila_lite.db.transitions import fire
from manila_lite.db.transitions import fire_all
from manila_lite.quota import charges
from manila_lite.quota.charges import Owner
from manila_lite.quota.shares import owner_of
from manila_lite.quota.shares import size_deltas
from manila_lite.quota.snapshots import deltas_of
from manila_lite.rpc.contract import Client
from manila_lite.states.access_rule import R
from manila_lite.states.share_instance import MACHINE as SHARE_INSTANCE
from manila_lite.states.snapshot_instance import INSTANCE_RESETS
from manila_lite.states.snapshot_instance import MACHINE as SNAPSHOT_INSTANCE
from manila_lite.states.snapshot_instance import SNAPSHOT_RESETS
from manila_lite.work.brake import Brake
from manila_lite.work.brake import braked


class Snapshots:
    """Each method is a transaction: all of a request, or none of it.

    A status that does not allow a request raises InvalidStatus, whose
    code is the caller's to choose.
    """

    def __init__(self, db: Database, limits: Mapping[str, int],
                 work: Client, brake: Brake):
        self.db = db
        self.limits = limits
        self.work = work
        self.brake = brake

    # Create

    @braked
    @transaction
    def create(self, session: Session, ctx: RequestContext,
               share: typing.Any, *, name: str | None = None,
               description: str | None = None,
               metadata: Mapping[str, str] | None = None
               ) -> dict[str, typing.Any]:
        """Accept a snapshot; its row. The share is snapshotting meanwhile.

        One operation at a time on a share, and a time behind that guard,
        have the order of `created_at` be that of the back end.
        """
        if not share.snapshot_support:
            raise exception.SnapshotsUnsupported(share_id=share.id)
        moves = Together(session)
        moves.fire_one(SHARE_INSTANCE, share.instance_id, 'snapshot')
        parent = snapshots.parent(session, share.instance_id)
        self._refuse_soft_deleted(parent)
        snapshot_id, instance_id = session.new_id(), session.new_id()
        owner = Owner(parent.project_id, user_for(ctx, parent),
                      parent.share_type_id)
        charges.charge(session, owner, deltas_of(parent.size),
                       limits=self.limits)
        created_at = snapshots.after_newest(session, parent)
        values = {
            'id': snapshot_id, 'project_id': owner.project_id,
            'user_id': owner.user_id, 'share_id': share.id,
            'size': parent.size, 'share_size': parent.size,
            'share_proto': parent.share_proto, 'display_name': name,
            'display_description': description, 'created_at': created_at}
        snapshots.insert(session, values, metadata or {})
        moves.born(SNAPSHOT_INSTANCE, 'create', [{
            'id': instance_id, 'snapshot_id': snapshot_id,
            'share_instance_id': parent.id, 'progress': '0%',
            'created_at': created_at}])
        moves.write()
        self.work.on(parent.host).create_snapshot_instance(
            session, ctx, snapshot_instance_id=instance_id,
            share_instance_id=parent.id)
        return values

    def _refuse_soft_deleted(self, share: typing.Any) -> None:
        if share.is_soft_deleted:
            raise exception.ShareSoftDeleted(share_id=share.share_id)

    # Change

    @transaction
    def update(self, session: Session, ctx: RequestContext,
               snapshot: typing.Any, values: Mapping[str, object]) -> None:
        """Change the name or the description."""
        if values:
            snapshots.update(session, snapshot.id, values)

    # Delete

    @transaction
    def delete(self, session: Session, ctx: RequestContext,
               snapshot: typing.Any) -> None:
        """Ask for the end of a snapshot and of all its instances."""
        self._delete(session, ctx, snapshot, 'delete', force=False)
        share_sources.refuse_source(session, snapshot.id)

    @transaction
    def force_delete(self, session: Session, ctx: RequestContext,
                     snapshot: typing.Any) -> None:
        """The same from every status; errors of the back end are borne."""
        self._delete(session, ctx, snapshot, 'force_delete', force=True)

    def _delete(self, session, ctx, snapshot, event, *, force):
        found = snapshots.instances(session, snapshot.id)
        fire_all(session, SNAPSHOT_INSTANCE,
                 [row.instance_id for row in found], event)
        for row in found:
            self.work.on(row.host).delete_snapshot_instance(
                session, ctx, snapshot_instance_id=row.instance_id,
                force=force)

    # Revert

    def revert(self, ctx: RequestContext, share: typing.Any,
               snapshot_id: str) -> None:
        """Ask for the share to become what its newest snapshot is."""
        try:
            self._revert(ctx, share, snapshot_id)
        except exception.ShareSizeExceedsAvailableQuota as error:
            # The published code of this one error is 403 for revert.
            raise exception.Forbidden(error.msg) from error

    @braked
    @transaction
    def _revert(self, session: Session, ctx: RequestContext,
                share: typing.Any, snapshot_id: str) -> None:
        instance = self._revertible(session, share, snapshot_id)
        # Both or none: of two who want one of them, one is refused.
        moves = Together(session)
        moves.fire_one(SHARE_INSTANCE, instance.share_instance_id, 'revert')
        moves.fire_one(SNAPSHOT_INSTANCE, instance.instance_id, 'restore')
        moves.write()
        parent = snapshots.parent(session, instance.share_instance_id)
        self._check_revert(session, parent, instance)
        growth = instance.share_size - parent.size
        if growth > 0:
            charges.charge(session, owner_of(parent),
                           size_deltas(parent, growth),
                           limits=self.limits, reserve=True)
        self.work.on(parent.host).revert_to_snapshot(
            session, ctx, instance_id=parent.id, snapshot_id=snapshot_id)

    def _revertible(self, session, share, snapshot_id):
        """The instance of the snapshot that the share may go back to.

        Nobody learns whether a snapshot of another share exists.
        """
        if share.is_soft_deleted:
            raise exception.ShareSoftDeleted(share_id=share.id)
        found = [row for row in snapshots.instances(session, snapshot_id)
                 if row.share_instance_id == share.instance_id]
        if not found:
            raise exception.InvalidInput(
                reason=f'share {share.id} has no snapshot {snapshot_id}')
        if not share.revert_to_snapshot_support:
            raise exception.InvalidInput(
                reason=f'share {share.id} does not support reverting to a '
                       'snapshot')
        return found[0]

    def _check_revert(self, session, parent, instance):
        """What has to be so, behind the guard, beside the statuses."""
        self._refuse_soft_deleted(parent)
        if parent.newest_id != instance.id:
            raise exception.NotNewestSnapshot(
                snapshot_id=instance.id, newest_id=parent.newest_id)
        if parent.access_rules_status != R.ACTIVE:
            raise exception.AccessRulesNotActive(
                share_id=parent.share_id,
                status=parent.access_rules_status)
        if snapshot_access.are_unsettled(session, instance.instance_id):
            raise exception.SnapshotAccessUnsettled(snapshot_id=instance.id)

    # Administration

    @transaction
    def reset_status(self, session: Session, ctx: RequestContext,
                     snapshot: typing.Any, status: str) -> None:
        """Set the status of every instance by decree.

        Raises InvalidInput for words that are not in the published list.
        """
        event = _reset(status, SNAPSHOT_RESETS)
        found = snapshots.instances(session, snapshot.id)
        fire_all(session, SNAPSHOT_INSTANCE,
                 [row.instance_id for row in found], event)

    @transaction
    def reset_instance_status(self, session: Session, ctx: RequestContext,
                              snapshot_instance_id: str,
                              status: str) -> None:
        """The same for one instance, which has a list of its own."""
        fire(session, SNAPSHOT_INSTANCE, snapshot_instance_id,
             _reset(status, INSTANCE_RESETS))


def user_for(ctx: RequestContext, share: typing.Any) -> str | None:
    """Whose the snapshot is: it stays in the project of its share."""
    if ctx.project_id == share.project_id:
        return ctx.user_id
    return share.user_id


def _reset(status: str, allowed: frozenset[str]) -> str:
    if status not in allowed:
        raise exception.InvalidInput(
            reason=f'status {status!r} is none of '
                   f'{", ".join(sorted(allowed))}')
    return SNAPSHOT_INSTANCE.reset_event(status)
