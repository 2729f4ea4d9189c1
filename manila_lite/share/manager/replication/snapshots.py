"""Create, delete and revert to snapshots of replicated shares.

All work runs on the back end of the active replica; the driver propagates
it to the others, and its reply may report on them as well. Snapshots
missing in the reply are polled with the updates of passive replicas; on
active replicas they count as done.
"""

from collections.abc import Iterable, Iterator, Mapping
import contextlib
import dataclasses
import functools

from manila_lite import exception
from manila_lite.coordination import Coordinator, NullCoordinator
from manila_lite.db.moves import shares as share_moves
from manila_lite.db.moves.snapshots import release_share
from manila_lite.db.queries.replicas import replicas
from manila_lite.db.queries.snapshots import (
    exports as snapshot_exports,
    snapshots as rows,
)
from manila_lite.db.rows import InstanceRow, SnapshotInstanceRow, SnapshotOnInstanceRow
from manila_lite.db.session import Session
from manila_lite.db.transitions import fire_matching
from manila_lite.host import Host, ServiceHost
from manila_lite.quota.snapshots import remove_and_credit, remove_deleted
from manila_lite.rpc.contract import Client, implements, work
from manila_lite.rpc.share import ReplicatedSnapshotsRpc
from manila_lite.share.drivers.base import (
    ReplicatedSnapshotReply,
    ShareDriver,
    normalise_export_locations,
)
from manila_lite.share.manager.access import teardown
from manila_lite.share.manager.driver_view import replica_view
from manila_lite.share.manager.driver_view.replica_view import (
    ReplicatedShare,
    find_on,
    require_active,
)
from manila_lite.share.manager.driver_view.share_view import (
    LoadedInstance,
    LoadedSnapshot,
)
from manila_lite.share.manager.endpoint import owner_context, undo_if_gone
from manila_lite.share.manager.guarded_driver import driver_context
from manila_lite.share.manager.replication.roles import replica_lock
from manila_lite.share.manager.snapshots import (
    PROGRESS_DONE,
    REVERT_PAUSE,
    RevertTarget,
    SnapshotsEndpoint,
    UnusableSnapshot,
    expect,
    get_revert_target,
)
from manila_lite.states.share_instance import InstanceStatus
from manila_lite.states.share_replica import BROKEN, ReplicaState
from manila_lite.states.snapshot_instance import (
    BEING_DELETED,
    DELETION_FAILURES,
    SNAPSHOT_INSTANCE,
    SnapshotStatus,
)
from manila_lite.work.job import JobContext
from manila_lite.work.table import Claim

DELETING_PAUSE = 5.0
"""Seconds until a driver that is still deleting is called again."""

GONE = 'deleted'
"""The status a driver reports for an instance that no longer exists."""

_FAILED = frozenset({SnapshotStatus.ERROR, SnapshotStatus.ERROR_DELETING})

SnapshotReplies = Mapping[str, ReplicatedSnapshotReply]


