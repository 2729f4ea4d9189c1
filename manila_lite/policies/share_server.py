"""Policy rules of share servers."""

from manila_lite.policies import base

_SERVER = '/v2/share-servers/{id}'
_ACTION = f'POST {_SERVER}/action'

RULES = [
    base.admin('share_server:index', 'List share servers.', 'GET /v2/share-servers'),
    base.admin('share_server:show', 'Show a share server.', f'GET {_SERVER}'),
    base.admin(
        'share_server:details',
        'Show the driver details of a share server.',
        f'GET {_SERVER}/details',
    ),
    base.admin('share_server:delete', 'Delete a share server.', f'DELETE {_SERVER}'),
    base.admin(
        'share_server:manage_share_server',
        'Manage a share server that exists on a back end.',
        'POST /v2/share-servers/manage',
    ),
    base.admin(
        'share_server:unmanage_share_server',
        'Unmanage a share server; it stays on the back end.',
        _ACTION,
    ),
    base.admin(
        'share_server:reset_status', 'Set the status of a share server.', _ACTION
    ),
    base.admin(
        'share_server:share_server_migration_start',
        'Migrate a share server to another back end.',
        _ACTION,
    ),
    base.admin(
        'share_server:share_server_migration_check',
        'Check whether a share server can be migrated.',
        _ACTION,
    ),
    base.admin(
        'share_server:share_server_migration_complete',
        'Start the second phase of a share server migration.',
        _ACTION,
    ),
    base.admin(
        'share_server:share_server_migration_cancel',
        'Cancel the migration of a share server.',
        _ACTION,
    ),
    base.admin(
        'share_server:share_server_migration_get_progress',
        'Show the progress of a share server migration.',
        _ACTION,
    ),
    base.admin(
        'share_server:share_server_reset_task_state',
        'Set the task state of a share server.',
        _ACTION,
    ),
]
