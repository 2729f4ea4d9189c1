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
from manila_lite.db.queries.shares import clone_sources as share_sources
from manila_lite.db.queries.shares import instances
from manila_lite.db.queries.shares import shares
from manila_lite.db.queries.snapshots import exports as snapshot_exports
from manila_lite.db.queries.snapshots import snapshots
from manila_lite.db.session import Session
from manila_lite.db.transitions import fire
from manila_lite.quota import charges
from manila_lite.quota import snapshots as snapshot_books
from manila_lite.quota.shares import deltas_of
from manila_lite.quota.shares import discard
from manila_lite.quota.shares import owner_of
from manila_lite.rpc.contract import implements
from manila_lite.rpc.share import BINARY
from manila_lite.rpc.share import ManagingRpc
from manila_lite.share.drivers.base import ExportLocation
from manila_lite.share.drivers.base import ShareDriver
from manila_lite.share.drivers.base import export_locations
from manila_lite.share.manager.access import snapshot_rules as snapshot_access
from manila_lite.share.manager.driver_view import share_view as driver_view
from manila_lite.share.manager.driver_view.share_view import Found
from manila_lite.share.manager.driver_view.share_view import FoundSnapshot
from manila_lite.share.manager.driver_view.share_view import Names
from manila_lite.share.manager.servers.lifecycle import ShareServers
from manila_lite.states.share_instance import MACHINE as SHARE_INSTANCE
from manila_lite.states.share_instance import S
from manila_lite.states.snapshot_instance import MACHINE as SNAPSHOT_INSTANCE
from manila_lite.states.snapshot_instance import S as SnapshotS

MANAGED_AT = '__managed_at'
"""The metadata key that tells when a share was taken over."""

_BEING_UNMANAGED = (S.UNMANAGE_STARTING, S.MANAGE_ERROR_UNMANAGE_STARTING)


class Managed(typing.NamedTuple):
    """What a share was found to be."""

    size: int
    exports: list[ExportLocation]


