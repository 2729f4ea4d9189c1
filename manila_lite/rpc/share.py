"""The RPC contracts of the share service."""

import typing

from manila_lite import exception
from manila_lite.context import RequestContext as Ctx
from manila_lite.messages import Action
from manila_lite.messages import Detail
from manila_lite.rpc.contract import Contract
from manila_lite.rpc.contract import call
from manila_lite.rpc.contract import durable
from manila_lite.states.access_rule import SHARE_INSTANCE_ACCESS
from manila_lite.states.share_instance import SHARE_INSTANCE
from manila_lite.states.share_server import SHARE_SERVER
from manila_lite.states.share_server import SHARE_SERVER_TASK
from manila_lite.states.snapshot_instance import SNAPSHOT_INSTANCE

TOPIC = 'manila-share'
BINARY = 'manila-share'


class ProvisioningRpc(Contract):
    """Create, extend, shrink and delete share instances."""

    topic, version = TOPIC, '1.0'

    @durable(failure=(SHARE_INSTANCE, 'create_failed'), action=Action.CREATE)
    def create_share_instance(self, ctx: Ctx, instance_id: str) -> None: ...

    @durable(
        failure=(SHARE_INSTANCE, 'create_failed'),
        action=Action.CREATE,
        detail=Detail.DRIVER_FAILED_CREATING_FROM_SNAP,
    )
    def create_share_from_snapshot(
        self, ctx: Ctx, instance_id: str, snapshot_id: str
    ) -> None: ...

    @durable(
        failure=(SHARE_INSTANCE, 'create_failed'),
        action=Action.CREATE,
        repeatable=True,
        detail=Detail.DRIVER_FAILED_CREATING_FROM_SNAP,
    )
    def await_share_from_snapshot(
        self, ctx: Ctx, instance_id: str
    ) -> None: ...

    @durable(
        failure=(SHARE_INSTANCE, 'extend_failed'),
        action=Action.EXTEND,
        detail=Detail.DRIVER_FAILED_EXTEND,
    )
    def extend_share_instance(
        self, ctx: Ctx, instance_id: str, new_size: int, growth: int, host: str
    ) -> None: ...

    @durable(
        failure=(SHARE_INSTANCE, 'shrink_failed'),
        action=Action.SHRINK,
        detail=Detail.DRIVER_FAILED_SHRINK,
        refused={
            exception.ShareShrinkingPossibleDataLoss: (
                'shrink_refused',
                Detail.DRIVER_REFUSED_SHRINK,
            ),
            NotImplementedError: (
                'shrink_refused',
                Detail.DRIVER_FAILED_SHRINK,
            ),
        },
    )
    def shrink_share_instance(
        self, ctx: Ctx, instance_id: str, new_size: int
    ) -> None: ...

    @durable(
        failure=(SHARE_INSTANCE, 'delete_failed'),
        action=Action.DELETE,
        repeatable=True,
    )
    def delete_share_instance(
        self, ctx: Ctx, instance_id: str, force: bool = False
    ) -> None: ...

    @durable(
        failure=(SHARE_INSTANCE, 'deferred_delete_failed'),
        action=Action.DELETE,
        repeatable=True,
    )
    def delete_share_instance_deferred(
        self, ctx: Ctx, instance_id: str
    ) -> None: ...


