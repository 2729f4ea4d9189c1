"""Accept requests about snapshots, and to revert to one."""

from collections.abc import Iterator, Mapping, Sequence
import dataclasses
import typing
from typing import Annotated

from manila_lite import exception
from manila_lite.conf import Option
from manila_lite.context import RequestContext
from manila_lite.db import rows
from manila_lite.db.moves import shares as share_moves
from manila_lite.db.moves.snapshots import release_share
from manila_lite.db.queries.replicas import replicas
from manila_lite.db.queries.shares import clone_sources
from manila_lite.db.queries.snapshots import snapshots
from manila_lite.db.session import Database, Session, transaction
from manila_lite.db.transitions import TransitionBatch, fire, fire_all
from manila_lite.quota import charges, snapshots as snapshot_quota
from manila_lite.quota.charges import Owner
from manila_lite.quota.limits import DefaultLimits
from manila_lite.quota.shares import owner_of, size_deltas
from manila_lite.quota.snapshots import deltas_of
from manila_lite.rpc.contract import Client
from manila_lite.rpc.share import ReplicatedSnapshotsRpc, SnapshotsRpc
from manila_lite.share.operations import reverts, services
from manila_lite.share.operations.replication import snapshots as replicated_snapshots
from manila_lite.share.operations.replication.snapshots import LockedReplicas
from manila_lite.share.operations.reset_events import refuse_contradiction, reset_event
from manila_lite.share.operations.shares.migration_guards import (
    refuse_reset,
    refuse_running,
)
from manila_lite.states.share_instance import (
    SHARE_INSTANCE,
    SNAPSHOT_BY_FORCE,
    InstanceStatus,
)
from manila_lite.states.snapshot_instance import (
    INSTANCE_RESETS,
    SNAPSHOT_INSTANCE,
    SNAPSHOT_RESETS,
    SnapshotStatus,
)
from manila_lite.work.admission import AdmissionControl, admission_controlled


