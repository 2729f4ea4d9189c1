"""Share groups and their snapshots."""

from manila_lite.policies import base

_GROUP = '/v2/share-groups/{id}'
_GROUP_ACTION = f'POST {_GROUP}/action'
_GROUP_SNAPSHOTS = '/v2/share-group-snapshots'
_GROUP_SNAPSHOT = f'{_GROUP_SNAPSHOTS}/{{id}}'
_GROUP_SNAPSHOT_ACTION = f'POST {_GROUP_SNAPSHOT}/action'

RULES = [
    # Share groups
    base.member('share_group:create', 'Create a share group.', 'POST /v2/share-groups'),
    base.reader('share_group:get', 'Show a share group.', f'GET {_GROUP}'),
    base.reader(
        'share_group:get_all',
        'List share groups.',
        'GET /v2/share-groups',
        'GET /v2/share-groups/detail',
    ),
    base.member(
        'share_group:update',
        'Change the name or the description of a share group.',
        f'PUT {_GROUP}',
    ),
    base.member('share_group:delete', 'Delete a share group.', f'DELETE {_GROUP}'),
    base.admin(
        'share_group:force_delete',
        'Delete the rows of a share group, whatever its status.',
        _GROUP_ACTION,
    ),
    base.admin(
        'share_group:reset_status', 'Set the status of a share group.', _GROUP_ACTION
    ),
    # Share group snapshots
    base.member(
        'share_group_snapshot:create',
        'Take a snapshot of a share group.',
        f'POST {_GROUP_SNAPSHOTS}',
    ),
    base.reader(
        'share_group_snapshot:get',
        'Show a snapshot of a share group and its members.',
        f'GET {_GROUP_SNAPSHOT}',
        f'GET {_GROUP_SNAPSHOT}/members',
    ),
    base.reader(
        'share_group_snapshot:get_all',
        'List snapshots of share groups.',
        f'GET {_GROUP_SNAPSHOTS}',
        f'GET {_GROUP_SNAPSHOTS}/detail',
    ),
    base.member(
        'share_group_snapshot:update',
        'Change the name or the description of a snapshot of a share group.',
        f'PUT {_GROUP_SNAPSHOT}',
    ),
    base.member(
        'share_group_snapshot:delete',
        'Delete a snapshot of a share group.',
        f'DELETE {_GROUP_SNAPSHOT}',
    ),
    base.admin(
        'share_group_snapshot:force_delete',
        'Delete the rows of a snapshot of a share group, whatever its status.',
        _GROUP_SNAPSHOT_ACTION,
    ),
    base.admin(
        'share_group_snapshot:reset_status',
        'Set the status of a snapshot of a share group.',
        _GROUP_SNAPSHOT_ACTION,
    ),
]
