"""Pass metadata to drivers."""

from manila_lite.context import RequestContext as Ctx
from manila_lite.rpc.contract import Contract, durable
from manila_lite.rpc.share.topic import TOPIC


class ShareMetadataRpc(Contract):
    """Pass some metadata of shares to the driver."""

    topic, version = TOPIC, '1.0'

    # The values are those at the time of the call.
    @durable(resource='share_instance_id', one_per='share_instance_id', repeatable=True)
    def update_share_from_metadata(
        self, ctx: Ctx, share_instance_id: str, keys: list[str]
    ) -> None: ...
