"""Carries out creation and deletion of snapshots, and the way back to one.

Each method holds the happy way only, as in provisioning. A share instance
is snapshotting for as long as one snapshot of it is creating: whatever
ends that lets the share go in the same transaction (`release_share`).
"""

from collections.abc import Iterable, Mapping
import contextlib
import typing

from manila_lite import exception
from manila_lite.context import RequestContext
from manila_lite.db.queries.access import share_rules as access
from manila_lite.db.queries.access import snapshot_rules as snapshot_access
from manila_lite.db.queries.snapshots import exports as snapshot_exports
from manila_lite.db.queries.snapshots import snapshots
from manila_lite.db.session import Session
from manila_lite.db.transitions import fire
from manila_lite.db.transitions import fire_matching
from manila_lite.messages import Action
from manila_lite.quota import charges
from manila_lite.quota.shares import lock_instances
from manila_lite.quota.shares import resize
from manila_lite.quota.snapshots import owner_of
from manila_lite.quota.snapshots import remove_and_credit
from manila_lite.rpc.contract import implements
from manila_lite.rpc.share import SnapshotsRpc
from manila_lite.share.drivers.base import AccessRuleForDriver
from manila_lite.share.drivers.base import ShareDriver
from manila_lite.share.drivers.base import normalise_export_locations
from manila_lite.share.manager.access import (
    snapshot_rules as access_of_snapshots,
)
from manila_lite.share.manager.driver_view import share_view
from manila_lite.share.manager.driver_view.share_view import LoadedSnapshot
from manila_lite.share.manager.driver_view.share_view import NameTemplates
from manila_lite.states.access_rule import RuleState
from manila_lite.states.share_instance import SHARE_INSTANCE
from manila_lite.states.share_instance import InstanceStatus
from manila_lite.states.share_replica import ReplicaState
from manila_lite.states.snapshot_instance import SNAPSHOT_INSTANCE
from manila_lite.states.snapshot_instance import SnapshotStatus
from manila_lite.work.notify import notify_user

PROGRESS_DONE = '100%'

REVERT_PAUSE = 2.0
"""Seconds before another look whether a revert has ended."""


class UnusableSnapshot(exception.ShareBackendException):
    """The driver has taken a snapshot that is of no use."""

    def __init__(self, answer: Mapping[str, typing.Any]):
        super().__init__(msg=f'the snapshot is {answer["status"]}')
        self.answer = answer


class RevertTarget(typing.NamedTuple):
    """The snapshot to go back to, and the rules that are in force."""

    snapshot: LoadedSnapshot
    share_rules: list[AccessRuleForDriver]
    snapshot_rules: list[AccessRuleForDriver]


@implements(SnapshotsRpc)
class SnapshotsEndpoint:
    """The snapshots of one back end."""

    def __init__(
        self, driver: ShareDriver, names: NameTemplates, message_ttl: int
    ):
        self.driver = driver
        self.names = names
        self.message_ttl = message_ttl

    # Create

    def prepare_create_snapshot_instance(self, session: Session, job):
        return expect(session, job, SnapshotStatus.CREATING)

    def create_snapshot_instance(
        self, job, snapshot_instance_id, share_instance_id
    ):
        snapshot = self.view(job.prepared)
        server = job.prepared.share_server
        answer = (
            self.driver.create_snapshot(
                RequestContext(), snapshot, share_server=server
            )
            or {}
        )
        if (
            answer.get('status', SnapshotStatus.AVAILABLE)
            != SnapshotStatus.AVAILABLE
        ):
            raise UnusableSnapshot(answer)
        try:
            job.finish(self.created, job.prepared.row, answer)
        except (exception.ClaimLost, exception.ResourceNotFound):
            if job.read(snapshots.find, snapshot_instance_id) is None:
                # Given up and deleted meanwhile: nobody would know it.
                self.driver.delete_snapshot(
                    RequestContext(), snapshot, share_server=server
                )
            raise

    def created(
        self, session: Session, row, answer: Mapping[str, typing.Any]
    ) -> None:
        """The snapshot is there as the answer of the driver says.

        Its share may be used again. What is not told stays as it is.
        """
        release_share(session, row.share_instance_id, but=row.id)
        fire(
            session,
            SNAPSHOT_INSTANCE,
            row.id,
            'created',
            progress=PROGRESS_DONE,
            updated_at=session.now,
            provider_location=_location(row, answer),
        )
        self._resize(session, row, answer.get('size'))
        if row.mount_snapshot_support:
            snapshot_exports.replace(
                session,
                row.id,
                normalise_export_locations(answer.get('export_locations')),
            )

    def _resize(self, session, row, size):
        if size and size != row.size:
            snapshots.resize(session, row.snapshot_id, size)
            charges.adjust(
                session, owner_of(row), {'snapshot_gigabytes': size - row.size}
            )

    def failed_create_snapshot_instance(self, session, job, error):
        """Where the driver has said what it made is kept for deletion."""
        if isinstance(error, UnusableSnapshot):
            snapshots.set_provider_location(
                session, job.resource_id, error.answer.get('provider_location')
            )
        return False

    def dropped_create_snapshot_instance(self, session, job):
        release_share(
            session, job.args['share_instance_id'], but=job.resource_id
        )

    # Delete

    def prepare_delete_snapshot_instance(self, session: Session, job):
        return access_of_snapshots.queue_denials(
            session, expect(session, job, SnapshotStatus.DELETING), self.driver
        )

    def delete_snapshot_instance(self, job, snapshot_instance_id, force=False):
        leaving, found = job.prepared, job.prepared.found
        if found.share.row.status == InstanceStatus.REVERTING:
            # Deleted by force while its share is reverting, maybe to it.
            job.release(REVERT_PAUSE)
            return
        # Where it is not there, what was asked for is the case.
        with contextlib.suppress(
            exception.SnapshotResourceNotFound, exception.ShareResourceNotFound
        ):
            access_of_snapshots.deny_all(
                self.driver, self.view(found), leaving
            )
            self.driver.delete_snapshot(
                RequestContext(),
                self.view(found),
                share_server=found.share_server,
            )
        job.finish(remove_and_credit, found.row)

    def failed_delete_snapshot_instance(self, session, job, error):
        """A forced deletion bears with the back end: the rows go."""
        if not job.args['force']:
            access_of_snapshots.fail_denials(session, job.resource_id)
            return False
        remove_and_credit(
            session, expect(session, job, SnapshotStatus.DELETING).row
        )
        return True

    # Revert

    def prepare_revert_to_snapshot(self, session: Session, job):
        return get_revert_target(session, job)

    def revert_to_snapshot(self, job, instance_id, snapshot_id):
        found = job.prepared
        size = self.driver.revert_to_snapshot(
            RequestContext(),
            self.view(found.snapshot),
            found.share_rules,
            found.snapshot_rules,
            share_server=found.snapshot.share_server,
        )
        job.finish(
            self.reverted,
            job,
            found.snapshot,
            size or found.snapshot.row.share_size,
        )

    def reverted(
        self, session: Session, job, found: LoadedSnapshot, size: int
    ) -> None:
        """The share is as large as the back end says, and in the books."""
        share = found.share.row
        copies = lock_instances(session, share)
        fire(
            session,
            SHARE_INSTANCE,
            share.id,
            'reverted',
            updated_at=session.now,
        )
        fire_matching(
            session,
            SNAPSHOT_INSTANCE,
            'restored',
            {'id': found.row.id},
            updated_at=session.now,
        )
        resize(session, share, size, copies, reservations=job.charges)
        notify_user(
            session, job, Action.REVERT_TO_SNAPSHOT, None, self.message_ttl
        )

    def dropped_revert_to_snapshot(self, session, job):
        """Whatever became of the share, its snapshot is as it was."""
        snapshots.lock_share_instance(session, job.resource_id)
        fire_matching(
            session,
            SNAPSHOT_INSTANCE,
            'restore_failed',
            {
                'snapshot_id': job.args['snapshot_id'],
                'share_instance_id': job.resource_id,
            },
            updated_at=session.now,
        )

    # All

    def given_up(self, session: Session, row, event: str) -> None:
        """The visible end of work that was lost; the share goes on."""
        release_share(session, row.share_instance_id, but=row.id)
        fire(session, SNAPSHOT_INSTANCE, row.id, event, updated_at=session.now)
        if (
            event == 'create_failed'
            and row.replica_state == ReplicaState.ACTIVE
        ):
            # From where should the other replicas have it now?
            fire_matching(
                session,
                SNAPSHOT_INSTANCE,
                event,
                {'snapshot_id': row.snapshot_id},
                updated_at=session.now,
            )

    def view(self, found: LoadedSnapshot):
        """The snapshot as the driver is to see it."""
        return share_view.snapshot_for_driver(found, self.names)


