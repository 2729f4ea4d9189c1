"""Policy rules of share backups."""

from manila_lite.policies import base

_ALL = '/v2/share-backups'
_ONE = f'{_ALL}/{{id}}'
_ACTION = f'POST {_ONE}/action'

RULES = [
    base.member('share_backup:create', 'Back up a share.', f'POST {_ALL}'),
    base.reader('share_backup:get', 'Show a share backup.', f'GET {_ONE}'),
    base.reader(
        'share_backup:get_all',
        'List share backups.',
        f'GET {_ALL}',
        f'GET {_ALL}/detail',
    ),
    base.admin(
        'share_backup:get_all_project',
        'List share backups of all projects.',
        f'GET {_ALL}',
        f'GET {_ALL}/detail',
    ),
    base.member(
        'share_backup:restore',
        'Restore a backup to its share or to another one.',
        _ACTION,
    ),
    base.admin(
        'share_backup:reset_status', 'Set the status of a share backup.', _ACTION
    ),
    base.member(
        'share_backup:update',
        'Change the name or the description of a share backup.',
        f'PUT {_ONE}',
    ),
    base.member('share_backup:delete', 'Delete a share backup.', f'DELETE {_ONE}'),
]
