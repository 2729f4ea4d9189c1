"""Who may look at share servers and change them: administrators."""

from manila_lite.policies import base

_SERVER = '/v2/share-servers/{id}'
_ACTION = f'POST {_SERVER}/action'

RULES = [
    base.admin(
        'share_server:index', 'List share servers.', 'GET /v2/share-servers'
    ),
    base.admin('share_server:show', 'Show a share server.', f'GET {_SERVER}'),
    base.admin(
        'share_server:details',
        'Show what a driver remembers of a share server.',
        f'GET {_SERVER}/details',
    ),
    base.admin(
        'share_server:delete', 'Delete a share server.', f'DELETE {_SERVER}'
    ),
    base.admin(
        'share_server:manage_share_server',
        'Take over a server that a back end has already.',
        'POST /v2/share-servers/manage',
    ),
    base.admin(
        'share_server:unmanage_share_server',
        'Forget a share server and leave it where it is.',
        _ACTION,
    ),
    base.admin(
        'share_server:reset_status',
        'Set the status of a share server.',
        _ACTION,
    ),
    base.admin(
        'share_server:share_server_migration_start',
        'Move a share server to another back end.',
        _ACTION,
    ),
    base.admin(
        'share_server:share_server_migration_check',
        'Ask whether a share server could be moved.',
        _ACTION,
    ),
    base.admin(
        'share_server:share_server_migration_complete',
        'Have the second phase of a migration begin.',
        _ACTION,
    ),
    base.admin(
        'share_server:share_server_migration_cancel',
        'Stop the migration of a share server.',
        _ACTION,
    ),
    base.admin(
        'share_server:share_server_migration_get_progress',
        'Ask how far a migration has come.',
        _ACTION,
    ),
    base.admin(
        'share_server:share_server_reset_task_state',
        'Set the task state of a share server.',
        _ACTION,
    ),
]