@implements(ReplicatedSnapshotsRpc)
@dataclasses.dataclass(eq=False)
class ReplicatedSnapshotsEndpoint:
    """Carries out work on snapshots of shares active on one back end."""

    snapshots: SnapshotsEndpoint
    snapshot_client: Client[ReplicatedSnapshotsRpc]
    service_host: ServiceHost
    locks: Coordinator | NullCoordinator

    @property
    def driver(self) -> ShareDriver:
        return self.snapshots.driver

    # Create

    @work(expects=SnapshotStatus.CREATING)
    def create_replicated_snapshot(
        self, job: JobContext, snapshot_instance_id: str, share_instance_id: str
    ) -> None:
        snapshot: LoadedSnapshot = job.prepared
        with self._locked_share(job, snapshot.row.share_id) as share:
            if share is not None:
                self._create(job, share, snapshot)

    def _create(
        self, job: JobContext, share: ReplicatedShare, snapshot: LoadedSnapshot
    ) -> None:
        row, server = snapshot.row, snapshot.share_server
        replica_list = share.replicas_for_driver(self.snapshots.names)
        instances = [
            self.snapshots.view(one) for one in share.instances_of(row.snapshot_id)
        ]
        replies = _by_id(
            self.driver.create_replicated_snapshot(
                driver_context(), replica_list, instances, share_server=server
            )
        )
        own = replies.get(row.id, {})
        if own.get('status', SnapshotStatus.AVAILABLE) != SnapshotStatus.AVAILABLE:
            raise UnusableSnapshot(own)
        undo = functools.partial(
            self.driver.delete_replicated_snapshot,
            driver_context(),
            replica_list,
            instances,
            share_server=server,
        )
        with undo_if_gone(job, rows.find, row.id, undo):
            job.finish(self._created, row, replies)

    def _created(
        self, session: Session, row: SnapshotInstanceRow, replies: SnapshotReplies
    ) -> None:
        self.snapshots.created(session, row, replies.get(row.id, {}))
        for other in rows.list_for_snapshot(session, row.snapshot_id):
            if other.id != row.id:
                _record_created(session, other, replies.get(other.id, {}))

    def failed_create_replicated_snapshot(
        self, session: Session, job: Claim, error: Exception
    ) -> bool:
        """Mark the snapshot as failed on all replicas."""
        row = rows.find(session, job.resource_id)
        if row is not None:
            if isinstance(error, UnusableSnapshot):
                rows.set_provider_location(
                    session, row.id, error.reply.get('provider_location')
                )
            fail_others(session, row, SnapshotStatus.CREATING, 'create_failed')
        return False

    def dropped_create_replicated_snapshot(self, session: Session, job: Claim) -> None:
        release_share(session, job.args['share_instance_id'], excluding=job.resource_id)

    # Delete

    def prepare_delete_replicated_snapshot(
        self, session: Session, job: Claim
    ) -> teardown.SnapshotTeardown:
        return teardown.queue_snapshot_denials(
            session, expect(session, job, SnapshotStatus.DELETING), self.driver
        )

    def delete_replicated_snapshot(
        self, job: JobContext, snapshot_instance_id: str, force: bool = False
    ) -> None:
        removal: teardown.SnapshotTeardown = job.prepared
        share_id = removal.snapshot.row.share_id
        with self._locked_share(job, share_id) as share:
            if share is not None:
                self._delete(job, share, removal, force)

    def prepare_delete_replicated_snapshot_deferred(
        self, session: Session, job: Claim
    ) -> teardown.SnapshotTeardown:
        return teardown.queue_snapshot_denials(
            session, expect(session, job, SnapshotStatus.DEFERRED_DELETING), self.driver
        )

    def delete_replicated_snapshot_deferred(
        self, job: JobContext, snapshot_instance_id: str
    ) -> None:
        self.delete_replicated_snapshot(job, snapshot_instance_id)

    def _delete(
        self,
        job: JobContext,
        share: ReplicatedShare,
        removal: teardown.SnapshotTeardown,
        force: bool,
    ) -> None:
        row = removal.snapshot.row
        instances = [
            one
            for one in share.instances_of(row.snapshot_id)
            if one.row.status == row.status
        ]
        # Of several active replicas, one may have joined without it.
        active = share.active_among(
            [one.row.share_instance_id for one in instances]
        ) or require_active(share)
        if _back_end(active.row.host) != self.service_host:
            # Another replica has been promoted since.
            job.finish(self._forward, job.claim, share, row, active.row, force)
            return
        if active.row.status == InstanceStatus.REVERTING:
            # Force-deleted while its share is reverting, maybe to it.
            job.release(REVERT_PAUSE)
            return
        own = find_on(instances, active.row.id)
        # Without an instance on the active replica, nothing is left.
        replies = {} if own is None else self._remove(share, active, instances, removal)
        if own and replies.get(own.row.id, {}).get('status') == SnapshotStatus.DELETING:
            job.release(DELETING_PAUSE)
            return
        job.finish(self._deleted, row, replies, force)

    def _remove(
        self,
        share: ReplicatedShare,
        active: LoadedInstance,
        instances: list[LoadedSnapshot],
        removal: teardown.SnapshotTeardown,
    ) -> SnapshotReplies:
        """Return the driver's replies; a missing snapshot is success."""
        with contextlib.suppress(
            exception.SnapshotResourceNotFound, exception.ShareResourceNotFound
        ):
            if removal.snapshot.row.share_instance_id == active.row.id:
                teardown.deny_all_to_snapshot(
                    self.driver, self.snapshots.view(removal.snapshot), removal
                )
            return _by_id(
                self.driver.delete_replicated_snapshot(
                    driver_context(),
                    share.replicas_for_driver(self.snapshots.names),
                    [self.snapshots.view(one) for one in instances],
                    share_server=active.share_server,
                )
            )
        return {}

    def _deleted(
        self,
        session: Session,
        subject: SnapshotInstanceRow,
        replies: SnapshotReplies,
        force: bool,
    ) -> None:
        rows.lock(session, subject.snapshot_id)
        for row in rows.list_for_snapshot(session, subject.snapshot_id):
            if row.status != subject.status:
                continue
            status = replies.get(row.id, {}).get('status')
            if status in _FAILED:
                teardown.fail_snapshot_denials(session, row.id)
                fire_matching(
                    session,
                    SNAPSHOT_INSTANCE,
                    DELETION_FAILURES[row.status],
                    {'id': row.id},
                )
            elif status == GONE or not _is_pending_on(row, force):
                remove_deleted(session, row)

    def _forward(
        self,
        session: Session,
        job: Claim,
        share: ReplicatedShare,
        row: SnapshotInstanceRow,
        active: InstanceRow,
        force: bool,
    ) -> None:
        """Forward the work to the back end of the new active replica."""
        own = find_on(share.instances_of(row.snapshot_id), active.id)
        if own is not None and own.row.status == row.status:
            row = own.row
        client, ctx = self.snapshot_client.on(active.host), owner_context(job)
        if row.status == SnapshotStatus.DEFERRED_DELETING:
            client.delete_replicated_snapshot_deferred(
                session, ctx, snapshot_instance_id=row.id
            )
        else:
            client.delete_replicated_snapshot(
                session, ctx, snapshot_instance_id=row.id, force=force
            )

    def failed_delete_replicated_snapshot(
        self, session: Session, job: Claim, error: Exception
    ) -> bool:
        """Fail on all replicas; with force, remove the rows of all."""
        row = rows.find(session, job.resource_id)
        if row is None:
            return False
        if not job.args['force']:
            self._fail_deletion(session, row, SnapshotStatus.DELETING)
            return False
        rows.lock(session, row.snapshot_id)
        for one in rows.list_for_snapshot(session, row.snapshot_id):
            if one.status == SnapshotStatus.DELETING:
                remove_and_credit(session, one)
        return True

    def failed_delete_replicated_snapshot_deferred(
        self, session: Session, job: Claim, error: Exception
    ) -> bool:
        row = rows.find(session, job.resource_id)
        if row is not None:
            self._fail_deletion(session, row, SnapshotStatus.DEFERRED_DELETING)
        return False

    def _fail_deletion(
        self, session: Session, row: SnapshotInstanceRow, status: str
    ) -> None:
        teardown.fail_snapshot_denials(session, row.id)
        fail_others(session, row, status, DELETION_FAILURES[status])

    # Revert

    def prepare_revert_to_replicated_snapshot(
        self, session: Session, job: Claim
    ) -> RevertTarget:
        target = get_revert_target(session, job)
        if target.snapshot.share.row.replica_state != ReplicaState.ACTIVE:
            raise exception.ReplicationException(
                reason=f'replica {job.resource_id} is no longer active'
            )
        return target

    def revert_to_replicated_snapshot(
        self, job: JobContext, instance_id: str, snapshot_id: str
    ) -> None:
        target: RevertTarget = job.prepared
        share_id = target.snapshot.row.share_id
        with self._locked_share(job, share_id) as share:
            if share is not None:
                self._revert(job, share, target)

    def _revert(
        self, job: JobContext, share: ReplicatedShare, target: RevertTarget
    ) -> None:
        row, server = target.snapshot.row, target.snapshot.share_server
        replica_list = share.replicas_for_driver(self.snapshots.names)
        size = self.driver.revert_to_replicated_snapshot(
            driver_context(),
            next(one for one in replica_list if one['id'] == row.share_instance_id),
            replica_list,
            self.snapshots.view(target.snapshot),
            [self.snapshots.view(one) for one in share.instances_of(row.snapshot_id)],
            target.share_rules,
            target.snapshot_rules,
            share_server=server,
        )
        job.finish(self._reverted, job.claim, target.snapshot, size or row.share_size)

    def _reverted(
        self, session: Session, job: Claim, snapshot: LoadedSnapshot, size: int
    ) -> None:
        # Driver replies from before the revert are about the old data.
        replicas.lock_instances(session, snapshot.row.share_id)
        share_moves.mark_all_out_of_sync(session, snapshot.row.share_id)
        self.snapshots.reverted(session, job, snapshot, size)

    def dropped_revert_to_replicated_snapshot(
        self, session: Session, job: Claim
    ) -> None:
        """Mark replicas out of sync: the data of the share is unknown.

        The snapshot itself is unchanged.
        """
        row = rows.find_on_share_instance(
            session, job.args['snapshot_id'], job.resource_id
        )
        if row is not None:
            replicas.lock_instances(session, row.share_id)
            share_moves.mark_all_out_of_sync(session, row.share_id)
            fire_matching(session, SNAPSHOT_INSTANCE, 'restore_failed', {'id': row.id})

    # All

    @contextlib.contextmanager
    def _locked_share(
        self, job: JobContext, share_id: str
    ) -> Iterator[ReplicatedShare | None]:
        """Yield the share under its replica lock, or None without it."""
        with replica_lock(self.locks, job, share_id) as held:
            yield (
                job.read(replica_view.load_replicated_share, share_id) if held else None
            )

    def expect(self, session: Session, job: Claim, status: str) -> LoadedSnapshot:
        return expect(session, job, status)