class ReconciliationRpc(Contract):
    """Rescue resources that are in flight without work."""

    topic, version = TOPIC, '1.0'

    @durable(resource='service_id', one_per='service_id', repeatable=True)
    def recover(
        self, ctx: Ctx, service_id: int, before: str = '', asked_by: str = ''
    ) -> None: ...

    @durable(
        resource='share_instance_id',
        one_per='share_instance_id',
        repeatable=True,
    )
    def rescue_share_instance(
        self, ctx: Ctx, share_instance_id: str, asked_by: str = ''
    ) -> None: ...

    @durable(
        resource='snapshot_instance_id',
        one_per='snapshot_instance_id',
        repeatable=True,
    )
    def rescue_snapshot_instance(
        self, ctx: Ctx, snapshot_instance_id: str, asked_by: str = ''
    ) -> None: ...

    @durable(
        resource='share_instance_access_id',
        one_per='share_instance_access_id',
        repeatable=True,
    )
    def rescue_access(
        self, ctx: Ctx, share_instance_access_id: str, asked_by: str = ''
    ) -> None: ...

    @durable(
        resource='snapshot_instance_id',
        one_per='snapshot_instance_id',
        repeatable=True,
    )
    def rescue_snapshot_access(
        self, ctx: Ctx, snapshot_instance_id: str, asked_by: str = ''
    ) -> None: ...

    @durable(
        resource='share_server_id', one_per='share_server_id', repeatable=True
    )
    def rescue_share_server(
        self, ctx: Ctx, share_server_id: str, asked_by: str = ''
    ) -> None: ...

    @durable(
        resource='share_server_task_id',
        one_per='share_server_task_id',
        repeatable=True,
    )
    def rescue_share_server_task(
        self, ctx: Ctx, share_server_task_id: str, asked_by: str = ''
    ) -> None: ...


RESCUES = {
    'share_server': 'rescue_share_server',
    'share_server_task': 'rescue_share_server_task',
    'share_instance': 'rescue_share_instance',
    'snapshot_instance': 'rescue_snapshot_instance',
    'access_rule': 'rescue_access',
    'share_instance_access': 'rescue_access',
    'snapshot_access_rule': 'rescue_snapshot_access',
}
"""The method that rescues a resource, by the name of its state table."""


class EnsuringRpc(Contract):
    """Ensure that shares are exported at their export locations."""

    topic, version = TOPIC, '1.0'

    @durable(resource='service_id', one_per='service_id', repeatable=True)
    def ensure_shares(
        self,
        ctx: Ctx,
        service_id: int,
        update_status: bool = True,
        after: str = '',
    ) -> None: ...


class AccessRpc(Contract):
    """Apply the access rules of a share to its back end."""

    topic, version = TOPIC, '1.0'

    @durable(
        failure=(SHARE_INSTANCE_ACCESS, 'failed'),
        one_per='instance_id',
        repeatable=True,
        action=Action.UPDATE_ACCESS_RULES,
    )
    def sync_access(self, ctx: Ctx, instance_id: str) -> None: ...


class SnapshotsRpc(Contract):
    """Create and delete snapshots, and revert shares to them."""

    topic, version = TOPIC, '1.0'

    @durable(
        failure=(SNAPSHOT_INSTANCE, 'create_failed'),
        action=Action.CREATE,
        resource='snapshot_instance_id',
    )
    def create_snapshot_instance(
        self, ctx: Ctx, snapshot_instance_id: str, share_instance_id: str
    ) -> None: ...

    @durable(
        failure=(SNAPSHOT_INSTANCE, 'delete_failed'),
        action=Action.DELETE,
        resource='snapshot_instance_id',
        repeatable=True,
    )
    def delete_snapshot_instance(
        self, ctx: Ctx, snapshot_instance_id: str, force: bool = False
    ) -> None: ...

    @durable(
        failure=(SHARE_INSTANCE, 'revert_failed'),
        action=Action.REVERT_TO_SNAPSHOT,
    )
    def revert_to_snapshot(
        self, ctx: Ctx, instance_id: str, snapshot_id: str
    ) -> None: ...


class SnapshotAccessRpc(Contract):
    """Apply the access rules of a snapshot to its back end."""

    topic, version = TOPIC, '1.0'

    @durable(
        resource='snapshot_instance_id',
        one_per='snapshot_instance_id',
        repeatable=True,
    )
    def sync_snapshot_access(
        self, ctx: Ctx, snapshot_instance_id: str
    ) -> None: ...


