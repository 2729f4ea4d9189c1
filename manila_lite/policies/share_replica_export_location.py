"""Policy rules of export locations of replicas."""

from manila_lite.policies import base

_EXPORTS = '/v2/share-replicas/{id}/export-locations'

RULES = [
    base.reader(
        'share_replica_export_location:index',
        'List export locations of a replica.',
        f'GET {_EXPORTS}',
    ),
    base.reader(
        'share_replica_export_location:show',
        'Show an export location of a replica.',
        f'GET {_EXPORTS}/{{el}}',
    ),
]
