"""Manage and unmanage existing shares and snapshots of a back end.

Each method contains the success path only, as in provisioning. What a
driver has managed before its work was given up stays managed until it is
unmanaged.
"""

from collections.abc import Callable, Mapping
import contextlib
import dataclasses
import datetime
import functools
import typing
from typing import Annotated

from manila_lite import exception
from manila_lite.conf import Option, upper_names
from manila_lite.db.queries.services import pools, services
from manila_lite.db.queries.shares import (
    clone_sources,
    instances as share_instances,
    shares,
)
from manila_lite.db.queries.snapshots import exports as snapshot_exports, snapshots
from manila_lite.db.rows import InstanceRow, SnapshotInstanceRow
from manila_lite.db.session import Session
from manila_lite.db.transitions import fire
from manila_lite.host import Host
from manila_lite.quota import charges, snapshots as snapshot_quota
from manila_lite.quota.limits import DefaultLimits
from manila_lite.quota.shares import deltas_of, owner_of, remove_and_credit
from manila_lite.rpc.contract import implements, work
from manila_lite.rpc.share import BINARY, ManagingRpc
from manila_lite.share.drivers.base import (
    ExportLocation,
    ManageSnapshotReply,
    ShareDriver,
    ShareForDriver,
    normalise_export_locations,
)
from manila_lite.share.manager.access import teardown
from manila_lite.share.manager.driver_view import share_view
from manila_lite.share.manager.driver_view.share_view import (
    LoadedInstance,
    LoadedSnapshot,
    NameTemplates,
)
from manila_lite.share.manager.endpoint import require_status, undo_if_gone
from manila_lite.share.manager.removal import was_never_made
from manila_lite.share.manager.servers.lifecycle import ShareServersEndpoint
from manila_lite.states.share_instance import SHARE_INSTANCE, InstanceStatus
from manila_lite.states.snapshot_instance import SNAPSHOT_INSTANCE, SnapshotStatus
from manila_lite.work.job import JobContext
from manila_lite.work.table import Claim

MANAGED_AT = '__managed_at'
"""The metadata key with the time when a share was managed."""

_BEING_UNMANAGED = (
    InstanceStatus.UNMANAGE_STARTING,
    InstanceStatus.MANAGE_ERROR_UNMANAGE_STARTING,
)


class ManagedShare(typing.NamedTuple):
    """What the driver reports about a managed share."""

    size: int
    exports: list[ExportLocation]


