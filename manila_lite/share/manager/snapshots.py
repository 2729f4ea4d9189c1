"""Create and delete snapshots, and revert shares to them.

Each method contains the success path only, as in provisioning. A share
instance is snapshotting as long as one of its snapshots is creating:
whatever ends the creation releases the share in the same transaction
(`release_share`).
"""

from collections.abc import Iterable
import contextlib
import dataclasses
import functools
import typing
from typing import Annotated

from manila_lite import exception
from manila_lite.conf import Option
from manila_lite.db.moves.snapshots import release_share
from manila_lite.db.queries.access import share_rules, snapshot_rules
from manila_lite.db.queries.snapshots import exports as snapshot_exports, snapshots
from manila_lite.db.rows import AccessRuleRow, SnapshotInstanceRow
from manila_lite.db.session import Session
from manila_lite.db.transitions import TransitionBatch, fire, fire_matching
from manila_lite.messages import Action, Detail
from manila_lite.quota import charges
from manila_lite.quota.shares import lock_instances, resize
from manila_lite.quota.snapshots import owner_of, remove_and_credit, remove_uncharged
from manila_lite.rpc.contract import implements, work
from manila_lite.rpc.share import SnapshotsRpc
from manila_lite.share.drivers import base
from manila_lite.share.manager.access import teardown
from manila_lite.share.manager.driver_view import share_view
from manila_lite.share.manager.driver_view.server_view import from_row
from manila_lite.share.manager.driver_view.share_view import (
    LoadedSnapshot,
    NameTemplates,
)
from manila_lite.share.manager.endpoint import require_status, undo_if_gone
from manila_lite.share.manager.guarded_driver import driver_context
from manila_lite.share.manager.removal import require_share
from manila_lite.states.access_rule import RuleState
from manila_lite.states.share_instance import SHARE_INSTANCE, InstanceStatus
from manila_lite.states.share_replica import ReplicaState
from manila_lite.states.snapshot_instance import SNAPSHOT_INSTANCE, SnapshotStatus
from manila_lite.work.job import JobContext
from manila_lite.work.notify import notify_user
from manila_lite.work.table import Claim

PROGRESS_DONE = '100%'

REVERT_PAUSE = 2.0
"""Seconds until the next check whether a revert has ended."""


class UnusableSnapshot(exception.ShareBackendException):
    """The driver reports a snapshot that is not available."""

    def __init__(self, reply: base.SnapshotReply | base.ReplicatedSnapshotReply):
        super().__init__(msg=f'the snapshot is {reply["status"]}')
        self.reply = reply


class RevertTarget(typing.NamedTuple):
    """The snapshot to revert to, and the rules in force."""

    snapshot: LoadedSnapshot
    share_rules: list[base.AccessRuleForDriver]
    snapshot_rules: list[base.AccessRuleForDriver]


