"""Policy rules of access rules as a resource of their own."""

from manila_lite.policies import base

_ONE = '/v2/share-access-rules/{id}'

RULES = [
    base.reader('share_access_rule:get', 'Show an access rule.', f'GET {_ONE}'),
    base.reader(
        'share_access_rule:index',
        'List access rules of a share.',
        'GET /v2/share-access-rules',
    ),
    base.member(
        'share_access_rule:update', 'Change the level of an access rule.', f'PUT {_ONE}'
    ),
]