class ManagingRpc(Contract):
    """Manage and unmanage shares and snapshots that exist on a back end."""

    topic, version = TOPIC, '1.0'

    @durable(failure=(SHARE_INSTANCE, 'manage_failed'), action=Action.UPDATE)
    def manage_share_instance(
        self, ctx: Ctx, instance_id: str, driver_options: dict[str, typing.Any]
    ) -> None: ...

    @durable(failure=(SHARE_INSTANCE, 'unmanage_failed'), action=Action.UPDATE)
    def unmanage_share_instance(self, ctx: Ctx, instance_id: str) -> None: ...

    @durable(
        failure=(SNAPSHOT_INSTANCE, 'manage_failed'),
        action=Action.UPDATE,
        resource='snapshot_instance_id',
    )
    def manage_snapshot_instance(
        self,
        ctx: Ctx,
        snapshot_instance_id: str,
        driver_options: dict[str, typing.Any],
    ) -> None: ...

    @durable(
        failure=(SNAPSHOT_INSTANCE, 'unmanage_failed'),
        action=Action.UPDATE,
        resource='snapshot_instance_id',
    )
    def unmanage_snapshot_instance(
        self, ctx: Ctx, snapshot_instance_id: str
    ) -> None: ...


class ShareServersRpc(Contract):
    """Delete, manage and unmanage share servers."""

    topic, version = TOPIC, '1.0'

    @durable(
        failure=(SHARE_SERVER, 'delete_failed'),
        resource='share_server_id',
        repeatable=True,
    )
    def delete_share_server(
        self,
        ctx: Ctx,
        share_server_id: str,
        security_service_ids: tuple[str, ...] = (),
    ) -> None: ...

    @durable(
        failure=(SHARE_SERVER, 'manage_failed'), resource='share_server_id'
    )
    def manage_share_server(
        self,
        ctx: Ctx,
        share_server_id: str,
        identifier: str,
        driver_options: dict[str, typing.Any],
    ) -> None: ...

    @durable(
        failure=(SHARE_SERVER, 'unmanage_failed'), resource='share_server_id'
    )
    def unmanage_share_server(
        self, ctx: Ctx, share_server_id: str, force: bool = False
    ) -> None: ...


class NetworkUpdatesRpc(Contract):
    """Apply changes of share networks to the share servers on them.

    The driver methods are idempotent, so all of this is repeatable.
    """

    topic, version = TOPIC, '1.0'

    @durable(
        failure=(SHARE_SERVER, 'network_change_failed'),
        resource='share_server_id',
        repeatable=True,
    )
    def update_security_service(
        self,
        ctx: Ctx,
        share_server_id: str,
        share_network_id: str,
        new_id: str,
        current_id: str | None,
    ) -> None: ...

    @durable(
        failure=(SHARE_SERVER, 'network_change_failed'),
        resource='share_server_id',
        repeatable=True,
    )
    def update_allocations(
        self,
        ctx: Ctx,
        share_server_id: str,
        share_network_id: str,
        subnet_id: str,
    ) -> None: ...

    @durable(resource='share_server_id', repeatable=True)
    def tell_subnet_metadata(
        self,
        ctx: Ctx,
        share_server_id: str,
        share_network_id: str,
        subnet_id: str,
        metadata: dict[str, str],
    ) -> None: ...

    @durable(resource='share_network_id', repeatable=True)
    def check_security_service(
        self,
        ctx: Ctx,
        share_network_id: str,
        operation: str,
        new_id: str,
        current_id: str | None,
    ) -> None: ...

    @durable(resource='share_network_id', repeatable=True)
    def check_allocations(
        self,
        ctx: Ctx,
        share_network_id: str,
        operation: str,
        zone_id: str | None,
        neutron_net_id: str | None,
        neutron_subnet_id: str | None,
    ) -> None: ...


