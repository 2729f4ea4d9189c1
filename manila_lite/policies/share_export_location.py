"""Policy rules of export locations of shares and their metadata."""

from manila_lite.policies import base

_METADATA = '/v2/shares/{id}/export_locations/{el}/metadata'

RULES = [
    base.reader(
        'share_export_location:index',
        'List export locations.',
        'GET /v2/shares/{id}/export_locations',
    ),
    base.reader(
        'share_export_location:show',
        'Show an export location.',
        'GET /v2/shares/{id}/export_locations/{el}',
    ),
    base.reader(
        'share_export_location:get_metadata',
        'Show metadata of an export location.',
        f'GET {_METADATA}',
        f'GET {_METADATA}/{{key}}',
    ),
    base.member(
        'share_export_location:update_metadata',
        'Change metadata of an export location.',
        f'PUT {_METADATA}',
        f'POST {_METADATA}',
        f'POST {_METADATA}/{{key}}',
    ),
    base.member(
        'share_export_location:delete_metadata',
        'Delete metadata of an export location.',
        f'DELETE {_METADATA}/{{key}}',
    ),
    base.admin(
        'share_export_location:update_admin_only_metadata',
        'Change metadata under the keys that only administrators may use.',
        f'PUT {_METADATA}',
        f'POST {_METADATA}',
        f'POST {_METADATA}/{{key}}',
    ),
]
