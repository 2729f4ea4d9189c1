"""Create, promote, update and delete replicas and their snapshots."""

from manila_lite.context import RequestContext as Ctx
from manila_lite.messages import Action
from manila_lite.rpc.contract import durable
from manila_lite.rpc.share.shares import ShareServiceContract
from manila_lite.states.share_instance import SHARE_INSTANCE
from manila_lite.states.snapshot_instance import SNAPSHOT_INSTANCE


class ReplicationRpc(ShareServiceContract):
    """Create, promote and delete replicas, each on its own back end.

    Promotion is repeatable: the driver method is idempotent, and the work
    says what was requested. A replica that is to be promoted without any
    work is given up.
    """

    @durable((SHARE_INSTANCE, 'create_failed'), Action.CREATE)
    def create_share_replica(self, ctx: Ctx, instance_id: str) -> None: ...

    @durable((SHARE_INSTANCE, 'delete_failed'), Action.DELETE, repeatable=True)
    def delete_share_replica(
        self, ctx: Ctx, instance_id: str, force: bool = False
    ) -> None: ...

    @durable((SHARE_INSTANCE, 'promote_failed'), Action.PROMOTE, repeatable=True)
    def promote_share_replica(
        self, ctx: Ctx, instance_id: str, quiesce_wait_time: int | None = None
    ) -> None: ...


class ReplicaUpdatesRpc(ShareServiceContract):
    """Update the state of replicas, periodically and on request."""

    repeatable = coalesced = True

    @durable()
    def update_share_replicas(
        self, ctx: Ctx, service_id: int, after: str = ''
    ) -> None: ...

    @durable(exclusion=SHARE_INSTANCE.resource)
    def update_share_replica(self, ctx: Ctx, share_replica_id: str) -> None: ...


class ReplicaRolesRpc(ShareServiceContract):
    """Make the roles on the back ends those in the database again.

    Nothing is done unless `generation` is still that of the replica. The
    back end of the replica `on_backend` has reported that it is active.
    """

    @durable(repeatable=True, exclusion=SHARE_INSTANCE.resource, coalesced=True)
    def reassert_active_replica(
        self,
        ctx: Ctx,
        share_replica_id: str,
        generation: int,
        on_backend: str | None = None,
    ) -> None: ...


class ReplicatedSnapshotsRpc(ShareServiceContract):
    """Create, delete and revert to snapshots of a share with replicas.

    The back end of the active replica does the work, on its own instance
    of the snapshot. Replica updates track the instances on other back
    ends.
    """

    @durable((SNAPSHOT_INSTANCE, 'create_failed'), Action.CREATE)
    def create_replicated_snapshot(
        self, ctx: Ctx, snapshot_instance_id: str, share_instance_id: str
    ) -> None: ...

    @durable((SNAPSHOT_INSTANCE, 'delete_failed'), Action.DELETE, repeatable=True)
    def delete_replicated_snapshot(
        self, ctx: Ctx, snapshot_instance_id: str, force: bool = False
    ) -> None: ...

    @durable(
        (SNAPSHOT_INSTANCE, 'deferred_delete_failed'), Action.DELETE, repeatable=True
    )
    def delete_replicated_snapshot_deferred(
        self, ctx: Ctx, snapshot_instance_id: str
    ) -> None: ...

    @durable((SHARE_INSTANCE, 'revert_failed'), Action.REVERT_TO_SNAPSHOT)
    def revert_to_replicated_snapshot(
        self, ctx: Ctx, instance_id: str, snapshot_id: str
    ) -> None: ...
