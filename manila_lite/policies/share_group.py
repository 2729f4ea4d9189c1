"""Policy rules of share groups."""

from manila_lite.policies import base

_ONE = '/v2/share-groups/{id}'
_ACTION = f'POST {_ONE}/action'

RULES = [
    base.member('share_group:create', 'Create a share group.', 'POST /v2/share-groups'),
    base.reader('share_group:get', 'Show a share group.', f'GET {_ONE}'),
    base.reader(
        'share_group:get_all',
        'List share groups.',
        'GET /v2/share-groups',
        'GET /v2/share-groups/detail',
    ),
    base.member(
        'share_group:update',
        'Change the name or the description of a share group.',
        f'PUT {_ONE}',
    ),
    base.member('share_group:delete', 'Delete a share group.', f'DELETE {_ONE}'),
    base.admin(
        'share_group:force_delete',
        'Delete the rows of a share group, whatever its status.',
        _ACTION,
    ),
    base.admin('share_group:reset_status', 'Set the status of a share group.', _ACTION),
]
