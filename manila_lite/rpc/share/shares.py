"""Work on shares, their snapshots, groups and migrations."""

import typing

from manila_lite import exception
from manila_lite.context import RequestContext as Ctx
from manila_lite.messages import Action, Detail
from manila_lite.rpc.contract import Contract, call, durable
from manila_lite.states.access_rule import SHARE_INSTANCE_ACCESS
from manila_lite.states.share_backup import SHARE_BACKUP
from manila_lite.states.share_group import SHARE_GROUP, SHARE_GROUP_SNAPSHOT
from manila_lite.states.share_instance import SHARE_INSTANCE
from manila_lite.states.share_task import SHARE_TASK
from manila_lite.states.snapshot_instance import SNAPSHOT_INSTANCE

TOPIC = 'manila-share'
BINARY = 'manila-share'


class ShareServiceContract(Contract):
    """What share services do; a contract that changes has a version of its own."""

    topic, version = TOPIC, '1.0'


class ProvisioningRpc(ShareServiceContract):
    """Create, extend, shrink and delete share instances.

    `placement` has the arguments with which the scheduler places the share
    elsewhere when it is refused; None if it is not to be placed again.
    """

    @durable((SHARE_INSTANCE, 'create_failed'), Action.CREATE)
    def create_share_instance(
        self, ctx: Ctx, instance_id: str, placement: dict[str, typing.Any] | None = None
    ) -> None: ...

    @durable(
        (SHARE_INSTANCE, 'create_failed'),
        Action.CREATE,
        Detail.DRIVER_FAILED_CREATING_FROM_SNAP,
    )
    def create_share_from_snapshot(
        self,
        ctx: Ctx,
        instance_id: str,
        snapshot_id: str,
        placement: dict[str, typing.Any] | None = None,
    ) -> None: ...

    @durable(
        (SHARE_INSTANCE, 'create_failed'),
        Action.CREATE,
        Detail.DRIVER_FAILED_CREATING_FROM_SNAP,
    )
    def create_share_from_group_snapshot(
        self, ctx: Ctx, instance_id: str, member_id: str
    ) -> None: ...

    @durable(
        (SHARE_INSTANCE, 'create_failed'),
        Action.CREATE,
        Detail.DRIVER_FAILED_CREATING_FROM_SNAP,
        repeatable=True,
    )
    def await_share_from_snapshot(self, ctx: Ctx, instance_id: str) -> None: ...

    @durable(
        (SHARE_INSTANCE, 'extend_failed'),
        Action.EXTEND,
        Detail.DRIVER_FAILED_EXTEND,
        refused={exception.NoValidHost: ('extend_refused', Detail.FILTER_CAPACITY)},
    )
    def extend_share_instance(
        self, ctx: Ctx, instance_id: str, new_size: int, growth: int, host: str
    ) -> None: ...

    @durable(
        (SHARE_INSTANCE, 'shrink_failed'),
        Action.SHRINK,
        Detail.DRIVER_FAILED_SHRINK,
        refused={
            exception.ShareShrinkingPossibleDataLoss: (
                'shrink_refused',
                Detail.DRIVER_REFUSED_SHRINK,
            ),
            NotImplementedError: ('shrink_refused', Detail.DRIVER_FAILED_SHRINK),
        },
    )
    def shrink_share_instance(
        self, ctx: Ctx, instance_id: str, new_size: int
    ) -> None: ...

    @durable((SHARE_INSTANCE, 'delete_failed'), Action.DELETE, repeatable=True)
    def delete_share_instance(
        self, ctx: Ctx, instance_id: str, force: bool = False
    ) -> None: ...

    @durable((SHARE_INSTANCE, 'deferred_delete_failed'), Action.DELETE, repeatable=True)
    def delete_share_instance_deferred(self, ctx: Ctx, instance_id: str) -> None: ...


class ManagingRpc(ShareServiceContract):
    """Manage and unmanage shares and snapshots that exist on a back end."""

    @durable((SHARE_INSTANCE, 'manage_failed'), Action.UPDATE)
    def manage_share_instance(
        self, ctx: Ctx, instance_id: str, driver_options: dict[str, typing.Any]
    ) -> None: ...

    @durable((SHARE_INSTANCE, 'unmanage_failed'), Action.UPDATE)
    def unmanage_share_instance(self, ctx: Ctx, instance_id: str) -> None: ...

    @durable((SNAPSHOT_INSTANCE, 'manage_failed'), Action.UPDATE)
    def manage_snapshot_instance(
        self, ctx: Ctx, snapshot_instance_id: str, driver_options: dict[str, typing.Any]
    ) -> None: ...

    @durable((SNAPSHOT_INSTANCE, 'unmanage_failed'), Action.UPDATE)
    def unmanage_snapshot_instance(
        self, ctx: Ctx, snapshot_instance_id: str
    ) -> None: ...