@implements(SnapshotsRpc)
@dataclasses.dataclass(eq=False)
class SnapshotsEndpoint:
    """Carries out work on the snapshots of one back end."""

    driver: base.ShareDriver
    names: NameTemplates
    message_ttl: Annotated[int, Option('message_ttl')]

    @property
    def _snapshot_driver(self) -> base.SnapshotSupport:
        """The driver, as only drivers with snapshots are given this work."""
        return typing.cast(base.SnapshotSupport, self.driver)

    # Create

    @work(expects=SnapshotStatus.CREATING)
    def create_snapshot_instance(
        self, job: JobContext, snapshot_instance_id: str, share_instance_id: str
    ) -> None:
        loaded: LoadedSnapshot = job.prepared
        snapshot, server = self.view(loaded), loaded.share_server
        reply = (
            self._snapshot_driver.create_snapshot(
                driver_context(), snapshot, share_server=server
            )
            or {}
        )
        if reply.get('status', SnapshotStatus.AVAILABLE) != SnapshotStatus.AVAILABLE:
            raise UnusableSnapshot(reply)
        undo = functools.partial(
            self._snapshot_driver.delete_snapshot,
            driver_context(),
            snapshot,
            share_server=server,
        )
        with undo_if_gone(job, snapshots.find, snapshot_instance_id, undo):
            job.finish(self.created, loaded.row, reply)

    def created(
        self,
        session: Session,
        row: SnapshotInstanceRow,
        reply: base.SnapshotReply | base.ReplicatedSnapshotReply,
    ) -> None:
        """Record the snapshot as reported and release its share.

        Values missing in the reply stay unchanged.
        """
        moves = TransitionBatch(session)
        release_share(session, row.share_instance_id, excluding=row.id, batch=moves)
        moves.fire_one(
            SNAPSHOT_INSTANCE,
            row.id,
            'created',
            progress=PROGRESS_DONE,
            provider_location=_location(row, reply),
        )
        moves.write()
        self._resize(session, row, reply.get('size'))
        if row.mount_snapshot_support:
            snapshot_exports.replace(
                session,
                row.id,
                base.normalise_export_locations(reply.get('export_locations')),
            )

    def _resize(
        self, session: Session, row: SnapshotInstanceRow, size: int | None
    ) -> None:
        if size and size != row.size:
            snapshots.resize(session, row.snapshot_id, size)
            charges.adjust(
                session, owner_of(row), {'snapshot_gigabytes': size - row.size}
            )

    def failed_create_snapshot_instance(
        self, session: Session, job: Claim, error: Exception
    ) -> bool:
        """Store the reported location, which deletion needs."""
        if isinstance(error, UnusableSnapshot):
            snapshots.set_provider_location(
                session, job.resource_id, error.reply.get('provider_location')
            )
        return False

    def dropped_create_snapshot_instance(self, session: Session, job: Claim) -> None:
        release_share(session, job.args['share_instance_id'], excluding=job.resource_id)

    # Delete

    def prepare_delete_snapshot_instance(
        self, session: Session, job: Claim
    ) -> teardown.SnapshotTeardown:
        return teardown.queue_snapshot_denials(
            session, expect(session, job, SnapshotStatus.DELETING), self.driver
        )

    def delete_snapshot_instance(
        self, job: JobContext, snapshot_instance_id: str, force: bool = False
    ) -> None:
        removal: teardown.SnapshotTeardown = job.prepared
        if self._delete(job, removal, force):
            job.finish(remove_and_credit, removal.snapshot.row)

    def _delete(
        self, job: JobContext, removal: teardown.SnapshotTeardown, force: bool = False
    ) -> bool:
        """Remove the rules, then the snapshot; False if that has to wait."""
        snapshot = removal.snapshot
        if snapshot.share.row.status == InstanceStatus.REVERTING:
            # Deleted while its share is reverting, by force maybe to it.
            job.release(REVERT_PAUSE)
            return False
        view = self.view(snapshot)
        if not force:
            require_share(
                self.driver, snapshot.share.row, view.share, snapshot.share_server
            )
        # A missing snapshot of a share that is there is success.
        with _absent_is_success():
            teardown.deny_all_to_snapshot(self.driver, view, removal)
        with _absent_is_success():
            self._snapshot_driver.delete_snapshot(
                driver_context(), view, share_server=snapshot.share_server
            )
        return True

    def failed_delete_snapshot_instance(
        self, session: Session, job: Claim, error: Exception
    ) -> bool:
        """Force delete ignores driver errors and removes the rows."""
        if not job.args['force']:
            teardown.fail_snapshot_denials(session, job.resource_id)
            return False
        remove_and_credit(session, expect(session, job, SnapshotStatus.DELETING).row)
        return True

    def prepare_delete_snapshot_instance_deferred(
        self, session: Session, job: Claim
    ) -> teardown.SnapshotTeardown:
        return teardown.queue_snapshot_denials(
            session, expect(session, job, SnapshotStatus.DEFERRED_DELETING), self.driver
        )

    def delete_snapshot_instance_deferred(
        self, job: JobContext, snapshot_instance_id: str
    ) -> None:
        removal: teardown.SnapshotTeardown = job.prepared
        if self._delete(job, removal):
            job.finish(remove_uncharged, removal.snapshot.row)

    def failed_delete_snapshot_instance_deferred(
        self, session: Session, job: Claim, error: Exception
    ) -> bool:
        teardown.fail_snapshot_denials(session, job.resource_id)
        return False

    # Revert

    def prepare_revert_to_snapshot(self, session: Session, job: Claim) -> RevertTarget:
        return get_revert_target(session, job)

    def revert_to_snapshot(
        self, job: JobContext, instance_id: str, snapshot_id: str
    ) -> None:
        target: RevertTarget = job.prepared
        driver = typing.cast(base.RevertSupport, self.driver)
        size = driver.revert_to_snapshot(
            driver_context(),
            self.view(target.snapshot),
            target.share_rules,
            target.snapshot_rules,
            share_server=target.snapshot.share_server,
        )
        job.finish(
            self.reverted,
            job.claim,
            target.snapshot,
            size or target.snapshot.row.share_size,
        )

    def reverted(
        self, session: Session, job: Claim, snapshot: LoadedSnapshot, size: int
    ) -> None:
        """Record the revert, and the reported size in rows and usage."""
        share = snapshot.share.row
        instances = lock_instances(session, share)
        fire(session, SHARE_INSTANCE, share.id, 'reverted')
        fire_matching(session, SNAPSHOT_INSTANCE, 'restored', {'id': snapshot.row.id})
        resize(session, share, size, instances, reservations=job.charges)
        notify_user(
            session, job, Action.REVERT_TO_SNAPSHOT, Detail.DONE, self.message_ttl
        )

    def dropped_revert_to_snapshot(self, session: Session, job: Claim) -> None:
        """Restore the snapshot's status, whatever the state of the share."""
        snapshots.lock_share_instance(session, job.resource_id)
        fire_matching(
            session,
            SNAPSHOT_INSTANCE,
            'restore_failed',
            {
                'snapshot_id': job.args['snapshot_id'],
                'share_instance_id': job.resource_id,
            },
        )

    # All

    def given_up(self, session: Session, row: SnapshotInstanceRow, event: str) -> None:
        """Fail a snapshot whose work was lost, and release its share."""
        release_share(session, row.share_instance_id, excluding=row.id)
        fire(session, SNAPSHOT_INSTANCE, row.id, event)
        if event == 'create_failed' and row.replica_state == ReplicaState.ACTIVE:
            # The other replicas have no source to copy it from.
            fire_matching(
                session, SNAPSHOT_INSTANCE, event, {'snapshot_id': row.snapshot_id}
            )

    def view(self, snapshot: LoadedSnapshot) -> base.SnapshotForDriver:
        """Return the snapshot in the form given to drivers."""
        return share_view.snapshot_for_driver(snapshot, self.names)

    def expect(self, session: Session, job: Claim, status: str) -> LoadedSnapshot:
        return expect(session, job, status)


