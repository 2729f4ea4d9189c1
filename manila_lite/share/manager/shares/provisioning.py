"""Create, resize and delete share instances.

Each method contains the success path only: the runner has claimed the
work and handles errors of the driver. `prepare_` methods read inside the
claiming transaction and raise when the work is stale.
"""

from collections.abc import Callable
import dataclasses
import datetime
import functools
import typing
from typing import Annotated

from manila_lite import exception
from manila_lite.conf import Option
from manila_lite.db.queries.groups import member_sources
from manila_lite.db.queries.services import pools
from manila_lite.db.queries.shares import (
    clone_sources,
    instances as share_instances,
    shares,
)
from manila_lite.db.queries.snapshots import snapshots
from manila_lite.db.rows import InstanceRow
from manila_lite.db.session import Session
from manila_lite.db.transitions import fire
from manila_lite.quota import snapshots as snapshot_quota
from manila_lite.quota.shares import (
    lock_instances,
    remove_and_credit,
    remove_uncharged,
    resize,
)
from manila_lite.rpc.contract import implements, work, work_kinds
from manila_lite.rpc.share import ProvisioningRpc, ShareGroupsRpc
from manila_lite.share.drivers import base
from manila_lite.share.manager import driver_probe
from manila_lite.share.manager.access import teardown
from manila_lite.share.manager.access.teardown import Teardown
from manila_lite.share.manager.driver_view import group_view, share_view
from manila_lite.share.manager.driver_view.group_view import (
    Clone,
    ReportedClone,
    parse_reply,
)
from manila_lite.share.manager.endpoint import require_status, undo_if_gone
from manila_lite.share.manager.guarded_driver import driver_context
from manila_lite.share.manager.servers.demand import check_growth
from manila_lite.share.manager.servers.lifecycle import ShareServersEndpoint
from manila_lite.share.manager.servers.setup import ServerSetup
from manila_lite.share.manager.shares.rescheduling import Rescheduling
from manila_lite.states.share_group import SHARE_GROUP
from manila_lite.states.share_instance import SHARE_INSTANCE, InstanceStatus
from manila_lite.states.share_task import RUNNING
from manila_lite.states.snapshot_instance import SnapshotStatus
from manila_lite.work import table, waiting
from manila_lite.work.job import JobContext
from manila_lite.work.table import Claim

PROGRESS_DONE = '100%'

GROUP_INTERVAL = 5.0
"""Seconds until work on a share looks again whether its group is created."""

SNAPSHOT_INTERVAL = 5.0
"""Seconds until the deletion of a share looks again for its snapshots."""

_CREATE_GROUP = work_kinds(ShareGroupsRpc)['share_groups.create_share_group']
_AWAIT = work_kinds(ProvisioningRpc)['provisioning.await_share_from_snapshot']