class ServerMigrationRpc(Contract):
    """Migrate a share server; the destination back end does all of it.

    `share_server_id` is the id of the source. The driver methods are
    idempotent, so all of this is repeatable.
    """

    topic, version = TOPIC, '1.0'

    @durable(
        failure=(SHARE_SERVER_TASK, 'failed'),
        repeatable=True,
        resource='share_server_id',
    )
    def start_server_migration(
        self, ctx: Ctx, share_server_id: str
    ) -> None: ...

    @durable(
        failure=(SHARE_SERVER_TASK, 'failed'),
        repeatable=True,
        resource='share_server_id',
    )
    def continue_server_migration(
        self, ctx: Ctx, share_server_id: str
    ) -> None: ...

    @durable(
        failure=(SHARE_SERVER_TASK, 'failed'),
        repeatable=True,
        resource='share_server_id',
    )
    def complete_server_migration(
        self, ctx: Ctx, share_server_id: str
    ) -> None: ...

    @durable(
        failure=(SHARE_SERVER_TASK, 'failed'),
        repeatable=True,
        resource='share_server_id',
    )
    def cancel_server_migration(
        self, ctx: Ctx, share_server_id: str
    ) -> None: ...

    @durable(
        failure=(SHARE_SERVER_TASK, 'failed'),
        repeatable=True,
        resource='share_server_id',
    )
    def settle_server_migration(
        self, ctx: Ctx, share_server_id: str
    ) -> None: ...

    @call(timeout=90)
    def check_server_migration(
        self,
        ctx: Ctx,
        share_server_id: str,
        dest_host: str,
        writable: bool,
        nondisruptive: bool,
        preserve_snapshots: bool,
        new_share_network_id: str | None = None,
    ) -> dict[str, typing.Any]:
        raise NotImplementedError

    @call(timeout=15)
    def hear_server_migration(
        self, ctx: Ctx, share_server_id: str
    ) -> None: ...


class ReplicationRpc(Contract):
    """Create, promote and delete replicas, each on its own back end.

    Promotion is repeatable: the driver method is idempotent.
    """

    topic, version = TOPIC, '1.0'

    @durable(failure=(SHARE_INSTANCE, 'create_failed'), action=Action.CREATE)
    def create_share_replica(self, ctx: Ctx, instance_id: str) -> None: ...

    @durable(
        failure=(SHARE_INSTANCE, 'delete_failed'),
        action=Action.DELETE,
        repeatable=True,
    )
    def delete_share_replica(
        self, ctx: Ctx, instance_id: str, force: bool = False
    ) -> None: ...

    @durable(
        failure=(SHARE_INSTANCE, 'promote_failed'),
        action=Action.PROMOTE,
        repeatable=True,
    )
    def promote_share_replica(
        self, ctx: Ctx, instance_id: str, quiesce_wait_time: int | None = None
    ) -> None: ...


class ReplicaUpdatesRpc(Contract):
    """Update the state of replicas, periodically and on request."""

    topic, version = TOPIC, '1.0'

    @durable(resource='service_id', one_per='service_id', repeatable=True)
    def update_share_replicas(
        self, ctx: Ctx, service_id: int, after: str = ''
    ) -> None: ...

    @durable(
        resource='share_replica_id',
        one_per='share_replica_id',
        repeatable=True,
    )
    def update_share_replica(
        self, ctx: Ctx, share_replica_id: str
    ) -> None: ...


class ReplicatedSnapshotsRpc(Contract):
    """Create, delete and revert to snapshots of a share with replicas.

    The back end of the active replica does the work, on its own instance
    of the snapshot. Replica updates track the instances on other back
    ends.
    """

    topic, version = TOPIC, '1.0'

    @durable(
        failure=(SNAPSHOT_INSTANCE, 'create_failed'),
        action=Action.CREATE,
        resource='snapshot_instance_id',
    )
    def create_replicated_snapshot(
        self, ctx: Ctx, snapshot_instance_id: str, share_instance_id: str
    ) -> None: ...

    @durable(
        failure=(SNAPSHOT_INSTANCE, 'delete_failed'),
        action=Action.DELETE,
        resource='snapshot_instance_id',
        repeatable=True,
    )
    def delete_replicated_snapshot(
        self, ctx: Ctx, snapshot_instance_id: str, force: bool = False
    ) -> None: ...

    @durable(
        failure=(SHARE_INSTANCE, 'revert_failed'),
        action=Action.REVERT_TO_SNAPSHOT,
    )
    def revert_to_replicated_snapshot(
        self, ctx: Ctx, instance_id: str, snapshot_id: str
    ) -> None: ...