def expect(session: Session, job: Claim, status: str) -> LoadedSnapshot:
    """Return the locked instance if it still waits for this work."""
    snapshot = share_view.load_snapshot(session, job.resource_id, lock_shared=True)
    require_status(job, SNAPSHOT_INSTANCE, snapshot.row.id, snapshot.row.status, status)
    return snapshot


def get_revert_target(session: Session, job: Claim) -> RevertTarget:
    """Return what a share is reverted to, if it still waits for this work."""
    share = share_view.load_instance(session, job.resource_id, lock_shared=True)
    require_status(
        job, SHARE_INSTANCE, share.row.id, share.row.status, InstanceStatus.REVERTING
    )
    row = snapshots.find_on_share_instance(
        session, job.args['snapshot_id'], share.row.id
    )
    if row is None or row.status != SnapshotStatus.RESTORING:
        # Changed by `reset_status`: nothing must be reverted.
        raise exception.InvalidShareSnapshot(
            reason=f'{job.args["snapshot_id"]} is no longer {SnapshotStatus.RESTORING}'
        )
    return RevertTarget(
        share_view.load_snapshot(session, row.id),
        _rules(share_rules.list_for_instance(session, share.row.id)),
        _rules(snapshot_rules.list_for_instance(session, row.id)),
    )


def _absent_is_success() -> contextlib.AbstractContextManager[object]:
    return contextlib.suppress(
        exception.SnapshotResourceNotFound, exception.ShareResourceNotFound
    )


def _location(
    row: SnapshotInstanceRow, reply: base.SnapshotReply | base.ReplicatedSnapshotReply
) -> str | None:
    return reply.get('provider_location') or row.provider_location


def _rules(rows: Iterable[AccessRuleRow]) -> list[base.AccessRuleForDriver]:
    """Return the active rules in the form given to drivers."""
    return [
        from_row(base.AccessRuleForDriver, row)
        for row in rows
        if row.state == RuleState.ACTIVE
    ]
