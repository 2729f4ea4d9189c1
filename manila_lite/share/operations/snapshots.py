"""Accept requests about snapshots, and to go back to one."""

from collections.abc import Mapping, Sequence
import typing

from manila_lite import exception
from manila_lite.context import RequestContext
from manila_lite.db.queries.access import snapshot_rules
from manila_lite.db.queries.replicas import replicas
from manila_lite.db.queries.shares import clone_sources
from manila_lite.db.queries.snapshots import snapshots
from manila_lite.db.session import Database
from manila_lite.db.session import Session
from manila_lite.db.session import transaction
from manila_lite.db.transitions import TransitionBatch
from manila_lite.db.transitions import fire
from manila_lite.db.transitions import fire_all
from manila_lite.quota import charges
from manila_lite.quota import snapshots as books
from manila_lite.quota.charges import Owner
from manila_lite.quota.shares import owner_of
from manila_lite.quota.shares import size_deltas
from manila_lite.quota.snapshots import deltas_of
from manila_lite.rpc.contract import Client
from manila_lite.share.operations.replication import (
    snapshots as replicated_snapshots,
)
from manila_lite.share.operations.replication.snapshots import LockedReplicas
from manila_lite.states.access_rule import RulesStatus
from manila_lite.states.share_instance import SHARE_INSTANCE
from manila_lite.states.snapshot_instance import INSTANCE_RESETS
from manila_lite.states.snapshot_instance import SNAPSHOT_INSTANCE
from manila_lite.states.snapshot_instance import SNAPSHOT_RESETS
from manila_lite.states.snapshot_instance import SnapshotStatus
from manila_lite.work.admission import AdmissionControl
from manila_lite.work.admission import admission_controlled


