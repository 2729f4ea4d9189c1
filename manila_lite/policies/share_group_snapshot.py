"""Policy rules of snapshots of share groups."""

from manila_lite.policies import base

_ALL = '/v2/share-group-snapshots'
_ONE = f'{_ALL}/{{id}}'
_ACTION = f'POST {_ONE}/action'

RULES = [
    base.member(
        'share_group_snapshot:create',
        'Take a snapshot of a share group.',
        f'POST {_ALL}',
    ),
    base.reader(
        'share_group_snapshot:get',
        'Show a snapshot of a share group and its members.',
        f'GET {_ONE}',
        f'GET {_ONE}/members',
    ),
    base.reader(
        'share_group_snapshot:get_all',
        'List snapshots of share groups.',
        f'GET {_ALL}',
        f'GET {_ALL}/detail',
    ),
    base.member(
        'share_group_snapshot:update',
        'Change the name or the description of a snapshot of a share group.',
        f'PUT {_ONE}',
    ),
    base.member(
        'share_group_snapshot:delete',
        'Delete a snapshot of a share group.',
        f'DELETE {_ONE}',
    ),
    base.admin(
        'share_group_snapshot:force_delete',
        'Delete the rows of a snapshot of a share group, whatever its status.',
        _ACTION,
    ),
    base.admin(
        'share_group_snapshot:reset_status',
        'Set the status of a snapshot of a share group.',
        _ACTION,
    ),
]