class EnsuringRpc(ShareServiceContract):
    """Ensure that shares are exported at their export locations."""

    @durable(repeatable=True, coalesced=True)
    def ensure_shares(
        self, ctx: Ctx, service_id: int, update_status: bool = True, after: str = ''
    ) -> None: ...


class ConnectionsRpc(ShareServiceContract):
    @call(timeout=60)
    def get_connection(
        self, ctx: Ctx, instance_id: str, fence: int = 0
    ) -> dict[str, typing.Any]:
        """Return the driver's `ConnectionInfo` of a share instance.

        It ends the connections of earlier attempts, those with a smaller
        `fence`. Raises StaleFencingToken if there was a later one, and
        ContentUnreachable if the driver has no connections.
        """
        raise NotImplementedError

    @call(timeout=60)
    def end_connection(self, ctx: Ctx, instance_id: str, fence: int = 0) -> None:
        """Take away the access of the data service; it may be gone already."""


class ShareMetadataRpc(ShareServiceContract):
    """Pass some metadata of shares to the driver."""

    topic, version = TOPIC, '1.0'

    # The values are those at the time of the call.
    @durable(repeatable=True, coalesced=True)
    def update_share_from_metadata(
        self, ctx: Ctx, share_instance_id: str, keys: list[str]
    ) -> None: ...


class ShareTransfersRpc(ShareServiceContract):
    """Carry out the transfer of a share that has been accepted."""

    topic, version = TOPIC, '1.0'

    # Its handler fires the events of the transfer: the work is on the share
    # instance, which nothing else may work on meanwhile.
    @durable(repeatable=True)
    def accept_transfer(
        self, ctx: Ctx, share_instance_id: str, transfer_id: str
    ) -> None: ...


class AccessRpc(ShareServiceContract):
    """Apply the access rules of a share to its back end.

    A back end treats a share and its rules as one object.
    """

    @durable(
        (SHARE_INSTANCE_ACCESS, 'failed'),
        Action.UPDATE_ACCESS_RULES,
        repeatable=True,
        exclusion=SHARE_INSTANCE.resource,
        coalesced=True,
    )
    def sync_access(self, ctx: Ctx, instance_id: str) -> None: ...


class SnapshotAccessRpc(ShareServiceContract):
    """Apply the access rules of a snapshot to its back end."""

    @durable(repeatable=True, coalesced=True)
    def sync_snapshot_access(self, ctx: Ctx, snapshot_instance_id: str) -> None: ...


class SnapshotsRpc(ShareServiceContract):
    """Create and delete snapshots, and revert shares to them."""

    @durable((SNAPSHOT_INSTANCE, 'create_failed'), Action.CREATE)
    def create_snapshot_instance(
        self, ctx: Ctx, snapshot_instance_id: str, share_instance_id: str
    ) -> None: ...

    @durable((SNAPSHOT_INSTANCE, 'delete_failed'), Action.DELETE, repeatable=True)
    def delete_snapshot_instance(
        self, ctx: Ctx, snapshot_instance_id: str, force: bool = False
    ) -> None: ...

    @durable(
        (SNAPSHOT_INSTANCE, 'deferred_delete_failed'), Action.DELETE, repeatable=True
    )
    def delete_snapshot_instance_deferred(
        self, ctx: Ctx, snapshot_instance_id: str
    ) -> None: ...

    @durable((SHARE_INSTANCE, 'revert_failed'), Action.REVERT_TO_SNAPSHOT)
    def revert_to_snapshot(
        self, ctx: Ctx, instance_id: str, snapshot_id: str
    ) -> None: ...


class DriverBackupsRpc(ShareServiceContract):
    """Create, restore and delete the backups that a back end keeps.

    The driver starts a backup, and is then polled until it is complete. Its
    methods are idempotent, so all of this is repeatable.
    """

    repeatable = True

    @durable((SHARE_BACKUP, 'create_failed'), Action.CREATE)
    def create_backup(self, ctx: Ctx, share_backup_id: str) -> None: ...

    @durable((SHARE_BACKUP, 'create_failed'), Action.CREATE)
    def continue_backup(self, ctx: Ctx, share_backup_id: str) -> None: ...

    @durable((SHARE_BACKUP, 'restore_failed'), Action.RESTORE_BACKUP)
    def restore_backup(self, ctx: Ctx, share_backup_id: str) -> None: ...

    @durable((SHARE_BACKUP, 'restore_failed'), Action.RESTORE_BACKUP)
    def continue_restore(self, ctx: Ctx, share_backup_id: str) -> None: ...

    @durable((SHARE_BACKUP, 'delete_failed'), Action.DELETE)
    def delete_backup(self, ctx: Ctx, share_backup_id: str) -> None: ...


