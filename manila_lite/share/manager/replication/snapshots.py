"""Carries out what is asked of snapshots of shares that have replicas.

All of it is done on the back end with the active replica, from where the
driver has it get to the others. Its answer may tell of them too. Of those
it is silent about, the ones on passive replicas are asked for when these
are updated, and active ones are as was wanted.
"""

from collections.abc import Iterable, Iterator, Mapping
import contextlib

from manila_lite import exception
from manila_lite.context import RequestContext
from manila_lite.coordination import Coordinator
from manila_lite.coordination import NullCoordinator
from manila_lite.db.queries.replicas import replicas
from manila_lite.db.queries.snapshots import exports as snapshot_exports
from manila_lite.db.queries.snapshots import snapshots as rows
from manila_lite.db.session import Session
from manila_lite.db.transitions import fire_matching
from manila_lite.messages import Detail
from manila_lite.quota.snapshots import remove_and_credit
from manila_lite.rpc.contract import Client
from manila_lite.rpc.contract import implements
from manila_lite.rpc.share import ReplicatedSnapshotsRpc
from manila_lite.share.drivers.base import ReplicatedSnapshotReply
from manila_lite.share.drivers.base import ShareDriver
from manila_lite.share.drivers.base import normalise_export_locations
from manila_lite.share.manager.access import (
    snapshot_rules as access_of_snapshots,
)
from manila_lite.share.manager.access.snapshot_rules import SnapshotTeardown
from manila_lite.share.manager.driver_view import replica_view
from manila_lite.share.manager.driver_view.replica_view import ReplicatedShare
from manila_lite.share.manager.driver_view.share_view import LoadedInstance
from manila_lite.share.manager.driver_view.share_view import LoadedSnapshot
from manila_lite.share.manager.replication.lock import replica_lock
from manila_lite.share.manager.snapshots import PROGRESS_DONE
from manila_lite.share.manager.snapshots import REVERT_PAUSE
from manila_lite.share.manager.snapshots import RevertTarget
from manila_lite.share.manager.snapshots import SnapshotsEndpoint
from manila_lite.share.manager.snapshots import UnusableSnapshot
from manila_lite.share.manager.snapshots import expect
from manila_lite.share.manager.snapshots import get_revert_target
from manila_lite.share.manager.snapshots import release_share
from manila_lite.states.share_instance import InstanceStatus
from manila_lite.states.share_replica import ReplicaState
from manila_lite.states.snapshot_instance import SNAPSHOT_INSTANCE
from manila_lite.states.snapshot_instance import SnapshotStatus

DELETING_PAUSE = 5.0
"""Seconds before a driver is asked again that is not done with deleting."""

GONE = 'deleted'
"""What a driver says of an instance that is not there any more."""

_FAILED = frozenset({SnapshotStatus.ERROR, SnapshotStatus.ERROR_DELETING})

SnapshotReplies = Mapping[str, ReplicatedSnapshotReply]


