"""Reach the content of shares."""

from collections.abc import Iterator
import contextlib
import os

from manila_lite import exception
from manila_lite.context import RequestContext
from manila_lite.rpc.contract import Client
from manila_lite.share.drivers.contract.connections import open_directory


class ShareContents:
    """Opens the content of shares; `connections` is a contract client."""

    def __init__(self, connections: Client):
        self._connections = connections

    @contextlib.contextmanager
    def opened(self, ctx: RequestContext, instance_id: str, host: str) -> Iterator[int]:
        """Open the top directory of a share instance on a back end.

        Raises ContentUnreachable, or ServiceUnavailable while the share
        service of the back end does not answer.
        """
        info = self._connections.on(host).get_connection(ctx, instance_id=instance_id)
        identity = info.get('directory')
        if identity is None:
            raise exception.ContentUnreachable(
                instance_id=instance_id,
                reason=f'{host} has it on other machines, and this release '
                'mounts no shares',
            )
        directory = open_directory(identity)
        if directory is None:
            raise exception.ContentUnreachable(
                instance_id=instance_id,
                reason=f'it is in {identity["path"]} on the machine of '
                f'{host}, and this data service runs on another one, or '
                'with another root directory',
            )
        try:
            yield directory
        finally:
            os.close(directory)
