"""The metadata of a replica."""

from manila_lite.api.v2.metadata import MetadataController
from manila_lite.api.v2.targets import ShareReplicaTargetController
from manila_lite.db.queries.replicas import replicas


class ShareReplicaMetadataController(MetadataController, ShareReplicaTargetController):
    table = replicas.METADATA
    policies = {
        'get': 'share_replica:get_metadata',
        'update': 'share_replica:update_metadata',
        'delete': 'share_replica:delete_metadata',
    }