@implements(ManagingRpc)
@dataclasses.dataclass(eq=False)
class ManagingEndpoint:
    """Manages and unmanages the shares and snapshots of one back end.

    `limits` are the configured quotas, for projects without usage so far.
    Managed resources are charged even beyond the limits. Only shares of these
    `protocols` can be managed.
    """

    driver: ShareDriver
    names: NameTemplates
    limits: DefaultLimits
    servers: ShareServersEndpoint
    protocols: Annotated[frozenset[str], Option('enabled_share_protocols', upper_names)]

    def _call(
        self,
        method: Callable[..., typing.Any],
        method_with_server: Callable[..., typing.Any],
        resource: LoadedInstance | LoadedSnapshot,
        *args: object,
    ) -> typing.Any:
        """Call the variant of a driver method for its DHSS mode."""
        if not self.driver.driver_handles_share_servers:
            return method(*args)
        if resource.share_server is None:
            raise exception.InvalidShareServer(
                reason=f'{resource.row.id} is on no share server'
            )
        return method_with_server(*args, share_server=resource.share_server)

    # Shares

    @work(expects=InstanceStatus.MANAGE_STARTING)
    def manage_share_instance(
        self, job: JobContext, instance_id: str, driver_options: dict[str, str]
    ) -> None:
        instance: LoadedInstance = job.prepared
        if instance.row.share_proto not in self.protocols:
            raise exception.ManageInvalidShare(
                reason=f'protocol {instance.row.share_proto} is not enabled'
            )
        share = self._view(instance)
        managed = _parse_reply(
            self._call(
                self.driver.manage_existing,
                self.driver.manage_existing_with_server,
                instance,
                share,
                driver_options,
            ),
            instance,
        )
        undo = functools.partial(
            self._call,
            self.driver.unmanage,
            self.driver.unmanage_with_server,
            instance,
            share,
        )
        with undo_if_gone(job, share_instances.find, instance_id, undo):
            job.finish(self._managed, instance.row, managed)

    def _managed(
        self, session: Session, row: InstanceRow, managed: ManagedShare
    ) -> None:
        fire(session, SHARE_INSTANCE, row.id, 'managed', progress='100%')
        shares.resize(session, row.share_id, managed.size)
        resized = share_instances.get(session, row.id)
        charges.adjust(
            session, owner_of(resized), deltas_of(resized), limits=self.limits
        )
        pools.add_preexisting(session, row.host, managed.size)
        self._refuse_managed_path(session, row, managed)
        share_instances.replace_export_locations(session, row.id, managed.exports)
        shares.METADATA.merge(session, row.share_id, {MANAGED_AT: _text(session.now)})

    def _refuse_managed_path(
        self, session: Session, row: InstanceRow, managed: ManagedShare
    ) -> None:
        """Raise ShareAlreadyManaged when another share has a path.

        A request may name a path in another form than the driver reports.
        The row lock serializes managing on one back end.
        """
        host = Host.parse(row.host).service_host
        services.get(session, host, BINARY, lock=True)
        for export in managed.exports:
            if share_instances.is_path_owned(
                session, host, export['path'], except_id=row.id
            ):
                raise exception.ShareAlreadyManaged(path=export['path'], host=host)

    @work(expects=_BEING_UNMANAGED)
    def unmanage_share_instance(self, job: JobContext, instance_id: str) -> None:
        instance: LoadedInstance = job.prepared
        if instance.server is not None or (
            not self.driver.driver_handles_share_servers
        ):
            with (
                contextlib.suppress(exception.ShareResourceNotFound)
                if was_never_made(instance.row)
                else contextlib.nullcontext()
            ):
                self._call(
                    self.driver.unmanage,
                    self.driver.unmanage_with_server,
                    instance,
                    self._view(instance),
                )
        job.finish(self._unmanaged, instance.row)

    def _unmanaged(self, session: Session, row: InstanceRow) -> None:
        remove_and_credit(session, row, 'unmanaged')
        self.servers.disable_auto_delete(session, row.share_server_id)
        self.servers.release(session, row.share_server_id)

    # Snapshots

    def prepare_manage_snapshot_instance(
        self, session: Session, job: Claim
    ) -> LoadedSnapshot:
        return self._expect_snapshot(session, job, SnapshotStatus.MANAGE_STARTING)

    def manage_snapshot_instance(
        self, job: JobContext, snapshot_instance_id: str, driver_options: dict[str, str]
    ) -> None:
        loaded: LoadedSnapshot = job.prepared
        snapshot = share_view.snapshot_for_driver(loaded, self.names)
        reply = (
            self._call(
                self.driver.manage_existing_snapshot,
                self.driver.manage_existing_snapshot_with_server,
                loaded,
                snapshot,
                driver_options,
            )
            or {}
        )
        undo = functools.partial(
            self._call,
            self.driver.unmanage_snapshot,
            self.driver.unmanage_snapshot_with_server,
            loaded,
            snapshot,
        )
        with undo_if_gone(job, snapshots.find, snapshot_instance_id, undo):
            job.finish(self._managed_snapshot, loaded.row, reply)

    def _managed_snapshot(
        self, session: Session, row: SnapshotInstanceRow, reply: ManageSnapshotReply
    ) -> None:
        """Record the reported size, or the size of the share without one."""
        location = reply.get('provider_location') or row.provider_location
        size = int(reply.get('size') or 0) or row.share_size
        snapshots.lock_share_instance(session, row.share_instance_id)
        if clone_sources.is_location_in_use(
            session, row.share_id, location, except_id=row.id
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
        )
        snapshots.resize(session, row.snapshot_id, size)
        charges.adjust(
            session,
            snapshot_quota.owner_of(row),
            snapshot_quota.deltas_of(size),
            limits=self.limits,
        )
        if row.mount_snapshot_support:
            snapshot_exports.replace(
                session,
                row.id,
                normalise_export_locations(reply.get('export_locations')),
            )

    def prepare_unmanage_snapshot_instance(
        self, session: Session, job: Claim
    ) -> teardown.SnapshotTeardown:
        return teardown.queue_snapshot_denials(
            session,
            self._expect_snapshot(session, job, SnapshotStatus.UNMANAGE_STARTING),
            self.driver,
        )

    def unmanage_snapshot_instance(
        self, job: JobContext, snapshot_instance_id: str
    ) -> None:
        removal: teardown.SnapshotTeardown = job.prepared
        loaded = removal.snapshot
        snapshot = share_view.snapshot_for_driver(loaded, self.names)
        teardown.deny_all_to_snapshot(self.driver, snapshot, removal)
        self._call(
            self.driver.unmanage_snapshot,
            self.driver.unmanage_snapshot_with_server,
            loaded,
            snapshot,
        )
        job.finish(self._unmanaged_snapshot, loaded)

    def _unmanaged_snapshot(self, session: Session, snapshot: LoadedSnapshot) -> None:
        snapshot_quota.remove_and_credit(session, snapshot.row, 'unmanaged')

    def failed_unmanage_snapshot_instance(
        self, session: Session, job: Claim, error: Exception
    ) -> bool:
        teardown.fail_snapshot_denials(session, job.resource_id)
        return False

    # All

    def _expect_snapshot(
        self, session: Session, job: Claim, status: str
    ) -> LoadedSnapshot:
        """Return the locked snapshot if it still waits for this work."""
        snapshot = share_view.load_snapshot(session, job.resource_id, lock_shared=True)
        require_status(
            job, SNAPSHOT_INSTANCE, snapshot.row.id, snapshot.row.status, status
        )
        return snapshot

    def expect(self, session: Session, job: Claim, *statuses: str) -> LoadedInstance:
        """Return the locked instance if it still waits for this work."""
        instance = share_view.load_instance(session, job.resource_id, lock_shared=True)
        require_status(
            job, SHARE_INSTANCE, instance.row.id, instance.row.status, *statuses
        )
        return instance

    def _view(self, instance: LoadedInstance) -> ShareForDriver:
        return share_view.share_for_driver(instance, self.names.share)


def _parse_reply(reply: typing.Any, instance: LoadedInstance) -> ManagedShare:
    """Return the reported size and exports; default to the known exports."""
    exports = normalise_export_locations(reply.get('export_locations'))
    return ManagedShare(
        _size(reply),
        exports
        or [
            ExportLocation(path=row.path, is_admin_only=row.is_admin_only, metadata={})
            for row in instance.exports
        ],
    )


def _size(reply: Mapping[str, typing.Any]) -> int:
    size = int(reply.get('size') or 0)
    if size <= 0:
        raise exception.ManageInvalidShare(reason='the driver did not report its size')
    return size


def _text(now: datetime.datetime) -> str:
    return now.isoformat(timespec='microseconds')