@implements(ManagingRpc)
class Managing:
    """What one back end has, and had before it was known here.

    `limits` are those of the options, for projects seen for the first
    time: what is taken over counts, whatever their limits.
    """

    def __init__(
        self,
        driver: ShareDriver,
        names: Names,
        limits: Mapping[str, int],
        servers: ShareServers,
    ):
        self.driver = driver
        self.names = names
        self.limits = limits
        self.servers = servers

    def _ask(
        self, verb: str, found: Found | FoundSnapshot, *args: typing.Any
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
        return self._expect(session, job, S.MANAGE_STARTING)

    def manage_share_instance(self, job, instance_id, driver_options):
        share = self._view(job.found)
        found = _managed(
            self._ask('manage_existing', job.found, share, driver_options),
            job.found,
        )
        try:
            job.finish(self._managed, job.found.row, found)
        except (exception.WorkLost, exception.ResourceNotFound):
            if job.read(instances.find, instance_id) is None:
                # Given up and removed meanwhile: nobody would let it go.
                self._ask('unmanage', job.found, share)
            raise

    def _managed(self, session, instance, found: Managed):
        fire(
            session,
            SHARE_INSTANCE,
            instance.id,
            'managed',
            progress='100%',
            updated_at=session.now,
        )
        shares.resize(session, instance.share_id, found.size)
        sized = instances.get(session, instance.id)
        charges.adjust(
            session, owner_of(sized), deltas_of(sized), limits=self.limits
        )
        pools.count_found(session, instance.host, found.size)
        self._refuse_shared(session, instance, found)
        instances.replace_export_locations(session, instance.id, found.exports)
        shares.METADATA.merge(
            session, instance.share_id, {MANAGED_AT: _text(session.now)}
        )

    def _refuse_shared(self, session, instance, found):
        """A path may have several spellings, and only one share.

        Who manages on this back end at the same time takes turns.
        """
        host, _, _ = instance.host.partition('#')
        services.get(session, host, BINARY, keep=True)
        for export in found.exports:
            if instances.is_held(
                session, host, export['path'], but=instance.id
            ):
                raise exception.ShareManagedAlready(
                    path=export['path'], host=host
                )

    def prepare_unmanage_share_instance(self, session: Session, job):
        return self._expect(session, job, *_BEING_UNMANAGED)

    def unmanage_share_instance(self, job, instance_id):
        if job.found.server is not None or (
            not self.driver.driver_handles_share_servers
        ):
            self._ask('unmanage', job.found, self._view(job.found))
        job.finish(self._unmanaged, job.found.row)

    def _unmanaged(self, session, instance):
        discard(session, instance, 'unmanaged')
        self.servers.keep(session, instance.share_server_id)
        self.servers.release(session, instance.share_server_id)

    # Snapshots

    def prepare_manage_snapshot_instance(self, session: Session, job):
        return self._expect_snapshot(session, job, SnapshotS.MANAGE_STARTING)

    def manage_snapshot_instance(
        self, job, snapshot_instance_id, driver_options
    ):
        snapshot = driver_view.snapshot_for_driver(job.found, self.names)
        answer = (
            self._ask(
                'manage_existing_snapshot', job.found, snapshot, driver_options
            )
            or {}
        )
        try:
            job.finish(self._managed_snapshot, job.found.row, answer)
        except (exception.WorkLost, exception.ResourceNotFound):
            if job.read(snapshots.find, snapshot_instance_id) is None:
                # Given up and removed meanwhile: nobody would let it go.
                self._ask('unmanage_snapshot', job.found, snapshot)
            raise

    def _managed_snapshot(self, session, row, answer):
        """As large as the back end says, or as the share if it does not."""
        location = answer.get('provider_location') or row.provider_location
        size = int(answer.get('size') or 0) or row.share_size
        snapshots.hold_share(session, row.share_instance_id)
        if share_sources.is_located(
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
                export_locations(answer.get('export_locations')),
            )

    def prepare_unmanage_snapshot_instance(self, session: Session, job):
        return snapshot_access.take_all(
            session,
            self._expect_snapshot(session, job, SnapshotS.UNMANAGE_STARTING),
            self.driver,
        )

    def unmanage_snapshot_instance(self, job, snapshot_instance_id):
        found = job.found.found
        snapshot = driver_view.snapshot_for_driver(found, self.names)
        snapshot_access.deny_all(self.driver, snapshot, job.found)
        self._ask('unmanage_snapshot', found, snapshot)
        job.finish(self._unmanaged_snapshot, found)

    def _unmanaged_snapshot(self, session, found):
        snapshot_books.discard(session, found.row, 'unmanaged')
        self.servers.keep(session, found.share.row.share_server_id)

    def failed_unmanage_snapshot_instance(self, session, job, error):
        snapshot_access.give_up(session, job.resource_id)
        return False

    # All

    def _expect_snapshot(
        self, session: Session, job, status: str
    ) -> FoundSnapshot:
        found = driver_view.find_snapshot(session, job.resource_id, keep=True)
        if found.row.status != status:
            raise exception.InvalidStatus(
                resource='snapshot instance',
                id=found.row.id,
                status=found.row.status,
                event=job.kind,
                allowed=status,
            )
        return found

    def _expect(self, session: Session, job, *statuses: str) -> Found:
        """The instance, kept, if it still waits for this work."""
        found = driver_view.find(session, job.resource_id, keep=True)
        if found.row.status not in statuses:
            raise exception.InvalidStatus(
                resource='share instance',
                id=found.row.id,
                status=found.row.status,
                event=job.kind,
                allowed=', '.join(statuses),
            )
        return found

    def _view(self, found: Found):
        return driver_view.for_driver(found, self.names.share)


def _managed(answer: typing.Any, found: Found) -> Managed:
    """What the driver says, its exports else those that were given."""
    exports = export_locations(answer.get('export_locations'))
    return Managed(
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
