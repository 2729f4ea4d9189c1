"""The metadata of a snapshot."""

from manila_lite.api.v2.metadata import MetadataController
from manila_lite.api.v2.targets import SnapshotTargetController
from manila_lite.db.queries.snapshots import snapshots


class SnapshotMetadataController(MetadataController, SnapshotTargetController):
    table = snapshots.METADATA
    policies = {
        'get': 'share_snapshot:get_metadata',
        'update': 'share_snapshot:update_metadata',
        'delete': 'share_snapshot:delete_metadata',
    }
