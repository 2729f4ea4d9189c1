"""The metadata of a share."""

from manila_lite.api.v2.metadata import MetadataController
from manila_lite.api.v2.targets import ShareTargetController
from manila_lite.db.queries.shares import shares


class ShareMetadataController(MetadataController, ShareTargetController):
    table = shares.METADATA
    policies = {
        'get': 'share:get_share_metadata',
        'update': 'share:update_share_metadata',
        'delete': 'share:delete_share_metadata',
        'update_admin_only': 'share:update_admin_only_metadata',
    }

    @property
    def admin_only(self) -> frozenset[str]:
        return self.services.admin_only_metadata