class ShareGroupsRpc(ShareServiceContract):
    """Create and delete share groups; drivers may be called twice."""

    repeatable = True

    @durable((SHARE_GROUP, 'create_failed'), Action.CREATE)
    def create_share_group(
        self, ctx: Ctx, share_group_id: str, on_network: bool = False
    ) -> None:
        """`on_network` is set for a group on a share network.

        Processes of release 1 would create it without a share server.
        """

    @durable((SHARE_GROUP, 'create_failed'), Action.CREATE)
    def await_shares_of_group(self, ctx: Ctx, share_group_id: str) -> None: ...

    @durable((SHARE_GROUP, 'delete_failed'), Action.DELETE)
    def delete_share_group(self, ctx: Ctx, share_group_id: str) -> None: ...


class ShareGroupSnapshotsRpc(ShareServiceContract):
    """Take and delete snapshots of share groups."""

    @durable((SHARE_GROUP_SNAPSHOT, 'create_failed'), Action.CREATE)
    def create_share_group_snapshot(
        self, ctx: Ctx, share_group_snapshot_id: str
    ) -> None: ...

    @durable((SHARE_GROUP_SNAPSHOT, 'delete_failed'), Action.DELETE, repeatable=True)
    def delete_share_group_snapshot(
        self, ctx: Ctx, share_group_snapshot_id: str
    ) -> None: ...


class ShareMigrationRpc(ShareServiceContract):
    """Migrate a share; the back end that it is on does all of it.

    The driver methods are idempotent, so all of this is repeatable.
    """

    repeatable = True

    @durable((SHARE_TASK, 'failed'), Action.UPDATE)
    def start_share_migration(
        self, ctx: Ctx, share_id: str, needs_release_2: bool = False
    ) -> None:
        """Start the first phase.

        `needs_release_2` is set for what release 1 does not support:
        another share type, share servers, and snapshots.
        """

    @durable((SHARE_TASK, 'failed'), Action.UPDATE)
    def continue_share_migration(self, ctx: Ctx, share_id: str) -> None: ...

    @durable((SHARE_TASK, 'failed'), Action.UPDATE)
    def complete_share_migration(self, ctx: Ctx, share_id: str) -> None: ...

    @durable((SHARE_TASK, 'failed'), Action.UPDATE)
    def cancel_share_migration(self, ctx: Ctx, share_id: str) -> None: ...

    @durable((SHARE_TASK, 'failed'), Action.UPDATE)
    def settle_share_migration(self, ctx: Ctx, share_id: str) -> None: ...

    # The last known progress is there already.
    @call(timeout=2)
    def hear_share_migration(self, ctx: Ctx, share_id: str) -> None: ...


class MigrationServersRpc(ShareServiceContract):
    """Share servers for shares that are migrated to a back end."""

    @durable((SHARE_TASK, 'failed'), Action.UPDATE, repeatable=True)
    def provide_migration_server(self, ctx: Ctx, share_id: str) -> None:
        """Put the destination on a share server, then start the migration.

        Runs on the back end of the destination, which sets up a server
        unless one is suitable.
        """


class HostAssistedMigrationRpc(ShareServiceContract):
    """The part of back ends in a migration that the data service copies.

    All of it is idempotent.
    """

    repeatable = True

    @durable((SHARE_TASK, 'failed'), Action.UPDATE)
    def create_destination(self, ctx: Ctx, share_id: str, ignored: list[str]) -> None:
        """Create the share on this back end, then let it be filled.

        `ignored` are names at the top of the share that are not copied.
        """

    @durable((SHARE_TASK, 'failed'), Action.UPDATE)
    def resume_share_copy(self, ctx: Ctx, share_id: str) -> None:
        """Submit the copy again; runs on the back end of the source."""

    @durable((SHARE_TASK, 'failed'), Action.UPDATE)
    def remove_destination(self, ctx: Ctx, share_id: str) -> None:
        """Delete the share from this back end; the migration is over."""