@implements(ProvisioningRpc)
@dataclasses.dataclass(eq=False)
class ProvisioningEndpoint:
    """Provisions the share instances of one back end.

    Drivers that copy in the background are polled every `copy_interval`
    seconds, by `probe`: one that hangs keeps no worker.
    """

    driver: base.ShareDriver
    names: share_view.NameTemplates
    copy_interval: Annotated[float, Option('periodic_interval')]
    probe: driver_probe.DriverProbe
    setup: ServerSetup
    servers: ShareServersEndpoint
    rescheduling: Rescheduling

    @property
    def name_template(self) -> str:
        return self.names.share

    # Create

    @work(expects=InstanceStatus.CREATING, load=share_view.load_new_instance)
    def create_share_instance(
        self,
        job: JobContext,
        instance_id: str,
        placement: dict[str, typing.Any] | None = None,
    ) -> None:
        prepared: share_view.LoadedInstance = job.prepared
        instance = self.rescheduling.provide_server(job, prepared)
        if instance is None:
            return
        share, server = self._view(instance), instance.share_server
        try:
            locations = self.driver.create_share(
                driver_context(), share, share_server=server
            )
        except exception.ShareRefused as error:
            self.rescheduling.reschedule(job, instance, error)
            return
        self._finish_or_undo(
            job,
            share,
            server,
            job.finish,
            self._created,
            instance_id,
            base.normalise_export_locations(locations),
        )

    def _finish_or_undo(
        self,
        job: JobContext,
        share: base.ShareForDriver,
        server: base.ShareServerForDriver | None,
        end: Callable[..., None],
        *args: object,
    ) -> None:
        """Finish the work; delete the share if its rows are gone."""
        undo = functools.partial(
            self.driver.delete_share, driver_context(), share, share_server=server
        )
        with undo_if_gone(job, share_instances.find, share.id, undo):
            end(*args)

    def _created(
        self, session: Session, instance_id: str, locations: list[base.ExportLocation]
    ) -> None:
        fire(session, SHARE_INSTANCE, instance_id, 'created', progress=PROGRESS_DONE)
        share_instances.insert_export_locations(session, instance_id, locations)

    def failed_create_share_instance(
        self, session: Session, job: Claim, error: Exception
    ) -> bool:
        """Store exports that the driver reports in spite of the error."""
        if self.setup.record_failure(session, job, error):
            return True
        reported = getattr(error, 'detail_data', None)
        locations = isinstance(reported, dict) and reported.get('export_locations')
        if locations:
            share_instances.insert_export_locations(
                session, job.resource_id, base.normalise_export_locations(locations)
            )
        return False

    # Create from a snapshot

    def prepare_create_share_from_snapshot(self, session: Session, job: Claim) -> Clone:
        instance = self.expect(
            session, job, InstanceStatus.CREATING, share_view.load_new_instance
        )
        source = clone_sources.lock_source_shared(session, job.args['snapshot_id'])
        return Clone(instance, share_view.load_snapshot(session, source.instance_id))

    @work(failed='_record_failure')
    def create_share_from_snapshot(
        self,
        job: JobContext,
        instance_id: str,
        snapshot_id: str,
        placement: dict[str, typing.Any] | None = None,
    ) -> None:
        self._clone(job, instance_id)

    def prepare_create_share_from_group_snapshot(
        self, session: Session, job: Claim
    ) -> Clone:
        instance = self.expect(
            session, job, InstanceStatus.CREATING, share_view.load_new_instance
        )
        # Read while the share is locked: it is not created before the end
        # of the transaction.
        return Clone(
            instance,
            group_view.load_member(session, job.args['member_id']),
            self._is_created_with_group(session, instance.row.share_group_id),
        )

    @work(failed='_record_failure')
    def create_share_from_group_snapshot(
        self, job: JobContext, instance_id: str, member_id: str
    ) -> None:
        clone: Clone = job.prepared
        if clone.waits_for_group:
            job.pause(GROUP_INTERVAL)
            return
        if self._creates_groups_with_shares:
            job.read(member_sources.check_group_created, clone.share.row.share_group_id)
        self._clone(job, instance_id)

    @property
    def _creates_groups_with_shares(self) -> bool:
        return isinstance(self.driver, base.ShareGroupFromSnapshotSupport)

    def _is_created_with_group(self, session: Session, group_id: str | None) -> bool:
        """Whether work on the group of a share creates the share as well.

        The group then waits for none of its shares.
        """
        return (
            group_id is not None
            and self._creates_groups_with_shares
            and waiting.is_pending(
                session, SHARE_GROUP.resource, group_id, _CREATE_GROUP.kind
            )
        )

    def _clone(self, job: JobContext, instance_id: str) -> None:
        clone: Clone = job.prepared
        instance = self.rescheduling.provide_server(job, clone.share, clone.snapshot)
        if instance is None:
            return
        share, server = self._view(instance), instance.share_server
        snapshot = clone.snapshot_for_driver(self.names)
        # Only drivers with this interface are given such work.
        driver = typing.cast(base.CreateFromSnapshotSupport, self.driver)
        try:
            reply = driver.create_share_from_snapshot(
                driver_context(),
                share,
                snapshot,
                share_server=server,
                parent_share=snapshot.share,
            )
        except exception.ShareRefused as error:
            self.rescheduling.reschedule(job, instance, error)
            return
        reported = parse_reply(reply)
        if reported.status == InstanceStatus.AVAILABLE:
            self._finish_or_undo(
                job,
                share,
                server,
                job.finish,
                self._created,
                instance_id,
                reported.exports,
            )
        else:
            self._finish_or_undo(
                job,
                share,
                server,
                job.hand_over,
                self._copying,
                job.claim,
                instance_id,
                reported,
            )

    def _record_failure(self, session: Session, job: Claim, error: Exception) -> bool:
        return self.setup.record_failure(session, job, error)

    def _copying(
        self, session: Session, job: Claim, instance_id: str, reported: ReportedClone
    ) -> None:
        """Hand over to the work that polls the driver for progress."""
        table.hand_over(session, job, _AWAIT, job.queue, {'instance_id': instance_id})
        fire(session, SHARE_INSTANCE, instance_id, 'copy', progress=reported.progress)
        share_instances.insert_export_locations(session, instance_id, reported.exports)

    @work(expects=InstanceStatus.CREATING_FROM_SNAPSHOT)
    def await_share_from_snapshot(self, job: JobContext, instance_id: str) -> None:
        instance: share_view.LoadedInstance = job.prepared
        try:
            result = self.probe.poll(
                job.claim.id,
                self.driver.get_share_status,
                self._view(instance),
                instance.share_server,
            )
        except (driver_probe.AnswerPending, driver_probe.BackendUnresponsive) as error:
            job.release(error.retry_after)
            return
        if result.reason:
            raise exception.ShareBackendException(msg=result.reason)
        reported = parse_reply(result.value)
        if reported.status == InstanceStatus.AVAILABLE:
            job.finish(self._copied, instance_id, reported)
        else:
            job.pause(self.copy_interval, self._store_progress, instance_id, reported)

    def _copied(
        self, session: Session, instance_id: str, reported: ReportedClone
    ) -> None:
        fire(session, SHARE_INSTANCE, instance_id, 'created', progress=PROGRESS_DONE)
        if reported.exports:
            share_instances.replace_export_locations(
                session, instance_id, reported.exports
            )

    def _store_progress(
        self, session: Session, instance_id: str, reported: ReportedClone
    ) -> None:
        if reported.progress is not None:
            share_instances.set_progress(session, instance_id, reported.progress)

    # Resize

    def prepare_extend_share_instance(
        self, session: Session, job: Claim
    ) -> share_view.LoadedInstance:
        instance = self.expect(session, job, InstanceStatus.EXTENDING)
        check_growth(session, instance.row, job.args['growth'], self.setup.limits)
        return instance

    def extend_share_instance(
        self, job: JobContext, instance_id: str, new_size: int, growth: int, host: str
    ) -> None:
        instance: share_view.LoadedInstance = job.prepared
        self.driver.extend_share(
            self._view(instance), new_size, share_server=instance.share_server
        )
        job.finish(self._extended, job.claim, instance.row, new_size)

    def _extended(
        self, session: Session, job: Claim, row: InstanceRow, new_size: int
    ) -> None:
        """Record the new size and charge it, for all replicas.

        Other replicas grow with the active one, on whatever host.
        """
        instances = lock_instances(session, row)
        fire(session, SHARE_INSTANCE, row.id, 'extended')
        resize(
            session,
            row,
            new_size,
            instances,
            reservations=job.charges,
            placed=(job.args['host'], job.args['growth']),
        )

    def dropped_extend_share_instance(self, session: Session, job: Claim) -> None:
        pools.adjust_allocated(session, job.args['host'], -job.args['growth'])

    @work(expects=InstanceStatus.SHRINKING)
    def shrink_share_instance(
        self, job: JobContext, instance_id: str, new_size: int
    ) -> None:
        instance: share_view.LoadedInstance = job.prepared
        self.driver.shrink_share(
            self._view(instance), new_size, share_server=instance.share_server
        )
        job.finish(self._shrunk, instance.row, new_size)

    def _shrunk(self, session: Session, row: InstanceRow, new_size: int) -> None:
        """Record the new size and reduce the usage."""
        instances = lock_instances(session, row)
        fire(session, SHARE_INSTANCE, row.id, 'shrunk')
        resize(session, row, new_size, instances)

    # Delete

    def prepare_delete_share_instance(self, session: Session, job: Claim) -> Teardown:
        instance = self.expect(session, job, InstanceStatus.DELETING)
        needed, leaving = shares.is_needed(session, instance.row.id)
        if needed:
            # Only after `reset_status`: requests are refused with them.
            raise exception.InvalidShare(
                reason=f'share instance {instance.row.id} has snapshots or backups'
            )
        _refuse_migrated(instance.row)
        return teardown.queue_denials(session, instance, self.driver)._replace(
            awaits_snapshots=leaving
        )

    def delete_share_instance(
        self, job: JobContext, instance_id: str, force: bool = False
    ) -> None:
        removal: Teardown = job.prepared
        group_id = removal.row.share_group_id
        if group_id and job.read(self._is_created_with_group, group_id):
            # It might be created again after it had been deleted.
            job.pause(GROUP_INTERVAL)
            return
        if self._awaits_snapshots(job, removal, force):
            return
        began_at = _beginning(job)
        self._delete(job, removal, force)
        job.finish(self._deleted, removal.row, began_at, removal.awaits_snapshots)

    def _deleted(
        self,
        session: Session,
        row: InstanceRow,
        began_at: datetime.datetime | None = None,
        with_snapshots: bool = True,
    ) -> None:
        if with_snapshots:
            # Only of a forced deletion; others fail with them.
            for one in snapshots.list_in_deferred_deletion(session, row.id):
                snapshot_quota.remove_uncharged(session, one, 'removed')
        remove_and_credit(session, row, began_at=began_at)
        self.servers.release(session, row.share_server_id)

    def failed_delete_share_instance(
        self, session: Session, job: Claim, error: Exception
    ) -> bool:
        """Force delete ignores driver errors and removes the rows."""
        if not job.args['force']:
            teardown.fail_denials(session, job.resource_id)
            return False
        self._deleted(session, self.expect(session, job, InstanceStatus.DELETING).row)
        return True

    def prepare_delete_share_instance_deferred(
        self, session: Session, job: Claim
    ) -> Teardown:
        instance = self.expect(session, job, InstanceStatus.DEFERRED_DELETING)
        _, leaving = shares.is_needed(session, instance.row.id)
        return teardown.queue_denials(session, instance, self.driver)._replace(
            awaits_snapshots=leaving
        )

    def delete_share_instance_deferred(self, job: JobContext, instance_id: str) -> None:
        removal: Teardown = job.prepared
        if self._awaits_snapshots(job, removal):
            return
        began_at = _beginning(job)
        self._delete(job, removal)
        job.finish(self._deleted_uncharged, removal.row, began_at)

    def _deleted_uncharged(
        self, session: Session, row: InstanceRow, began_at: datetime.datetime | None
    ) -> None:
        remove_uncharged(session, row, began_at)
        self.servers.release(session, row.share_server_id)

    def failed_delete_share_instance_deferred(
        self, session: Session, job: Claim, error: Exception
    ) -> bool:
        teardown.fail_denials(session, job.resource_id)
        return False

    def _awaits_snapshots(
        self, job: JobContext, removal: Teardown, force: bool = False
    ) -> bool:
        """Whether snapshots in deferred deletion are to go before the share.

        Raises InvalidShare if the back end has failed to delete one, which is
        retried; a forced deletion ignores that.
        """
        if not removal.awaits_snapshots:
            return False
        remaining = job.read(snapshots.list_in_deferred_deletion, removal.row.id)
        for snapshot in remaining:
            if snapshot.status == SnapshotStatus.DEFERRED_DELETING:
                job.pause(SNAPSHOT_INTERVAL)
                return True
        if remaining and not force:
            raise exception.InvalidShare(
                reason=f'snapshot {remaining[0].snapshot_id} of share '
                f'{removal.row.share_id} could not be deleted'
            )
        return False

    def _delete(self, job: JobContext, removal: Teardown, force: bool = False) -> None:
        """Remove the rules, then the share.

        With force, the share is removed even if removing the rules fails,
        and a missing share is success.
        """
        if self.setup.networks and removal.instance.server is None:
            return  # it was never placed on a share server
        share, server = (self._view(removal.instance), removal.instance.share_server)
        remove = functools.partial(
            self.driver.delete_share, driver_context(), share, share_server=server
        )
        teardown.remove_denied(job, self.driver, share, removal, server, remove, force)

    # All

    def expect(
        self,
        session: Session,
        job: Claim,
        status: str,
        find: Callable[..., share_view.LoadedInstance] = share_view.load_instance,
    ) -> share_view.LoadedInstance:
        """Return the instance if it still waits for this work.

        Its row is locked: a request that moves it on and submits other
        work must see that this work is running.
        """
        instance = find(session, job.resource_id, lock_shared=True)
        require_status(
            job, SHARE_INSTANCE, instance.row.id, instance.row.status, status
        )
        return instance

    def _view(self, instance: share_view.LoadedInstance) -> base.ShareForDriver:
        return share_view.share_for_driver(instance, self.name_template)


def _beginning(job: JobContext) -> datetime.datetime | None:
    """Return when the driver is called first; None if it was before."""
    return job.db.utcnow() if job.claim.attempt == 1 else None


def _refuse_migrated(row: InstanceRow) -> None:
    """Raise InvalidShare if a migration still needs the instance.

    Only after `reset_status` in the previous release: it may be the only one
    with all of the data.
    """
    if row.task_state in RUNNING:
        raise exception.InvalidShare(
            reason=f'share instance {row.id} is being migrated ({row.task_state})'
        )
