"""The metadata of a snapshot."""

import typing

from manila_lite import exception
from manila_lite.api import wsgi
from manila_lite.api.v2 import metadata
from manila_lite.api.v2.targets import SnapshotTargetController
from manila_lite.db.queries.snapshots import snapshots

_GET = 'share_snapshot:get_metadata'
_UPDATE = 'share_snapshot:update_metadata'
_DELETE = 'share_snapshot:delete_metadata'


class SnapshotMetadataController(SnapshotTargetController):
    @wsgi.method(_GET, target=True)
    def index(self, req: wsgi.Request, snapshot: typing.Any) -> dict:
        return metadata.show(
            self.services.db.read(snapshots.METADATA.get, snapshot.id)
        )

    @wsgi.method(_GET, target=True)
    def show(self, req: wsgi.Request, snapshot: typing.Any, key: str) -> dict:
        return metadata.show_one(
            self.services.db.read(snapshots.METADATA.get, snapshot.id), key
        )

    @wsgi.method(_UPDATE, target=True, body=metadata.VALUES)
    def create(
        self, req: wsgi.Request, snapshot: typing.Any, args: dict
    ) -> dict:
        return self._merge(snapshot, args['metadata'])

    @wsgi.method(_UPDATE, target=True, body=metadata.VALUES)
    def create_one(
        self, req: wsgi.Request, snapshot: typing.Any, args: dict, key: str
    ) -> dict:
        return self._merge(
            snapshot, metadata.require_single_key(args['metadata'], key)
        )

    @wsgi.method(_UPDATE, target=True, body=metadata.VALUES)
    def replace(
        self, req: wsgi.Request, snapshot: typing.Any, args: dict
    ) -> dict:
        """Replace all keys."""
        return metadata.show(
            self.services.db.write(
                snapshots.METADATA.replace, snapshot.id, args['metadata']
            )
        )

    @wsgi.method(_DELETE, target=True)
    def delete(
        self, req: wsgi.Request, snapshot: typing.Any, key: str
    ) -> None:
        if not self.services.db.write(
            snapshots.METADATA.remove, snapshot.id, [key]
        ):
            raise exception.MetadataItemNotFound(key=key)

    def _merge(self, snapshot, values):
        return metadata.show(
            self.services.db.write(
                snapshots.METADATA.merge, snapshot.id, values
            )
        )