def expect(session: Session, job, status: str) -> LoadedSnapshot:
    """The instance, kept, if it still waits for this work."""
    found = share_view.load_snapshot(
        session, job.resource_id, lock_shared=True
    )
    if found.row.status != status:
        raise exception.InvalidStatus(
            resource='snapshot instance',
            id=found.row.id,
            status=found.row.status,
            event=job.kind,
            allowed=status,
        )
    return found


def get_revert_target(session: Session, job) -> RevertTarget:
    """What a share is reverted to, if it still waits for this work."""
    share = share_view.load_instance(
        session, job.resource_id, lock_shared=True
    )
    if share.row.status != InstanceStatus.REVERTING:
        raise exception.InvalidStatus(
            resource='share instance',
            id=share.row.id,
            status=share.row.status,
            event=job.kind,
            allowed=InstanceStatus.REVERTING,
        )
    row = snapshots.find_on_share_instance(
        session, job.args['snapshot_id'], share.row.id
    )
    if row is None or row.status != SnapshotStatus.RESTORING:
        # By an administrator's decree: nothing is reverted then.
        raise exception.InvalidShareSnapshot(
            reason=f'{job.args["snapshot_id"]} is no longer '
            f'{SnapshotStatus.RESTORING}'
        )
    return RevertTarget(
        share_view.load_snapshot(session, row.id),
        _rules(access.list_for_instance(session, share.row.id)),
        _rules(snapshot_access.list_for_instance(session, row.id)),
    )


def release_share(
    session: Session, share_instance_id: str, *, but: str = ''
) -> None:
    """Have a share instance that is snapshotting be available again.

    Not while a snapshot of it is creating, another than `but`. A share
    that is not snapshotting any more is left alone.
    """
    status = snapshots.lock_share_instance(session, share_instance_id)
    if (
        status == InstanceStatus.SNAPSHOTTING
        and not snapshots.is_snapshot_in_progress(
            session, share_instance_id, but
        )
    ):
        fire(session, SHARE_INSTANCE, share_instance_id, 'snapshotted')


def _location(row, answer: Mapping[str, typing.Any]) -> str | None:
    return answer.get('provider_location') or row.provider_location


def _rules(rows: Iterable[typing.Any]) -> list[AccessRuleForDriver]:
    """Snapshots can only be read, so their rules have neither of both."""
    return [
        AccessRuleForDriver(
            id=row.id,
            share_id=row.share_id,
            access_type=row.access_type,
            access_to=row.access_to,
            state=row.state,
            access_level=getattr(row, 'access_level', 'ro'),
            access_key=getattr(row, 'access_key', None),
        )
        for row in rows
        if row.state == RuleState.ACTIVE
    ]
