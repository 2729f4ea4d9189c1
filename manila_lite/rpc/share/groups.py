"""Create and delete share groups and their snapshots."""

from manila_lite.context import RequestContext as Ctx
from manila_lite.messages import Action
from manila_lite.rpc.contract import Contract, durable
from manila_lite.rpc.share.shares import TOPIC
from manila_lite.states.share_group import SHARE_GROUP, SHARE_GROUP_SNAPSHOT


class ShareGroupsRpc(Contract):
    """Create and delete share groups; drivers may be called twice."""

    topic, version = TOPIC, '1.0'
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


class ShareGroupSnapshotsRpc(Contract):
    """Take and delete snapshots of share groups."""

    topic, version = TOPIC, '1.0'

    @durable((SHARE_GROUP_SNAPSHOT, 'create_failed'), Action.CREATE)
    def create_share_group_snapshot(
        self, ctx: Ctx, share_group_snapshot_id: str
    ) -> None: ...

    @durable((SHARE_GROUP_SNAPSHOT, 'delete_failed'), Action.DELETE, repeatable=True)
    def delete_share_group_snapshot(
        self, ctx: Ctx, share_group_snapshot_id: str
    ) -> None: ...
