"""Carries out creation, resizing and deletion of share instances.

Each method holds the happy way only: the runner has claimed the work
before, and owns what happens when a driver fails. `prepare_` methods read
inside the claiming transaction and raise when the work is out of date.
"""

from collections.abc import Mapping
import contextlib
import functools
import typing

from manila_lite import exception
from manila_lite.context import RequestContext
from manila_lite.db.queries.admin import pools
from manila_lite.db.queries.shares import clone_sources
from manila_lite.db.queries.shares import instances as share_instances
from manila_lite.db.queries.snapshots import snapshots
from manila_lite.db.session import Session
from manila_lite.db.transitions import fire
from manila_lite.quota.shares import lock_instances
from manila_lite.quota.shares import remove_and_credit
from manila_lite.quota.shares import remove_uncharged
from manila_lite.quota.shares import resize
from manila_lite.rpc.contract import implements
from manila_lite.rpc.contract import work_kinds
from manila_lite.rpc.share import ProvisioningRpc
from manila_lite.share.drivers.base import ExportLocation
from manila_lite.share.drivers.base import ShareDriver
from manila_lite.share.drivers.base import normalise_export_locations
from manila_lite.share.manager.access import teardown
from manila_lite.share.manager.driver_view import share_view
from manila_lite.share.manager.driver_view.share_view import LoadedInstance
from manila_lite.share.manager.driver_view.share_view import LoadedSnapshot
from manila_lite.share.manager.driver_view.share_view import NameTemplates
from manila_lite.share.manager.servers.lifecycle import ShareServersEndpoint
from manila_lite.share.manager.servers.setup import ServerSetup
from manila_lite.states.share_instance import SHARE_INSTANCE
from manila_lite.states.share_instance import InstanceStatus
from manila_lite.work import table

PROGRESS_DONE = '100%'

_AWAIT = work_kinds(ProvisioningRpc)['provisioning.await_share_from_snapshot']


class Clone(typing.NamedTuple):
    """A share that is to be made, and the snapshot it is made of."""

    share: LoadedInstance
    snapshot: LoadedSnapshot


class ReportedClone(typing.NamedTuple):
    """What a driver tells about a share that is made of a snapshot."""

    status: str
    exports: list[ExportLocation]
    progress: str | None = None


