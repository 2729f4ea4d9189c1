"""Takes over what the back end has already, and lets it go again.

Each method holds the happy way only, as in provisioning. What a driver
took over before its work was given up is let go when it is unmanaged.
"""

from collections.abc import Mapping
import datetime
import typing

from manila_lite import exception
from manila_lite.db.queries.admin import pools
from manila_lite.db.queries.admin import services
from manila_lite.db.queries.shares import clone_sources
from manila_lite.db.queries.shares import instances as share_instances
from manila_lite.db.queries.shares import shares
from manila_lite.db.queries.snapshots import exports as snapshot_exports
from manila_lite.db.queries.snapshots import snapshots
from manila_lite.db.session import Session
from manila_lite.db.transitions import fire
from manila_lite.quota import charges
from manila_lite.quota import snapshots as snapshot_books
from manila_lite.quota.shares import deltas_of
from manila_lite.quota.shares import owner_of
from manila_lite.quota.shares import remove_and_credit
from manila_lite.rpc.contract import implements
from manila_lite.rpc.share import BINARY
from manila_lite.rpc.share import ManagingRpc
from manila_lite.share.drivers.base import ExportLocation
from manila_lite.share.drivers.base import ShareDriver
from manila_lite.share.drivers.base import normalise_export_locations
from manila_lite.share.manager.access import snapshot_rules as snapshot_access
from manila_lite.share.manager.driver_view import share_view
from manila_lite.share.manager.driver_view.share_view import LoadedInstance
from manila_lite.share.manager.driver_view.share_view import LoadedSnapshot
from manila_lite.share.manager.driver_view.share_view import NameTemplates
from manila_lite.share.manager.servers.lifecycle import ShareServersEndpoint
from manila_lite.states.share_instance import SHARE_INSTANCE
from manila_lite.states.share_instance import InstanceStatus
from manila_lite.states.snapshot_instance import SNAPSHOT_INSTANCE
from manila_lite.states.snapshot_instance import SnapshotStatus

MANAGED_AT = '__managed_at'
"""The metadata key that tells when a share was taken over."""

_BEING_UNMANAGED = (
    InstanceStatus.UNMANAGE_STARTING,
    InstanceStatus.MANAGE_ERROR_UNMANAGE_STARTING,
)


class ManagedShare(typing.NamedTuple):
    """What a share was found to be."""

    size: int
    exports: list[ExportLocation]


