"""Policy rules of export locations of snapshots."""

from manila_lite.policies import base

RULES = [
    base.reader(
        'share_snapshot_export_location:index',
        'List export locations of a snapshot.',
        'GET /v2/snapshots/{id}/export-locations',
    ),
    base.reader(
        'share_snapshot_export_location:show',
        'Show an export location of a snapshot.',
        'GET /v2/snapshots/{id}/export-locations/{el}',
    ),
]
