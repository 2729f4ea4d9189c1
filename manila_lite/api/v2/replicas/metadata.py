"""The metadata of a replica."""

import typing

from manila_lite import exception
from manila_lite.api import wsgi
from manila_lite.api.v2 import metadata
from manila_lite.api.v2.targets import ShareReplicaTargetController
from manila_lite.db.queries.replicas import replicas

_GET = 'share_replica:get_metadata'
_UPDATE = 'share_replica:update_metadata'
_DELETE = 'share_replica:delete_metadata'


class ShareReplicaMetadataController(ShareReplicaTargetController):
    @wsgi.method(_GET, target=True)
    def index(self, req: wsgi.Request, replica: typing.Any) -> dict:
        return metadata.show(
            self.services.db.read(replicas.METADATA.get, replica.id)
        )

    @wsgi.method(_GET, target=True)
    def show(self, req: wsgi.Request, replica: typing.Any, key: str) -> dict:
        return metadata.show_one(
            self.services.db.read(replicas.METADATA.get, replica.id), key
        )

    @wsgi.method(_UPDATE, target=True, body=metadata.VALUES)
    def create(
        self, req: wsgi.Request, replica: typing.Any, args: dict
    ) -> dict:
        return self._change('merge', replica, args['metadata'])

    @wsgi.method(_UPDATE, target=True, body=metadata.VALUES)
    def create_one(
        self, req: wsgi.Request, replica: typing.Any, args: dict, key: str
    ) -> dict:
        return self._change(
            'merge',
            replica,
            metadata.require_single_key(args['metadata'], key),
        )

    @wsgi.method(_UPDATE, target=True, body=metadata.VALUES)
    def replace(
        self, req: wsgi.Request, replica: typing.Any, args: dict
    ) -> dict:
        """Replace all keys."""
        return self._change('replace', replica, args['metadata'])

    @wsgi.method(_DELETE, target=True)
    def delete(self, req: wsgi.Request, replica: typing.Any, key: str) -> None:
        if not self.services.db.write(
            replicas.METADATA.remove, replica.id, [key]
        ):
            raise exception.MetadataItemNotFound(key=key)

    def _change(self, how, replica, values):
        try:
            return metadata.show(
                self.services.db.write(
                    getattr(replicas.METADATA, how), replica.id, values
                )
            )
        except exception.NotFound:  # deleted in the meantime
            raise exception.ShareReplicaNotFound(
                replica_id=replica.id
            ) from None
