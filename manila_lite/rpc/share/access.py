"""Apply access rules."""

from manila_lite.context import RequestContext as Ctx
from manila_lite.messages import Action
from manila_lite.rpc.contract import Contract, durable
from manila_lite.rpc.share.topic import TOPIC
from manila_lite.states.access_rule import SHARE_INSTANCE_ACCESS
from manila_lite.states.share_instance import SHARE_INSTANCE


class AccessRpc(Contract):
    """Apply the access rules of a share to its back end.

    A back end treats a share and its rules as one object.
    """

    topic, version = TOPIC, '1.0'

    @durable(
        failure=(SHARE_INSTANCE_ACCESS, 'failed'),
        one_per='instance_id',
        repeatable=True,
        exclusion=SHARE_INSTANCE.resource,
        action=Action.UPDATE_ACCESS_RULES,
    )
    def sync_access(self, ctx: Ctx, instance_id: str) -> None: ...


class SnapshotAccessRpc(Contract):
    """Apply the access rules of a snapshot to its back end."""

    topic, version = TOPIC, '1.0'

    @durable(
        resource='snapshot_instance_id', one_per='snapshot_instance_id', repeatable=True
    )
    def sync_snapshot_access(self, ctx: Ctx, snapshot_instance_id: str) -> None: ...
