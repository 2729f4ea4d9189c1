"""What may be asked of a share service."""

from manila_lite import exception
from manila_lite.context import RequestContext as Ctx
from manila_lite.messages import Action
from manila_lite.messages import Detail
from manila_lite.rpc.contract import Contract
from manila_lite.rpc.contract import durable
from manila_lite.states.share_instance import MACHINE as SHARE_INSTANCE

TOPIC = 'manila-share'
BINARY = 'manila-share'


class ProvisioningRpc(Contract):
    """What others may ask of a share service about share instances."""

    topic, version = TOPIC, '1.0'

    @durable(failure=(SHARE_INSTANCE, 'create_failed'),
             action=Action.CREATE)
    def create_share_instance(self, ctx: Ctx,
                              instance_id: str) -> None: ...

    @durable(failure=(SHARE_INSTANCE, 'extend_failed'),
             action=Action.EXTEND, detail=Detail.DRIVER_FAILED_EXTEND)
    def extend_share_instance(self, ctx: Ctx, instance_id: str, new_size: int,
                              growth: int, host: str) -> None: ...

    @durable(failure=(SHARE_INSTANCE, 'shrink_failed'),
             action=Action.SHRINK, detail=Detail.DRIVER_FAILED_SHRINK,
             refused={
                 exception.ShareShrinkingPossibleDataLoss:
                     ('shrink_refused', Detail.DRIVER_REFUSED_SHRINK),
                 NotImplementedError:
                     ('shrink_refused', Detail.DRIVER_FAILED_SHRINK)})
    def shrink_share_instance(self, ctx: Ctx, instance_id: str,
                              new_size: int) -> None: ...

    @durable(failure=(SHARE_INSTANCE, 'delete_failed'),
             action=Action.DELETE, repeatable=True)
    def delete_share_instance(self, ctx: Ctx, instance_id: str,
                              force: bool = False) -> None: ...

    @durable(failure=(SHARE_INSTANCE, 'deferred_delete_failed'),
             action=Action.DELETE, repeatable=True)
    def delete_share_instance_deferred(self, ctx: Ctx,
                                       instance_id: str) -> None: ...


class ReconciliationRpc(Contract):
    """What is done about a resource in flight that nobody works on."""

    topic, version = TOPIC, '1.0'

    @durable(resource='share_instance_id', one_per='share_instance_id',
             repeatable=True)
    def rescue_share_instance(self, ctx: Ctx,
                              share_instance_id: str) -> None: ...


class EnsuringRpc(Contract):
    """That shares can be reached as users were told."""

    topic, version = TOPIC, '1.0'

    @durable(resource='service_id', one_per='service_id', repeatable=True)
    def ensure_shares(self, ctx: Ctx, service_id: int,
                      update_status: bool = True,
                      after: str = '') -> None: ...