@implements(ReplicatedSnapshotsRpc)
class ReplicatedSnapshotsEndpoint:
    """The snapshots of shares whose active replica is on one back end."""

    def __init__(
        self,
        snapshots: SnapshotsEndpoint,
        work: Client,
        service_host: str,
        locks: Coordinator | NullCoordinator,
    ):
        self.snapshots = snapshots
        self.work = work
        self.service_host = service_host
        self.locks = locks

    @property
    def driver(self) -> ShareDriver:
        return self.snapshots.driver

    # Create

    def prepare_create_replicated_snapshot(
        self, session: Session, job
    ) -> LoadedSnapshot:
        return expect(session, job, SnapshotStatus.CREATING)

    def create_replicated_snapshot(
        self, job, snapshot_instance_id, share_instance_id
    ):
        with self._turn(job, job.prepared.row.share_id) as share:
            if share is not None:
                self._create(job, share)

    def _create(self, job, share: ReplicatedShare) -> None:
        row, server = job.prepared.row, job.prepared.share_server
        replicas = share.shown(self.snapshots.names)
        copies = [
            self.snapshots.view(one)
            for one in share.instances_of(row.snapshot_id)
        ]
        answers = _by_id(
            self.driver.create_replicated_snapshot(
                RequestContext(), replicas, copies, share_server=server
            )
        )
        own = answers.get(row.id, {})
        if (
            own.get('status', SnapshotStatus.AVAILABLE)
            != SnapshotStatus.AVAILABLE
        ):
            raise UnusableSnapshot(own)
        try:
            job.finish(self._created, row, answers)
        except (exception.ClaimLost, exception.ResourceNotFound):
            if job.read(rows.find, row.id) is None:
                # Given up and deleted meanwhile: nobody would know it.
                self.driver.delete_replicated_snapshot(
                    RequestContext(), replicas, copies, share_server=server
                )
            raise

    def _created(
        self, session: Session, row, answers: SnapshotReplies
    ) -> None:
        self.snapshots.created(session, row, answers.get(row.id, {}))
        for other in rows.list_for_snapshot(session, row.snapshot_id):
            if other.id != row.id:
                _note_created(session, other, answers.get(other.id, {}))

    def failed_create_replicated_snapshot(self, session, job, error):
        """It has failed on all replicas, wherever it is."""
        row = rows.find(session, job.resource_id)
        if row is not None:
            if isinstance(error, UnusableSnapshot):
                rows.set_provider_location(
                    session, row.id, error.answer.get('provider_location')
                )
            fail_others(session, row, SnapshotStatus.CREATING, 'create_failed')
        return False

    def dropped_create_replicated_snapshot(self, session, job):
        release_share(
            session, job.args['share_instance_id'], but=job.resource_id
        )

    # Delete

    def prepare_delete_replicated_snapshot(
        self, session: Session, job
    ) -> SnapshotTeardown:
        return access_of_snapshots.queue_denials(
            session, expect(session, job, SnapshotStatus.DELETING), self.driver
        )

    def delete_replicated_snapshot(
        self, job, snapshot_instance_id, force=False
    ):
        with self._turn(job, job.prepared.found.row.share_id) as share:
            if share is not None:
                self._delete(job, share, job.prepared, force)

    def _delete(
        self,
        job,
        share: ReplicatedShare,
        leaving: SnapshotTeardown,
        force: bool,
    ) -> None:
        active, row = _active(share), leaving.found.row
        if _back_end(active.row.host) != self.service_host:
            # Another has been promoted since.
            job.finish(self._pass_on, job, share, row, active.row, force)
            return
        if active.row.status == InstanceStatus.REVERTING:
            # Deleted by force while its share is reverting, maybe to it.
            job.release(REVERT_PAUSE)
            return
        copies = [
            one
            for one in share.instances_of(row.snapshot_id)
            if one.row.status == SnapshotStatus.DELETING
        ]
        own = _on(copies, active.row.id)
        # Where the active replica has none, there is none to begin with.
        answers = (
            {} if own is None else self._remove(share, active, copies, leaving)
        )
        if (
            own
            and answers.get(own.row.id, {}).get('status')
            == SnapshotStatus.DELETING
        ):
            job.release(DELETING_PAUSE)
            return
        job.finish(self._deleted, row.snapshot_id, answers, force)

    def _remove(
        self,
        share: ReplicatedShare,
        active: LoadedInstance,
        copies: list[LoadedSnapshot],
        leaving: SnapshotTeardown,
    ) -> SnapshotReplies:
        """What the driver says; where it is not there, it is gone."""
        with contextlib.suppress(
            exception.SnapshotResourceNotFound, exception.ShareResourceNotFound
        ):
            if leaving.found.row.share_instance_id == active.row.id:
                access_of_snapshots.deny_all(
                    self.driver, self.snapshots.view(leaving.found), leaving
                )
            return _by_id(
                self.driver.delete_replicated_snapshot(
                    RequestContext(),
                    share.shown(self.snapshots.names),
                    [self.snapshots.view(one) for one in copies],
                    share_server=active.share_server,
                )
            )
        return {}

    def _deleted(
        self,
        session: Session,
        snapshot_id: str,
        answers: SnapshotReplies,
        force: bool,
    ) -> None:
        rows.lock(session, snapshot_id)
        for row in rows.list_for_snapshot(session, snapshot_id):
            if row.status != SnapshotStatus.DELETING:
                continue
            status = answers.get(row.id, {}).get('status')
            if status in _FAILED:
                access_of_snapshots.fail_denials(session, row.id)
                fire_matching(
                    session,
                    SNAPSHOT_INSTANCE,
                    'delete_failed',
                    {'id': row.id},
                    updated_at=session.now,
                )
            elif status == GONE or not _is_asked_for(row, force):
                remove_and_credit(session, row)

    def _pass_on(
        self,
        session: Session,
        job,
        share: ReplicatedShare,
        row,
        active,
        force: bool,
    ) -> None:
        """Have the back end do it that has the active replica now."""
        own = _on(share.instances_of(row.snapshot_id), active.id)
        is_known = (
            own is not None and own.row.status == SnapshotStatus.DELETING
        )
        self.work.on(active.host).delete_replicated_snapshot(
            session,
            RequestContext(project_id=job.project_id, user_id=job.user_id),
            snapshot_instance_id=own.row.id if is_known else row.id,
            force=force,
        )

    def failed_delete_replicated_snapshot(self, session, job, error):
        """It stays, on all replicas; by force the rows go, of all."""
        row = rows.find(session, job.resource_id)
        if row is None:
            return False
        if not job.args['force']:
            access_of_snapshots.fail_denials(session, row.id)
            fail_others(session, row, SnapshotStatus.DELETING, 'delete_failed')
            return False
        rows.lock(session, row.snapshot_id)
        for one in rows.list_for_snapshot(session, row.snapshot_id):
            if one.status == SnapshotStatus.DELETING:
                remove_and_credit(session, one)
        return True

    # Revert

    def prepare_revert_to_replicated_snapshot(
        self, session: Session, job
    ) -> RevertTarget:
        found = get_revert_target(session, job)
        if found.snapshot.share.row.replica_state != ReplicaState.ACTIVE:
            raise exception.ReplicationException(
                reason=f'replica {job.resource_id} is not active any more'
            )
        return found

    def revert_to_replicated_snapshot(self, job, instance_id, snapshot_id):
        with self._turn(job, job.prepared.snapshot.row.share_id) as share:
            if share is not None:
                self._revert(job, share, job.prepared)

    def _revert(
        self, job, share: ReplicatedShare, found: RevertTarget
    ) -> None:
        row, server = found.snapshot.row, found.snapshot.share_server
        replicas = share.shown(self.snapshots.names)
        size = self.driver.revert_to_replicated_snapshot(
            RequestContext(),
            next(
                one for one in replicas if one['id'] == row.share_instance_id
            ),
            replicas,
            self.snapshots.view(found.snapshot),
            [
                self.snapshots.view(one)
                for one in share.instances_of(row.snapshot_id)
            ],
            found.share_rules,
            found.snapshot_rules,
            share_server=server,
        )
        job.finish(self._reverted, job, found.snapshot, size or row.share_size)

    def _reverted(
        self, session: Session, job, found: LoadedSnapshot, size: int
    ) -> None:
        # Asked before it had ended, a driver knows of what there was.
        replicas.lock_instances(session, found.row.share_id)
        replicas.mark_all_out_of_sync(session, found.row.share_id)
        self.snapshots.reverted(session, job, found, size)

    def dropped_revert_to_replicated_snapshot(self, session, job):
        """Nobody knows what the share has; its snapshot is as it was."""
        row = rows.find_on_share_instance(
            session, job.args['snapshot_id'], job.resource_id
        )
        if row is not None:
            replicas.lock_instances(session, row.share_id)
            replicas.mark_all_out_of_sync(session, row.share_id)
            fire_matching(
                session,
                SNAPSHOT_INSTANCE,
                'restore_failed',
                {'id': row.id},
                updated_at=session.now,
            )

    # All

    @contextlib.contextmanager
    def _turn(self, job, share_id: str) -> Iterator[ReplicatedShare | None]:
        """The share with its replicas when it is our turn, else None."""
        with replica_lock(self.locks, job, share_id) as held:
            yield (
                job.read(replica_view.load_replicated_share, share_id)
                if held
                else None
            )


