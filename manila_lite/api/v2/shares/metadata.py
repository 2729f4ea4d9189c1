"""The metadata of a share."""

import typing

from manila_lite import exception
from manila_lite.api import wsgi
from manila_lite.api.v2 import metadata
from manila_lite.api.v2.shares.filters import check_metadata
from manila_lite.api.v2.targets import ShareTargetController
from manila_lite.db.queries.shares import shares

_GET = 'share:get_share_metadata'
_UPDATE = 'share:update_share_metadata'
_DELETE = 'share:delete_share_metadata'


class ShareMetadataController(ShareTargetController):
    @wsgi.method(_GET, target=True)
    def index(self, req: wsgi.Request, share: typing.Any) -> dict:
        return metadata.show(
            self.services.db.read(shares.METADATA.get, share.id)
        )

    @wsgi.method(_GET, target=True)
    def show(self, req: wsgi.Request, share: typing.Any, key: str) -> dict:
        return metadata.show_one(
            self.services.db.read(shares.METADATA.get, share.id), key
        )

    @wsgi.method(_UPDATE, target=True, body=metadata.VALUES)
    def create(self, req: wsgi.Request, share: typing.Any, args: dict) -> dict:
        return self._merge(req, share, args['metadata'])

    @wsgi.method(_UPDATE, target=True, body=metadata.VALUES)
    def create_one(
        self, req: wsgi.Request, share: typing.Any, args: dict, key: str
    ) -> dict:
        return self._merge(
            req, share, metadata.require_single_key(args['metadata'], key)
        )

    @wsgi.method(_UPDATE, target=True, body=metadata.VALUES)
    def replace(
        self, req: wsgi.Request, share: typing.Any, args: dict
    ) -> dict:
        """Replace all keys, but keep those that only administrators change."""
        values = args['metadata']
        protected = self._protected_keys(req, share)
        check_metadata(values, protected, req.ctx, share)
        return metadata.show(
            self.services.db.write(
                shares.METADATA.replace, share.id, values, protected
            )
        )

    @wsgi.method(_DELETE, target=True)
    def delete(self, req: wsgi.Request, share: typing.Any, key: str) -> None:
        check_metadata(
            {key: ''}, self.services.admin_only_metadata, req.ctx, share
        )
        if not self.services.db.write(shares.METADATA.remove, share.id, [key]):
            raise exception.MetadataItemNotFound(key=key)

    def _merge(self, req, share, values):
        check_metadata(
            values, self.services.admin_only_metadata, req.ctx, share
        )
        return metadata.show(
            self.services.db.write(shares.METADATA.merge, share.id, values)
        )

    def _protected_keys(self, req, share) -> frozenset[str]:
        """Return the keys that this caller may not change."""
        if req.ctx.can('share:update_admin_only_metadata', share):
            return frozenset()
        return self.services.admin_only_metadata