def fail_others(
    session: Session, row: SnapshotInstanceRow, status: str, event: str
) -> None:
    """Fail the instances in this status on all other replicas, too."""
    others = [
        one.id
        for one in rows.list_for_snapshot(session, row.snapshot_id)
        if one.id != row.id and one.status == status
    ]
    if status in BEING_DELETED:
        for id in others:
            teardown.fail_snapshot_denials(session, id)
    if others:
        fire_matching(session, SNAPSHOT_INSTANCE, event, {'id': others})


def _record_created(
    session: Session, row: SnapshotInstanceRow, reply: ReplicatedSnapshotReply
) -> None:
    """Record what the driver reports of the snapshot on another replica.

    Without a report, an instance on a passive replica stays creating and
    is polled later; one on an active replica is available.
    """
    status = reply.get(
        'status',
        SnapshotStatus.AVAILABLE
        if row.replica_state == ReplicaState.ACTIVE
        else SnapshotStatus.CREATING,
    )
    if status == SnapshotStatus.ERROR:
        fire_matching(session, SNAPSHOT_INSTANCE, 'create_failed', {'id': row.id})
    if status != SnapshotStatus.AVAILABLE:
        return
    moved = fire_matching(
        session,
        SNAPSHOT_INSTANCE,
        'created',
        {'id': row.id},
        progress=PROGRESS_DONE,
        provider_location=(reply.get('provider_location') or row.provider_location),
    )
    if moved and row.mount_snapshot_support:
        snapshot_exports.replace(
            session, row.id, normalise_export_locations(reply.get('export_locations'))
        )


def _is_pending_on(row: SnapshotOnInstanceRow, force: bool) -> bool:
    """Return whether the deletion on a replica is still to be polled.

    It is complete on active replicas and on replicas without a host. With
    force, it is not awaited on a replica in error.
    """
    if row.replica_state == ReplicaState.ACTIVE or not row.host:
        return False
    return not force or not (
        row.replica_state in BROKEN or row.share_status == InstanceStatus.ERROR
    )


def _by_id(replies: Iterable[ReplicatedSnapshotReply] | None) -> SnapshotReplies:
    return {reply['id']: reply for reply in replies or ()}


def _back_end(host: str | None) -> str:
    return Host.parse(host or '').service_host
