"""Policy rules of export locations of share instances."""

from manila_lite.policies import base

RULES = [
    base.admin(
        'share_instance_export_location:index',
        'List export locations of a share instance.',
        'GET /v2/share_instances/{id}/export_locations',
    ),
    base.admin(
        'share_instance_export_location:show',
        'Show an export location of a share instance.',
        'GET /v2/share_instances/{id}/export_locations/{el}',
    ),
]