@implements(ManagingRpc)
class ManagingEndpoint:
    """What one back end has, and had before it was known here.

    `limits` are those of the options, for projects seen for the first
    time: what is taken over counts, whatever their limits.
    """

    def __init__(
        self,
        driver: ShareDriver,
        names: NameTemplates,
        limits: Mapping[str, int],
        servers: ShareServersEndpoint,
    ):
        self.driver = driver
        self.names = names
        self.limits = limits
        self.servers = servers

    def _ask(
        self,
        verb: str,
        found: LoadedInstance | LoadedSnapshot,
        *args: typing.Any,
    ) -> typing.Any:
        """Ask the driver for what it offers in the mode it works in."""
        if not self.driver.driver_handles_share_servers:
            return getattr(self.driver, verb)(*args)
        if found.share_server is None:
            raise exception.InvalidShareServer(
                reason=f'{found.row.id} is on no share server'
            )
        return getattr(self.driver, f'{verb}_with_server')(
            *args, share_server=found.share_server
        )

    # Shares

    def prepare_manage_share_instance(self, session: Session, job):
        return self._expect(session, job, InstanceStatus.MANAGE_STARTING)

    def manage_share_instance(self, job, instance_id, driver_options):
        share = self._view(job.prepared)
        found = _managed(
            self._ask('manage_existing', job.prepared, share, driver_options),
            job.prepared,
        )
        try:
            job.finish(self._managed, job.prepared.row, found)
        except (exception.ClaimLost, exception.ResourceNotFound):
            if job.read(share_instances.find, instance_id) is None:
                # Given up and removed meanwhile: nobody would let it go.
                self._ask('unmanage', job.prepared, share)
            raise

    def _managed(self, session, instance, found: ManagedShare):
        fire(
            session,
            SHARE_INSTANCE,
            instance.id,
            'managed',
            progress='100%',
            updated_at=session.now,
        )
        shares.resize(session, instance.share_id, found.size)
        sized = share_instances.get(session, instance.id)
        charges.adjust(
            session, owner_of(sized), deltas_of(sized), limits=self.limits
        )
        pools.add_preexisting(session, instance.host, found.size)
        self._refuse_shared(session, instance, found)
        share_instances.replace_export_locations(
            session, instance.id, found.exports
        )
        shares.METADATA.merge(
            session, instance.share_id, {MANAGED_AT: _text(session.now)}
        )

    def _refuse_shared(self, session, instance, found):
        """A path may have several spellings, and only one share.

        Who manages on this back end at the same time takes turns.
        """
        host, _, _ = instance.host.partition('#')
        services.get(session, host, BINARY, lock=True)
        for export in found.exports:
            if share_instances.is_path_owned(
                session, host, export['path'], but=instance.id
            ):
                raise exception.ShareAlreadyManaged(
                    path=export['path'], host=host
                )

    def prepare_unmanage_share_instance(self, session: Session, job):
        return self._expect(session, job, *_BEING_UNMANAGED)

    def unmanage_share_instance(self, job, instance_id):
        if job.prepared.server is not None or (
            not self.driver.driver_handles_share_servers
        ):
            self._ask('unmanage', job.prepared, self._view(job.prepared))
        job.finish(self._unmanaged, job.prepared.row)

    def _unmanaged(self, session, instance):
        remove_and_credit(session, instance, 'unmanaged')
        self.servers.keep(session, instance.share_server_id)
        self.servers.release(session, instance.share_server_id)

    # Snapshots

    def prepare_manage_snapshot_instance(self, session: Session, job):
        return self._expect_snapshot(
            session, job, SnapshotStatus.MANAGE_STARTING
        )

    def manage_snapshot_instance(
        self, job, snapshot_instance_id, driver_options
    ):
        snapshot = share_view.snapshot_for_driver(job.prepared, self.names)
        answer = (
            self._ask(
                'manage_existing_snapshot',
                job.prepared,
                snapshot,
                driver_options,
            )
            or {}
        )
        try:
            job.finish(self._managed_snapshot, job.prepared.row, answer)
        except (exception.ClaimLost, exception.ResourceNotFound):
            if job.read(snapshots.find, snapshot_instance_id) is None:
                # Given up and removed meanwhile: nobody would let it go.
                self._ask('unmanage_snapshot', job.prepared, snapshot)
            raise

    def _managed_snapshot(self, session, row, answer):
        """As large as the back end says, or as the share if it does not."""
        location = answer.get('provider_location') or row.provider_location
        size = int(answer.get('size') or 0) or row.share_size
        snapshots.lock_share_instance(session, row.share_instance_id)
        if clone_sources.is_location_in_use(
            session, row.share_id, location, but=row.id
        ):
            raise exception.ManageInvalidShareSnapshot(
                reason=f'{location} is managed already'
            )
        fire(
            session,
            SNAPSHOT_INSTANCE,
            row.id,
            'managed',
            progress='100%',
            provider_location=location,
            updated_at=session.now,
        )
        snapshots.resize(session, row.snapshot_id, size)
        charges.adjust(
            session,
            snapshot_books.owner_of(row),
            snapshot_books.deltas_of(size),
            limits=self.limits,
        )
        if row.mount_snapshot_support:
            snapshot_exports.replace(
                session,
                row.id,
                normalise_export_locations(answer.get('export_locations')),
            )

    def prepare_unmanage_snapshot_instance(self, session: Session, job):
        return snapshot_access.queue_denials(
            session,
            self._expect_snapshot(
                session, job, SnapshotStatus.UNMANAGE_STARTING
            ),
            self.driver,
        )

    def unmanage_snapshot_instance(self, job, snapshot_instance_id):
        found = job.prepared.found
        snapshot = share_view.snapshot_for_driver(found, self.names)
        snapshot_access.deny_all(self.driver, snapshot, job.prepared)
        self._ask('unmanage_snapshot', found, snapshot)
        job.finish(self._unmanaged_snapshot, found)

    def _unmanaged_snapshot(self, session, found):
        snapshot_books.remove_and_credit(session, found.row, 'unmanaged')
        self.servers.keep(session, found.share.row.share_server_id)

    def failed_unmanage_snapshot_instance(self, session, job, error):
        snapshot_access.fail_denials(session, job.resource_id)
        return False

    # All

    def _expect_snapshot(
        self, session: Session, job, status: str
    ) -> LoadedSnapshot:
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

    def _expect(self, session: Session, job, *statuses: str) -> LoadedInstance:
        """The instance, kept, if it still waits for this work."""
        found = share_view.load_instance(
            session, job.resource_id, lock_shared=True
        )
        if found.row.status not in statuses:
            raise exception.InvalidStatus(
                resource='share instance',
                id=found.row.id,
                status=found.row.status,
                event=job.kind,
                allowed=', '.join(statuses),
            )
        return found

    def _view(self, found: LoadedInstance):
        return share_view.share_for_driver(found, self.names.share)


def _managed(answer: typing.Any, found: LoadedInstance) -> ManagedShare:
    """What the driver says, its exports else those that were given."""
    exports = normalise_export_locations(answer.get('export_locations'))
    return ManagedShare(
        _size(answer),
        exports
        or [
            ExportLocation(
                path=row.path, is_admin_only=row.is_admin_only, metadata={}
            )
            for row in found.exports
        ],
    )


def _size(answer: Mapping[str, typing.Any]) -> int:
    size = int(answer.get('size') or 0)
    if size <= 0:
        raise exception.ManageInvalidShare(
            reason='the driver did not tell its size'
        )
    return size


def _text(now: datetime.datetime) -> str:
    return now.isoformat(timespec='microseconds')
