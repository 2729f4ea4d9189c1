"""Give shares to other projects."""

from manila_lite.context import RequestContext as Ctx
from manila_lite.rpc.contract import Contract, durable
from manila_lite.rpc.share.topic import TOPIC


class ShareTransfersRpc(Contract):
    """Carry out the transfer of a share that has been accepted."""

    topic, version = TOPIC, '1.0'

    # Its handler fires the events of the transfer: the work is on the share
    # instance, which nothing else may work on meanwhile.
    @durable(resource='share_instance_id', repeatable=True)
    def accept_transfer(
        self, ctx: Ctx, share_instance_id: str, transfer_id: str
    ) -> None: ...
