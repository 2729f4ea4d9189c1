"""Policy rules of access rule metadata."""

from manila_lite.policies import base

_METADATA = '/v2/share-access-rules/{id}/metadata'

RULES = [
    base.member(
        'share_access_metadata:update',
        'Change metadata of an access rule.',
        f'PUT {_METADATA}',
    ),
    base.member(
        'share_access_metadata:delete',
        'Delete metadata of an access rule.',
        f'DELETE {_METADATA}/{{key}}',
    ),
]
