"""Rescue resources that are in flight without work."""

from manila_lite.context import RequestContext as Ctx
from manila_lite.rpc.contract import durable
from manila_lite.rpc.share.shares import ShareServiceContract
from manila_lite.states.share_instance import SHARE_INSTANCE


class ReconciliationRpc(ShareServiceContract):
    """Rescue resources that are in flight without work."""

    repeatable = coalesced = True

    @durable()
    def recover(
        self, ctx: Ctx, service_id: int, before: str = '', asked_by: str = ''
    ) -> None: ...

    @durable()
    def rescue_share_instance(
        self, ctx: Ctx, share_instance_id: str, asked_by: str = ''
    ) -> None: ...

    @durable()
    def rescue_snapshot_instance(
        self, ctx: Ctx, snapshot_instance_id: str, asked_by: str = ''
    ) -> None: ...

    @durable(exclusion=SHARE_INSTANCE.resource)
    def rescue_access(
        self, ctx: Ctx, share_instance_access_id: str, asked_by: str = ''
    ) -> None: ...

    @durable()
    def rescue_snapshot_access(
        self, ctx: Ctx, snapshot_instance_id: str, asked_by: str = ''
    ) -> None: ...

    @durable()
    def rescue_share_server(
        self, ctx: Ctx, share_server_id: str, asked_by: str = ''
    ) -> None: ...

    @durable()
    def rescue_share_server_task(
        self, ctx: Ctx, share_server_task_id: str, asked_by: str = ''
    ) -> None: ...

    @durable()
    def rescue_share_task(
        self, ctx: Ctx, share_task_id: str, asked_by: str = ''
    ) -> None: ...

    @durable()
    def rescue_share_transfer(
        self, ctx: Ctx, share_transfer_id: str, asked_by: str = ''
    ) -> None: ...

    @durable()
    def rescue_share_group(
        self, ctx: Ctx, share_group_id: str, asked_by: str = ''
    ) -> None: ...

    @durable()
    def rescue_share_group_snapshot(
        self, ctx: Ctx, share_group_snapshot_id: str, asked_by: str = ''
    ) -> None: ...

    @durable()
    def rescue_share_backup(
        self, ctx: Ctx, share_backup_id: str, asked_by: str = ''
    ) -> None: ...


RESCUES = {
    'share_server': 'rescue_share_server',
    'share_server_task': 'rescue_share_server_task',
    'share_instance': 'rescue_share_instance',
    'snapshot_instance': 'rescue_snapshot_instance',
    'access_rule': 'rescue_access',
    'share_instance_access': 'rescue_access',
    'snapshot_access_rule': 'rescue_snapshot_access',
    'share_task': 'rescue_share_task',
    'share_transfer': 'rescue_share_transfer',
    'share_group': 'rescue_share_group',
    'share_group_snapshot': 'rescue_share_group_snapshot',
    'share_backup': 'rescue_share_backup',
}
"""The method that rescues a resource, by the name of its state table."""
