"""How the data service reaches shares."""

import typing

from manila_lite.context import RequestContext as Ctx
from manila_lite.rpc.contract import Contract, call
from manila_lite.rpc.share.topic import TOPIC


class ConnectionsRpc(Contract):
    topic, version = TOPIC, '1.0'

    @call(timeout=60)
    def get_connection(self, ctx: Ctx, instance_id: str) -> dict[str, typing.Any]:
        """Return the driver's `ConnectionInfo` of a share instance.

        Raises ContentUnreachable if the driver has none.
        """
        raise NotImplementedError