@dataclasses.dataclass(eq=False)
class Snapshots:
    """Operations on snapshots. Each method is one transaction.

    A status that does not allow a request raises InvalidStatus; the caller
    chooses the HTTP code. `for_replicas` is used for shares with several
    replicas, `work` for others.
    """

    db: Database
    limits: DefaultLimits
    work: Client[SnapshotsRpc]
    for_replicas: Client[ReplicatedSnapshotsRpc]
    admission: AdmissionControl
    down_time: Annotated[float, Option('service_down_time')]
    deferred_deletion_enabled: Annotated[bool, Option('is_deferred_deletion_enabled')]

    # Create

    @admission_controlled
    @transaction
    def create(
        self,
        session: Session,
        ctx: RequestContext,
        share: rows.ShareTarget,
        *,
        name: str | None = None,
        description: str | None = None,
        metadata: Mapping[str, str] | None = None,
        force: bool = False,
    ) -> dict[str, typing.Any]:
        """Accept a snapshot and return its row.

        The share is `snapshotting` meanwhile. This guard admits one
        operation at a time, and `created_at` is chosen after it, so its
        order is that of the back end. The snapshot is taken of the active
        replica and then reaches the others.

        By `force` it is attempted of a share that has failed or is busy as
        well, whose status stays as it is.
        """
        if not share.snapshot_support:
            raise exception.SnapshotsUnsupported(share_id=share.id)
        locked_replicas = self._replicas(session, share, 'snapshot')
        active_id = (
            locked_replicas.get_active().id if locked_replicas else share.instance_id
        )
        moves = TransitionBatch(session)
        if not (force and self._can_be_forced(session, active_id)):
            moves.fire_one(SHARE_INSTANCE, active_id, 'snapshot')
        parent = snapshots.get_parent(session, active_id)
        self._refuse_soft_deleted(parent)
        refuse_running(share.id, parent.task_state)
        snapshot_id = session.new_id()
        owner = Owner(
            parent.project_id, owner_user_id(ctx, parent), parent.share_type_id
        )
        charges.charge(session, owner, deltas_of(parent.size), limits=self.limits)
        values = {
            'id': snapshot_id,
            'project_id': owner.project_id,
            'user_id': owner.user_id,
            'share_id': share.id,
            'size': parent.size,
            'share_size': parent.size,
            'share_proto': parent.share_proto,
            'display_name': name,
            'display_description': description,
            'created_at': snapshots.next_created_at(session, parent),
        }
        snapshots.insert(session, values, metadata or {})
        ids = locked_replicas.ids_for_new_snapshot if locked_replicas else [active_id]
        instance_ids = {of: session.new_id() for of in ids}
        moves.insert_rows(
            SNAPSHOT_INSTANCE, 'create', list(_new_instances(values, instance_ids))
        )
        moves.write()
        submit = (
            self.for_replicas.on(parent.host).create_replicated_snapshot
            if _has_several(locked_replicas)
            else self.work.on(parent.host).create_snapshot_instance
        )
        submit(
            session,
            ctx,
            snapshot_instance_id=instance_ids[active_id],
            share_instance_id=active_id,
        )
        return values

    def _can_be_forced(self, session: Session, instance_id: str) -> bool:
        """Lock a share; whether its status needs force for a snapshot.

        Raises InvalidShare while another one is taken: the order of
        snapshots has to be that of the back end.
        """
        status = snapshots.lock_share_instance(session, instance_id)
        if status not in SNAPSHOT_BY_FORCE:
            return False
        if snapshots.is_snapshot_in_progress(session, instance_id):
            raise exception.InvalidShare(reason='another snapshot of it is being taken')
        return True

    def _replicas(
        self, session: Session, share: rows.ShareTarget, event: str
    ) -> LockedReplicas | None:
        """Lock the replicas of a share with replication; None without."""
        if not share.replication_type:
            return None
        locked_replicas = replicated_snapshots.lock_replicas(session, share.id)
        locked_replicas.refuse_during_promotion(event)
        return locked_replicas

    def _refuse_soft_deleted(self, share: rows.SnapshotParentRow) -> None:
        if share.is_soft_deleted:
            raise exception.ShareSoftDeleted(share_id=share.share_id)

    # Change

    @transaction
    def update(
        self,
        session: Session,
        ctx: RequestContext,
        snapshot: rows.SnapshotTarget,
        values: Mapping[str, object],
    ) -> None:
        """Change the name or the description."""
        if values:
            snapshots.update(session, snapshot.id, values)

    # Delete

    @transaction
    def delete(
        self, session: Session, ctx: RequestContext, snapshot: rows.SnapshotTarget
    ) -> None:
        """Request the deletion of a snapshot with all its instances."""
        self._delete(
            session,
            ctx,
            snapshot,
            'defer_delete' if self.deferred_deletion_enabled else 'delete',
            force=False,
        )
        clone_sources.check_not_being_cloned(session, snapshot.id)

    @transaction
    def force_delete(
        self, session: Session, ctx: RequestContext, snapshot: rows.SnapshotTarget
    ) -> None:
        """Request deletion from any status; driver errors are ignored."""
        self._delete(session, ctx, snapshot, 'force_delete', force=True)

    def _delete(
        self,
        session: Session,
        ctx: RequestContext,
        snapshot: rows.SnapshotTarget,
        event: str,
        *,
        force: bool,
    ) -> None:
        found = snapshots.list_instances(session, snapshot.id)
        if replicated_snapshots.are_replicated(found):
            self._delete_on_replicas(session, ctx, snapshot, force=force)
            return
        if not force and self._delete_unserved(session, ctx, found):
            return
        fire_all(session, SNAPSHOT_INSTANCE, [row.instance_id for row in found], event)
        for row in found:
            if event == 'defer_delete':
                self._delete_deferred(session, ctx, row.instance_id)
                continue
            self.work.on(row.host).delete_snapshot_instance(
                session, ctx, snapshot_instance_id=row.instance_id, force=force
            )

    def _delete_deferred(
        self, session: Session, ctx: RequestContext, snapshot_instance_id: str
    ) -> None:
        """Credit quota now and leave the back end to the deferred deletion."""
        instance = self._credit_deferred(session, snapshot_instance_id)
        self.work.on(instance.host).delete_snapshot_instance_deferred(
            session, ctx, snapshot_instance_id=instance.id
        )

    def _credit_deferred(
        self, session: Session, snapshot_instance_id: str
    ) -> rows.SnapshotInstanceRow:
        """Credit a snapshot, which has moved to its deferred deletion."""
        instance = snapshots.find(session, snapshot_instance_id)
        assert instance is not None  # the guard has found it
        charges.credit(
            session, snapshot_quota.owner_of(instance), deltas_of(instance.size)
        )
        return instance

    def _delete_unserved(
        self,
        session: Session,
        ctx: RequestContext,
        found: Sequence[rows.SnapshotTarget],
    ) -> bool:
        """Delete a snapshot that its back end, which is down, has not taken.

        Returns False if that is not the case.
        """
        if len(found) != 1 or not services.can_delete(
            session, SNAPSHOT_INSTANCE, found[0].status, found[0].host, self.down_time
        ):
            return False
        id = found[0].instance_id
        fire(session, SNAPSHOT_INSTANCE, id, services.EVENT)
        instance = snapshots.find(session, id)
        assert instance is not None  # the guard has found it
        release_share(session, instance.share_instance_id, excluding=id)
        if services.withdraw_creation(session, SNAPSHOT_INSTANCE, id):
            snapshot_quota.remove_and_credit(session, instance)
        else:
            self.work.on(instance.host).delete_snapshot_instance(
                session, ctx, snapshot_instance_id=id
            )
        return True

    def _delete_on_replicas(
        self,
        session: Session,
        ctx: RequestContext,
        snapshot: rows.SnapshotTarget,
        *,
        force: bool,
    ) -> None:
        """Delete it from the active replica, and then from the others.

        With `force`, also if there is no active replica to ask.
        """
        locked_replicas = replicated_snapshots.lock_replicas(session, snapshot.share_id)
        found = snapshots.list_for_snapshot(session, snapshot.id)
        if not found:
            raise exception.ShareSnapshotNotFound(snapshot_id=snapshot.id)
        if not force:
            locked_replicas.refuse_during_promotion('delete')
            replicated_snapshots.check_deletable(snapshot.id, found)
        active = locked_replicas.active if force else locked_replicas.get_active()
        if not force and self._can_defer(found):
            self._defer_on_replicas(session, ctx, locked_replicas, found)
            return
        self._begin_deletion(session, found, force=force)
        if active is None:
            for row in found:
                snapshot_quota.remove_and_credit(session, row)
            return
        subject = replicated_snapshots.instance_for_work(found, active)
        submit = (
            self.for_replicas.on(active.host).delete_replicated_snapshot
            if _has_several(locked_replicas)
            else self.work.on(active.host).delete_snapshot_instance
        )
        submit(session, ctx, snapshot_instance_id=subject.id, force=force)

    def _can_defer(self, found: Sequence[typing.Any]) -> bool:
        """Whether the deletion may be deferred, which is so on all or none.

        It is not if a replica has not created it yet, or not deleted it.
        """
        return self.deferred_deletion_enabled and all(
            SNAPSHOT_INSTANCE['defer_delete'].can_leave(row.status) for row in found
        )

    def _defer_on_replicas(
        self,
        session: Session,
        ctx: RequestContext,
        locked: LockedReplicas,
        found: Sequence[typing.Any],
    ) -> None:
        """A replica that is added meanwhile does not get the snapshot."""
        active = locked.get_active()
        subject = replicated_snapshots.instance_for_work(found, active)
        fire_all(session, SNAPSHOT_INSTANCE, [row.id for row in found], 'defer_delete')
        if not locked.has_several:
            self._delete_deferred(session, ctx, subject.id)
            return
        self._credit_deferred(session, subject.id)
        self.for_replicas.on(active.host).delete_replicated_snapshot_deferred(
            session, ctx, snapshot_instance_id=subject.id
        )

    def _begin_deletion(
        self, session: Session, found: Sequence[typing.Any], *, force: bool
    ) -> None:
        ids: dict[str, list[str]] = {}
        for row in found:
            event = (
                'force_delete' if force else replicated_snapshots.deletion_event(row)
            )
            ids.setdefault(event, []).append(row.id)
        for event, of_event in sorted(ids.items()):
            fire_all(session, SNAPSHOT_INSTANCE, of_event, event)

    # Revert

    def revert(
        self, ctx: RequestContext, share: rows.ShareTarget, snapshot_id: str
    ) -> None:
        """Request that a share is reverted to its newest snapshot."""
        try:
            self._revert(ctx, share, snapshot_id)
        except (
            exception.ShareSizeExceedsAvailableQuota,
            exception.ShareReplicaSizeExceedsAvailableQuota,
        ) as error:
            # The published code of this error is 403 for revert.
            raise exception.Forbidden(error.msg) from error

    @admission_controlled
    @transaction
    def _revert(
        self,
        session: Session,
        ctx: RequestContext,
        share: rows.ShareTarget,
        snapshot_id: str,
    ) -> None:
        locked_replicas = self._replicas(session, share, 'revert')
        active_id = (
            locked_replicas.get_active().id if locked_replicas else share.instance_id
        )
        found = snapshots.list_instances(session, snapshot_id)
        instance = reverts.get_revertible(share, active_id, snapshot_id, found)
        if locked_replicas:
            replicated_snapshots.check_displayed_status(
                snapshot_id, found, {SnapshotStatus.AVAILABLE}, 'restore'
            )
        # Both moves or none: of two requests for one of them, one fails.
        was_lost = (
            not locked_replicas
            and share.status == InstanceStatus.ERROR
            and reverts.was_lost(session, active_id, instance.instance_id)
        )
        moves = TransitionBatch(session)
        moves.fire_one(
            SHARE_INSTANCE, active_id, 'revert_again' if was_lost else 'revert'
        )
        moves.fire_one(
            SNAPSHOT_INSTANCE,
            instance.instance_id,
            'restore_again' if was_lost else 'restore',
        )
        moves.write()
        parent = snapshots.get_parent(session, active_id)
        self._refuse_soft_deleted(parent)
        reverts.check(session, share, parent, instance)
        if locked_replicas:
            # The other replicas have the data that is about to be reverted.
            share_moves.mark_all_out_of_sync(session, share.id)
        growth = instance.share_size - parent.size
        if growth > 0:
            charges.charge(
                session,
                owner_of(parent),
                size_deltas(
                    parent, growth, len(locked_replicas.rows) if locked_replicas else 1
                ),
                limits=self.limits,
                reserve=True,
            )
        submit = (
            self.for_replicas.on(parent.host).revert_to_replicated_snapshot
            if _has_several(locked_replicas)
            else self.work.on(parent.host).revert_to_snapshot
        )
        submit(session, ctx, instance_id=active_id, snapshot_id=snapshot_id)

    # Administration

    @transaction
    def reset_status(
        self,
        session: Session,
        ctx: RequestContext,
        snapshot: rows.SnapshotTarget,
        status: str,
    ) -> None:
        """Set the displayed status of a snapshot by `reset_status`.

        Sets the status of its instances except those on replicas that are
        out of sync, which may not have the data. Raises InvalidInput for
        statuses that are not in the published list.
        """
        event = reset_event(SNAPSHOT_INSTANCE, status, allowed=SNAPSHOT_RESETS)
        found = snapshots.list_instances(session, snapshot.id)
        if replicated_snapshots.are_replicated(found):
            replicas.lock_instances(session, snapshot.share_id)
            found = replicated_snapshots.status_determining(
                snapshots.list_instances(session, snapshot.id)
            )
        fire_all(session, SNAPSHOT_INSTANCE, [row.instance_id for row in found], event)
        for row in found:
            refuse_reset(session, row.share_instance_id)
            refuse_contradiction(session, SNAPSHOT_INSTANCE, row.instance_id, event)

    @transaction
    def reset_instance_status(
        self,
        session: Session,
        ctx: RequestContext,
        snapshot_instance_id: str,
        status: str,
    ) -> None:
        """Set the status of one instance, which has its own list."""
        event = reset_event(SNAPSHOT_INSTANCE, status, allowed=INSTANCE_RESETS)
        fire(session, SNAPSHOT_INSTANCE, snapshot_instance_id, event)
        instance = snapshots.find(session, snapshot_instance_id)
        assert instance is not None  # the guard has found it
        refuse_reset(session, instance.share_instance_id)
        refuse_contradiction(session, SNAPSHOT_INSTANCE, snapshot_instance_id, event)


def owner_user_id(ctx: RequestContext, share: rows.OwnedRow) -> str | None:
    """Return the user of a snapshot, which is in the share's project."""
    if ctx.project_id == share.project_id:
        return ctx.user_id
    return share.user_id


def _has_several(locked_replicas: LockedReplicas | None) -> bool:
    return locked_replicas is not None and locked_replicas.has_several


def _new_instances(
    snapshot: Mapping[str, typing.Any], instance_ids: Mapping[str, str]
) -> Iterator[dict[str, typing.Any]]:
    """Yield the rows of a new snapshot on share instances, by their ids."""
    for share_instance_id, id in instance_ids.items():
        yield {
            'id': id,
            'snapshot_id': snapshot['id'],
            'share_instance_id': share_instance_id,
            'progress': '0%',
            'created_at': snapshot['created_at'],
        }
