"""Policy rules of export locations of snapshot instances."""

from manila_lite.policies import base

RULES = [
    base.admin(
        'share_snapshot_instance_export_location:index',
        'List export locations of a snapshot instance.',
        'GET /v2/snapshot-instances/{id}/export-locations',
    ),
    base.admin(
        'share_snapshot_instance_export_location:show',
        'Show an export location of a snapshot instance.',
        'GET /v2/snapshot-instances/{id}/export-locations/{el}',
    ),
]