class Snapshots:
    """Each method is a transaction: all of a request, or none of it.

    A status that does not allow a request raises InvalidStatus, whose
    code is the caller's to choose. `for_replicas` has the work on shares
    with several replicas.
    """

    def __init__(
        self,
        db: Database,
        limits: Mapping[str, int],
        work: Client,
        for_replicas: Client,
        admission: AdmissionControl,
    ):
        self.db = db
        self.limits = limits
        self.work = work
        self.for_replicas = for_replicas
        self.admission = admission

    # Create

    @admission_controlled
    @transaction
    def create(
        self,
        session: Session,
        ctx: RequestContext,
        share: typing.Any,
        *,
        name: str | None = None,
        description: str | None = None,
        metadata: Mapping[str, str] | None = None,
    ) -> dict[str, typing.Any]:
        """Accept a snapshot; its row. The share is snapshotting meanwhile.

        One operation at a time on a share, and a time behind that guard,
        have the order of `created_at` be that of the back end. It is
        taken of the active replica, and then gets to the others.
        """
        if not share.snapshot_support:
            raise exception.SnapshotsUnsupported(share_id=share.id)
        copies = self._replicas(session, share, 'snapshot')
        active_id = copies.get_active().id if copies else share.instance_id
        moves = TransitionBatch(session)
        moves.fire_one(SHARE_INSTANCE, active_id, 'snapshot')
        parent = snapshots.get_parent(session, active_id)
        self._refuse_soft_deleted(parent)
        snapshot_id = session.new_id()
        owner = Owner(
            parent.project_id, owner_user_id(ctx, parent), parent.share_type_id
        )
        charges.charge(
            session, owner, deltas_of(parent.size), limits=self.limits
        )
        created_at = snapshots.next_created_at(session, parent)
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
            'created_at': created_at,
        }
        snapshots.insert(session, values, metadata or {})
        born = {
            of: session.new_id()
            for of in (copies.ids_for_new_snapshot if copies else [active_id])
        }
        moves.insert_rows(
            SNAPSHOT_INSTANCE,
            'create',
            [
                {
                    'id': id,
                    'snapshot_id': snapshot_id,
                    'share_instance_id': of,
                    'progress': '0%',
                    'created_at': created_at,
                }
                for of, id in born.items()
            ],
        )
        moves.write()
        self._on(
            parent.host,
            copies,
            'create_snapshot_instance',
            'create_replicated_snapshot',
        )(
            session,
            ctx,
            snapshot_instance_id=born[active_id],
            share_instance_id=active_id,
        )
        return values

    def _replicas(self, session, share, what) -> LockedReplicas | None:
        """All replicas of a share that may have several."""
        if not share.replication_type:
            return None
        copies = replicated_snapshots.lock_replicas(session, share.id)
        copies.refuse_during_promotion(what)
        return copies

    def _on(self, host, copies, plain, of_several):
        """How work is asked for on the back end of the active replica."""
        if copies and copies.has_several:
            return getattr(self.for_replicas.on(host), of_several)
        return getattr(self.work.on(host), plain)

    def _refuse_soft_deleted(self, share: typing.Any) -> None:
        if share.is_soft_deleted:
            raise exception.ShareSoftDeleted(share_id=share.share_id)

    # Change

    @transaction
    def update(
        self,
        session: Session,
        ctx: RequestContext,
        snapshot: typing.Any,
        values: Mapping[str, object],
    ) -> None:
        """Change the name or the description."""
        if values:
            snapshots.update(session, snapshot.id, values)

    # Delete

    @transaction
    def delete(
        self, session: Session, ctx: RequestContext, snapshot: typing.Any
    ) -> None:
        """Ask for the end of a snapshot and of all its instances."""
        self._delete(session, ctx, snapshot, 'delete', force=False)
        clone_sources.check_not_being_cloned(session, snapshot.id)

    @transaction
    def force_delete(
        self, session: Session, ctx: RequestContext, snapshot: typing.Any
    ) -> None:
        """The same from every status; errors of the back end are borne."""
        self._delete(session, ctx, snapshot, 'force_delete', force=True)

    def _delete(self, session, ctx, snapshot, event, *, force):
        found = snapshots.list_instances(session, snapshot.id)
        if replicated_snapshots.are_replicated(found):
            self._delete_on_replicas(session, ctx, snapshot, force=force)
            return
        fire_all(
            session,
            SNAPSHOT_INSTANCE,
            [row.instance_id for row in found],
            event,
        )
        for row in found:
            self.work.on(row.host).delete_snapshot_instance(
                session, ctx, snapshot_instance_id=row.instance_id, force=force
            )

    def _delete_on_replicas(self, session, ctx, snapshot, *, force):
        """From the active replica, and from there on from the others.

        By force also where no back end can be asked.
        """
        copies = replicated_snapshots.lock_replicas(session, snapshot.share_id)
        found = snapshots.list_for_snapshot(session, snapshot.id)
        if not found:
            raise exception.ShareSnapshotNotFound(snapshot_id=snapshot.id)
        if not force:
            copies.refuse_during_promotion('delete')
            replicated_snapshots.check_deletable(snapshot.id, found)
        active = copies.active if force else copies.get_active()
        self._begin_deletion(session, found, force=force)
        if active is None:
            for row in found:
                books.remove_and_credit(session, row)
            return
        about = replicated_snapshots.instance_for_work(found, active)
        self._on(
            active.host,
            copies,
            'delete_snapshot_instance',
            'delete_replicated_snapshot',
        )(session, ctx, snapshot_instance_id=about.id, force=force)

    def _begin_deletion(
        self, session, found: Sequence[typing.Any], *, force: bool
    ) -> None:
        ids: dict[str, list[str]] = {}
        for row in found:
            event = (
                'force_delete'
                if force
                else replicated_snapshots.deletion_event(row)
            )
            ids.setdefault(event, []).append(row.id)
        for event, of_event in sorted(ids.items()):
            fire_all(
                session,
                SNAPSHOT_INSTANCE,
                of_event,
                event,
                updated_at=session.now,
            )

    # Revert

    def revert(
        self, ctx: RequestContext, share: typing.Any, snapshot_id: str
    ) -> None:
        """Ask for the share to become what its newest snapshot is."""
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
        share: typing.Any,
        snapshot_id: str,
    ) -> None:
        copies = self._replicas(session, share, 'revert')
        active_id = copies.get_active().id if copies else share.instance_id
        found = snapshots.list_instances(session, snapshot_id)
        instance = self._revertible(share, active_id, snapshot_id, found)
        if copies:
            replicated_snapshots.check_displayed_status(
                snapshot_id, found, {SnapshotStatus.AVAILABLE}, 'restore'
            )
        # Both or none: of two who want one of them, one is refused.
        moves = TransitionBatch(session)
        moves.fire_one(SHARE_INSTANCE, active_id, 'revert')
        moves.fire_one(SNAPSHOT_INSTANCE, instance.instance_id, 'restore')
        moves.write()
        parent = snapshots.get_parent(session, active_id)
        self._check_revert(session, parent, instance)
        if copies:
            # They have what is about to be given up.
            replicas.mark_all_out_of_sync(session, share.id)
        growth = instance.share_size - parent.size
        if growth > 0:
            charges.charge(
                session,
                owner_of(parent),
                size_deltas(parent, growth, len(copies.rows) if copies else 1),
                limits=self.limits,
                reserve=True,
            )
        self._on(
            parent.host,
            copies,
            'revert_to_snapshot',
            'revert_to_replicated_snapshot',
        )(session, ctx, instance_id=active_id, snapshot_id=snapshot_id)

    def _revertible(self, share, share_instance_id, snapshot_id, instances):
        """The instance of the snapshot that the share may go back to.

        Nobody learns whether a snapshot of another share exists.
        """
        if share.is_soft_deleted:
            raise exception.ShareSoftDeleted(share_id=share.id)
        found = [
            row
            for row in instances
            if row.share_instance_id == share_instance_id
        ]
        if not found:
            raise exception.InvalidInput(
                reason=f'share {share.id} has no snapshot {snapshot_id}'
            )
        if not share.revert_to_snapshot_support:
            raise exception.InvalidInput(
                reason=f'share {share.id} does not support reverting to a '
                'snapshot'
            )
        return found[0]

    def _check_revert(self, session, parent, instance):
        """What has to be so, behind the guard, beside the statuses."""
        self._refuse_soft_deleted(parent)
        if parent.newest_id != instance.id:
            raise exception.NotNewestSnapshot(
                snapshot_id=instance.id, newest_id=parent.newest_id
            )
        if parent.access_rules_status != RulesStatus.ACTIVE:
            raise exception.AccessRulesNotActive(
                share_id=parent.share_id, status=parent.access_rules_status
            )
        if snapshot_rules.has_rules_in_flight(session, instance.instance_id):
            raise exception.SnapshotAccessRulesChanging(
                snapshot_id=instance.id
            )

    # Administration

    @transaction
    def reset_status(
        self,
        session: Session,
        ctx: RequestContext,
        snapshot: typing.Any,
        status: str,
    ) -> None:
        """Set what a snapshot shows by decree.

        That is the status of its instances, but of those on replicas that
        have fallen behind: no decree brings anything there. Raises
        InvalidInput for words that are not in the published list.
        """
        event = _reset(status, SNAPSHOT_RESETS)
        found = snapshots.list_instances(session, snapshot.id)
        if replicated_snapshots.are_replicated(found):
            replicas.lock_instances(session, snapshot.share_id)
            found = replicated_snapshots.status_determining(
                snapshots.list_instances(session, snapshot.id)
            )
        fire_all(
            session,
            SNAPSHOT_INSTANCE,
            [row.instance_id for row in found],
            event,
        )

    @transaction
    def reset_instance_status(
        self,
        session: Session,
        ctx: RequestContext,
        snapshot_instance_id: str,
        status: str,
    ) -> None:
        """The same for one instance, which has a list of its own."""
        fire(
            session,
            SNAPSHOT_INSTANCE,
            snapshot_instance_id,
            _reset(status, INSTANCE_RESETS),
        )


def owner_user_id(ctx: RequestContext, share: typing.Any) -> str | None:
    """Whose the snapshot is: it stays in the project of its share."""
    if ctx.project_id == share.project_id:
        return ctx.user_id
    return share.user_id


def _reset(status: str, allowed: frozenset[str]) -> str:
    if status not in allowed:
        raise exception.InvalidInput(
            reason=f'status {status!r} is none of {", ".join(sorted(allowed))}'
        )
    return SNAPSHOT_INSTANCE.reset_event(status)