@implements(ProvisioningRpc)
class ProvisioningEndpoint:
    """The share instances of one back end.

    Drivers that copy in the background are asked every `copy_interval`
    seconds how they get on.
    """

    def __init__(
        self,
        driver: ShareDriver,
        names: NameTemplates,
        copy_interval: float,
        setup: ServerSetup,
        servers: ShareServersEndpoint,
    ):
        self.driver = driver
        self.names = names
        self.copy_interval = copy_interval
        self.setup = setup
        self.servers = servers

    @property
    def name_template(self) -> str:
        return self.names.share

    # Create

    def prepare_create_share_instance(self, session: Session, job):
        return self._expect(
            session, job, InstanceStatus.CREATING, share_view.load_new_instance
        )

    def create_share_instance(self, job, instance_id):
        found = self.setup.provide(job, job.prepared)
        if found is None:
            return
        share, server = self._view(found), found.share_server
        locations = self.driver.create_share(
            RequestContext(), share, share_server=server
        )
        self._keep(
            job,
            share,
            server,
            job.finish,
            self._created,
            instance_id,
            normalise_export_locations(locations),
        )

    def _keep(self, job, share, server, end, *args):
        """End the work, unless there is nobody to know what was made."""
        try:
            end(*args)
        except (exception.ClaimLost, exception.ResourceNotFound):
            if job.read(share_instances.find, share.id) is None:
                # Given up and deleted meanwhile.
                self.driver.delete_share(
                    RequestContext(), share, share_server=server
                )
            raise

    def _created(self, session, instance_id, locations):
        fire(
            session,
            SHARE_INSTANCE,
            instance_id,
            'created',
            progress=PROGRESS_DONE,
            updated_at=session.now,
        )
        share_instances.insert_export_locations(
            session, instance_id, locations
        )

    def failed_create_share_instance(self, session, job, error):
        """A driver may tell which exports exist in spite of the error."""
        if self.setup.failed(session, job, error):
            return True
        told = getattr(error, 'detail_data', None)
        locations = isinstance(told, dict) and told.get('export_locations')
        if locations:
            share_instances.insert_export_locations(
                session, job.resource_id, normalise_export_locations(locations)
            )
        return False

    # Create from a snapshot

    def prepare_create_share_from_snapshot(self, session: Session, job):
        found = self._expect(
            session, job, InstanceStatus.CREATING, share_view.load_new_instance
        )
        source = clone_sources.lock_source_shared(
            session, job.args['snapshot_id']
        )
        return Clone(
            found, share_view.load_snapshot(session, source.instance_id)
        )

    def create_share_from_snapshot(self, job, instance_id, snapshot_id):
        found = self.setup.provide(
            job, job.prepared.share, job.prepared.snapshot
        )
        if found is None:
            return
        share, server = self._view(found), found.share_server
        snapshot = share_view.snapshot_for_driver(
            job.prepared.snapshot, self.names
        )
        told = _told(
            self.driver.create_share_from_snapshot(
                RequestContext(),
                share,
                snapshot,
                share_server=server,
                parent_share=snapshot.share,
            )
        )
        if told.status == InstanceStatus.AVAILABLE:
            self._keep(
                job,
                share,
                server,
                job.finish,
                self._created,
                instance_id,
                told.exports,
            )
        else:
            self._keep(
                job,
                share,
                server,
                job.hand_over,
                self._copying,
                job.claim,
                instance_id,
                told,
            )

    def failed_create_share_from_snapshot(self, session, job, error):
        return self.setup.failed(session, job, error)

    def _copying(self, session, job, instance_id, told):
        """The driver has begun; from now on it is asked how it gets on."""
        table.hand_over(
            session,
            job,
            kind=_AWAIT.kind,
            topic=_AWAIT.topic,
            queue=job.queue,
            args={'instance_id': instance_id},
        )
        fire(
            session,
            SHARE_INSTANCE,
            instance_id,
            'copy',
            progress=told.progress,
            updated_at=session.now,
        )
        share_instances.insert_export_locations(
            session, instance_id, told.exports
        )

    def prepare_await_share_from_snapshot(self, session: Session, job):
        return self._expect(
            session, job, InstanceStatus.CREATING_FROM_SNAPSHOT
        )

    def await_share_from_snapshot(self, job, instance_id):
        told = _told(
            self.driver.get_share_status(
                self._view(job.prepared),
                share_server=job.prepared.share_server,
            )
        )
        if told.status == InstanceStatus.AVAILABLE:
            job.finish(self._copied, instance_id, told)
        else:
            job.pause(
                self.copy_interval, self._note_progress, instance_id, told
            )

    def _copied(self, session, instance_id, told):
        fire(
            session,
            SHARE_INSTANCE,
            instance_id,
            'created',
            progress=PROGRESS_DONE,
            updated_at=session.now,
        )
        if told.exports:
            share_instances.replace_export_locations(
                session, instance_id, told.exports
            )

    def _note_progress(self, session, instance_id, told):
        if told.progress is not None:
            share_instances.set_progress(session, instance_id, told.progress)

    # Resize

    def prepare_extend_share_instance(self, session, job):
        return self._expect(session, job, InstanceStatus.EXTENDING)

    def extend_share_instance(self, job, instance_id, new_size, growth, host):
        self.driver.extend_share(
            self._view(job.prepared),
            new_size,
            share_server=job.prepared.share_server,
        )
        job.finish(self._extended, job, job.prepared.row, new_size)

    def _extended(self, session, job, instance, new_size):
        """The share has grown, and so has what its project uses.

        Other replicas grow with the active one, wherever they are now.
        """
        copies = lock_instances(session, instance)
        fire(
            session,
            SHARE_INSTANCE,
            instance.id,
            'extended',
            updated_at=session.now,
        )
        resize(
            session,
            instance,
            new_size,
            copies,
            reservations=job.charges,
            placed=(job.args['host'], job.args['growth']),
        )

    def dropped_extend_share_instance(self, session, job):
        pools.adjust_allocated(session, job.args['host'], -job.args['growth'])

    def prepare_shrink_share_instance(self, session, job):
        return self._expect(session, job, InstanceStatus.SHRINKING)

    def shrink_share_instance(self, job, instance_id, new_size):
        self.driver.shrink_share(
            self._view(job.prepared),
            new_size,
            share_server=job.prepared.share_server,
        )
        job.finish(self._shrunk, job.prepared.row, new_size)

    def _shrunk(self, session, instance, new_size):
        """The share is smaller, and its project uses less."""
        copies = lock_instances(session, instance)
        fire(
            session,
            SHARE_INSTANCE,
            instance.id,
            'shrunk',
            updated_at=session.now,
        )
        resize(session, instance, new_size, copies)

    # Delete

    def prepare_delete_share_instance(self, session, job):
        found = self._expect(session, job, InstanceStatus.DELETING)
        if snapshots.has_snapshots(session, found.row.id):
            # By decree only: no request is accepted while there are any.
            raise exception.InvalidShare(
                reason=f'share instance {found.row.id} has snapshots'
            )
        return teardown.queue_denials(session, found, self.driver)

    def delete_share_instance(self, job, instance_id, force=False):
        self._delete(job.prepared, force)
        job.finish(self._deleted, job.prepared.row)

    def _deleted(self, session, instance):
        remove_and_credit(session, instance)
        self.servers.release(session, instance.share_server_id)

    def failed_delete_share_instance(self, session, job, error):
        """A forced deletion bears with the back end: the rows go."""
        if not job.args['force']:
            teardown.fail_denials(session, job.resource_id)
            return False
        self._deleted(
            session, self._expect(session, job, InstanceStatus.DELETING).row
        )
        return True

    def prepare_delete_share_instance_deferred(self, session, job):
        return teardown.queue_denials(
            session,
            self._expect(session, job, InstanceStatus.DEFERRED_DELETING),
            self.driver,
        )

    def delete_share_instance_deferred(self, job, instance_id):
        self._delete(job.prepared)
        job.finish(self._deleted_uncounted, job.prepared.row)

    def _deleted_uncounted(self, session, instance):
        remove_uncharged(session, instance)
        self.servers.release(session, instance.share_server_id)

    def failed_delete_share_instance_deferred(self, session, job, error):
        teardown.fail_denials(session, job.resource_id)
        return False

    def _delete(self, leaving, force=False):
        """Remove a share, its rules first; one that is gone is success.

        By force it is removed whatever becomes of its rules.
        """
        if self.setup.networks and leaving.found.server is None:
            return  # it never came to be on any
        share, server = (self._view(leaving.found), leaving.found.share_server)
        remove = functools.partial(
            self.driver.delete_share,
            RequestContext(),
            share,
            share_server=server,
        )
        with (
            contextlib.suppress(exception.ShareResourceNotFound),
            contextlib.ExitStack() as at_last,
        ):
            if force:
                at_last.callback(remove)
            teardown.deny_all(self.driver, share, leaving, server)
            if not force:
                remove()

    # All

    def _expect(
        self, session: Session, job, status: str, find=share_view.load_instance
    ) -> LoadedInstance:
        """The instance, if it still waits for this work.

        It is kept: who moves it on, and submits other work, has to see
        that this work is running.
        """
        found = find(session, job.resource_id, lock_shared=True)
        if found.row.status != status:
            raise exception.InvalidStatus(
                resource='share instance',
                id=found.row.id,
                status=found.row.status,
                event=job.kind,
                allowed=status,
            )
        return found

    def _view(self, found: LoadedInstance):
        return share_view.share_for_driver(found, self.name_template)


def _told(answer: typing.Any) -> ReportedClone:
    """What an answer of either form says; raises InvalidShareInstance."""
    if not isinstance(answer, Mapping):
        return ReportedClone(
            InstanceStatus.AVAILABLE, normalise_export_locations(answer)
        )
    status = answer.get('status')
    if status not in (
        InstanceStatus.AVAILABLE,
        InstanceStatus.CREATING_FROM_SNAPSHOT,
    ):
        raise exception.InvalidShareInstance(
            reason=f'the driver says that it is {status}'
        )
    progress = answer.get('progress')
    return ReportedClone(
        status,
        normalise_export_locations(answer.get('export_locations')),
        None if progress is None else str(progress)[:32],
    )
