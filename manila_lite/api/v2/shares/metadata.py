"""The metadata of a share."""

import typing

from manila_lite.api import wsgi
from manila_lite.api.v2.metadata import IdentifiedRow, MetadataController
from manila_lite.api.v2.targets import ShareTargetController
from manila_lite.db.queries.shares import shares
from manila_lite.db.rows import ShareTarget


class ShareMetadataController(MetadataController, ShareTargetController):
    table = shares.METADATA
    policies = {
        'get': 'share:get_share_metadata',
        'update': 'share:update_share_metadata',
        'delete': 'share:delete_share_metadata',
        'update_admin_only': 'share:update_admin_only_metadata',
    }
    public_reads = ('share:get_share_metadata',)

    @property
    def admin_only(self) -> frozenset[str]:
        return self.services.admin_only_metadata

    def merge(
        self,
        req: wsgi.Request,
        target: IdentifiedRow,
        parent: IdentifiedRow,
        values: dict[str, str],
    ) -> dict[str, str]:
        return self.services.share_metadata.set_values(
            req.ctx, typing.cast(ShareTarget, parent), values
        )

    def replace_all(
        self,
        req: wsgi.Request,
        target: IdentifiedRow,
        parent: IdentifiedRow,
        values: dict[str, str],
    ) -> dict[str, str]:
        return self.services.share_metadata.set_values(
            req.ctx,
            typing.cast(ShareTarget, parent),
            values,
            replace=True,
            keep=self.protected_keys(req, target),
        )
