"""Policy rules of shares, and of their snapshots, access and metadata."""

from manila_lite.policies import base

_ACTION = 'POST /v2/shares/{id}/action'

RULES = [
    base.member('share:create', 'Create a share.', 'POST /v2/shares', deprecated=None),
    base.admin(
        'share:create_public_share',
        'Create a share that every project can see.',
        'POST /v2/shares',
    ),
    base.reader('share:get', 'Show a share.', 'GET /v2/shares/{id}'),
    base.reader(
        'share:get_all', 'List shares.', 'GET /v2/shares', 'GET /v2/shares/detail'
    ),
    base.admin(
        'share:list_all_projects',
        'List shares of all projects.',
        'GET /v2/shares',
        'GET /v2/shares/detail',
    ),
    base.admin(
        'share:list_by_host',
        'List shares by host.',
        'GET /v2/shares',
        'GET /v2/shares/detail',
    ),
    base.admin(
        'share:list_by_share_server_id',
        'List shares by share server.',
        'GET /v2/shares',
        'GET /v2/shares/detail',
    ),
    base.admin(
        'share:list_shares_in_deferred_deletion_states',
        'Show shares in deferred deletion.',
        'GET /v2/shares',
        'GET /v2/shares/detail',
        'GET /v2/shares/{id}',
    ),
    base.member(
        'share:update', 'Change name, description or visibility.', 'PUT /v2/shares/{id}'
    ),
    base.admin(
        'share:set_public_share',
        'Make a share visible to every project.',
        'PUT /v2/shares/{id}',
    ),
    base.member('share:delete', 'Delete a share.', 'DELETE /v2/shares/{id}'),
    base.admin('share:force_delete', 'Delete a share in any status.', _ACTION),
    base.member(
        'share:soft_delete',
        'Move a share to the recycle bin.',
        _ACTION,
        deprecated=None,
    ),
    base.member(
        'share:restore',
        'Restore a share from the recycle bin.',
        _ACTION,
        deprecated=None,
    ),
    base.member('share:extend', 'Extend a share.', _ACTION),
    base.admin(
        'share:force_extend',
        'Extend a share without asking the scheduler.',
        _ACTION,
        deprecated=None,
    ),
    base.admin(
        'share:extend_beyond_max_share_size_spec',
        'Extend a share beyond the maximum size of its type.',
        _ACTION,
        deprecated=None,
    ),
    base.member('share:shrink', 'Shrink a share.', _ACTION),
    base.member(
        'share:revert_to_snapshot', 'Revert a share to its newest snapshot.', _ACTION
    ),
    base.member(
        'share:create_snapshot', 'Create a snapshot of a share.', 'POST /v2/snapshots'
    ),
    base.member(
        'share:snapshot_update',
        'Change name or description of a snapshot.',
        'PUT /v2/snapshots/{id}',
    ),
    base.member(
        'share:delete_snapshot', 'Delete a snapshot.', 'DELETE /v2/snapshots/{id}'
    ),
    base.admin('share:reset_status', 'Set the status of a share.', _ACTION),
    base.admin('share:migration_start', 'Migrate a share to another host.', _ACTION),
    base.admin(
        'share:migration_complete', 'Complete the migration of a share.', _ACTION
    ),
    base.admin('share:migration_cancel', 'Cancel the migration of a share.', _ACTION),
    base.admin(
        'share:migration_get_progress',
        'Show the progress of the migration of a share.',
        _ACTION,
        'GET /v2/shares/{id}/migration-progress',
    ),
    base.admin('share:reset_task_state', 'Set the task state of a share.', _ACTION),
    base.admin(
        'share:manage',
        'Manage a share that exists on a back end.',
        'POST /v2/shares/manage',
        'POST /v2/os-share-manage',
    ),
    base.admin(
        'share:unmanage',
        'Unmanage a share; its data stays on the back end.',
        _ACTION,
        'POST /v2/os-share-unmanage/{id}/unmanage',
    ),
    base.member('share:allow_access', 'Allow a client access to a share.', _ACTION),
    base.member('share:deny_access', 'Deny access to a share.', _ACTION),
    base.reader(
        'share:access_get', 'Show an access rule.', 'GET /v2/share-access-rules/{id}'
    ),
    base.reader('share:access_get_all', 'List access rules of a share.', _ACTION),
    base.reader(
        'share:get_share_metadata',
        'Show metadata of a share.',
        'GET /v2/shares/{id}/metadata',
        'GET /v2/shares/{id}/metadata/{key}',
    ),
    base.member(
        'share:update_share_metadata',
        'Change metadata of a share.',
        'PUT /v2/shares/{id}/metadata',
        'POST /v2/shares/{id}/metadata',
        'POST /v2/shares/{id}/metadata/{key}',
    ),
    base.member(
        'share:delete_share_metadata',
        'Delete metadata of a share.',
        'DELETE /v2/shares/{id}/metadata/{key}',
    ),
    base.admin(
        'share:update_admin_only_metadata',
        'Change or delete metadata under the keys that only administrators may use.',
        'PUT /v2/shares/{id}/metadata',
        'POST /v2/shares/{id}/metadata',
        'POST /v2/shares/{id}/metadata/{key}',
        'DELETE /v2/shares/{id}/metadata/{key}',
    ),
]