def fail_others(session: Session, row, status: str, event: str) -> None:
    """Have what is in this status of all other replicas fail, too."""
    others = [
        one.id
        for one in rows.list_for_snapshot(session, row.snapshot_id)
        if one.id != row.id and one.status == status
    ]
    if status == SnapshotStatus.DELETING:
        for id in others:
            access_of_snapshots.fail_denials(session, id)
    if others:
        fire_matching(
            session,
            SNAPSHOT_INSTANCE,
            event,
            {'id': others},
            updated_at=session.now,
        )


def _note_created(
    session: Session, row, answer: ReplicatedSnapshotReply
) -> None:
    """Write down what the driver says of the snapshot on another replica.

    Of one that it does not say it of, it is asked in a while, unless that
    is active.
    """
    status = answer.get(
        'status',
        SnapshotStatus.AVAILABLE
        if row.replica_state == ReplicaState.ACTIVE
        else SnapshotStatus.CREATING,
    )
    if status == SnapshotStatus.ERROR:
        fire_matching(
            session,
            SNAPSHOT_INSTANCE,
            'create_failed',
            {'id': row.id},
            updated_at=session.now,
        )
    if status != SnapshotStatus.AVAILABLE:
        return
    moved = fire_matching(
        session,
        SNAPSHOT_INSTANCE,
        'created',
        {'id': row.id},
        progress=PROGRESS_DONE,
        updated_at=session.now,
        provider_location=(
            answer.get('provider_location') or row.provider_location
        ),
    )
    if moved and row.mount_snapshot_support:
        snapshot_exports.replace(
            session,
            row.id,
            normalise_export_locations(answer.get('export_locations')),
        )


def _is_asked_for(row, force: bool) -> bool:
    """Whether a replica is asked what became of a snapshot of it.

    An active one is not: what is done there is done by now. Nor one that
    is nowhere; and by force nobody waits for one that is broken.
    """
    if row.replica_state == ReplicaState.ACTIVE or not row.host:
        return False
    return not (
        force and ReplicaState.ERROR in (row.replica_state, row.share_status)
    )


def _active(share: ReplicatedShare) -> LoadedInstance:
    if share.active is None:
        raise exception.ReplicationException(
            reason=f'share {share.share_id} has no active replica',
            message_detail=Detail.NO_ACTIVE_REPLICA,
        )
    return share.active


def _on(
    copies: list[LoadedSnapshot], share_instance_id: str
) -> LoadedSnapshot | None:
    return next(
        (
            one
            for one in copies
            if one.row.share_instance_id == share_instance_id
        ),
        None,
    )


def _by_id(
    answers: Iterable[ReplicatedSnapshotReply] | None,
) -> SnapshotReplies:
    return {answer['id']: answer for answer in answers or ()}


def _back_end(host: str | None) -> str:
    return (host or '').partition('#')[0]
