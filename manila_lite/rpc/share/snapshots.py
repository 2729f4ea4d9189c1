"""Create, delete and revert to snapshots."""

from manila_lite.context import RequestContext as Ctx
from manila_lite.messages import Action
from manila_lite.rpc.contract import Contract, durable
from manila_lite.rpc.share.topic import TOPIC
from manila_lite.states.share_instance import SHARE_INSTANCE
from manila_lite.states.snapshot_instance import SNAPSHOT_INSTANCE


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
        failure=(SNAPSHOT_INSTANCE, 'deferred_delete_failed'),
        action=Action.DELETE,
        resource='snapshot_instance_id',
        repeatable=True,
    )
    def delete_snapshot_instance_deferred(
        self, ctx: Ctx, snapshot_instance_id: str
    ) -> None: ...

    @durable(
        failure=(SHARE_INSTANCE, 'revert_failed'), action=Action.REVERT_TO_SNAPSHOT
    )
    def revert_to_snapshot(
        self, ctx: Ctx, instance_id: str, snapshot_id: str
    ) -> None: ...
