"""Shares, their instances, export locations and transfers."""

import functools

from manila_lite.policies import base

_SHARE_ACTION = 'POST /v2/shares/{id}/action'
_EXPORT_LOCATION_METADATA = '/v2/shares/{id}/export_locations/{el}/metadata'
_TRANSFER = '/v2/share-transfers/{id}'
# As published, only the rule for all projects has a scope.
_transfer_member = functools.partial(base.member, scopes=base.NO_SCOPE)
_transfer_reader = functools.partial(base.reader, scopes=base.NO_SCOPE)
_BACKUPS = '/v2/share-backups'
_BACKUP = f'{_BACKUPS}/{{id}}'
_BACKUP_ACTION = f'POST {_BACKUP}/action'

RULES = [
    # Shares
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
    base.admin('share:force_delete', 'Delete a share in any status.', _SHARE_ACTION),
    base.member(
        'share:soft_delete',
        'Move a share to the recycle bin.',
        _SHARE_ACTION,
        deprecated=None,
    ),
    base.member(
        'share:restore',
        'Restore a share from the recycle bin.',
        _SHARE_ACTION,
        deprecated=None,
    ),
    base.member('share:extend', 'Extend a share.', _SHARE_ACTION),
    base.admin(
        'share:force_extend',
        'Extend a share without asking the scheduler.',
        _SHARE_ACTION,
        deprecated=None,
    ),
    base.admin(
        'share:extend_beyond_max_share_size_spec',
        'Extend a share beyond the maximum size of its type.',
        _SHARE_ACTION,
        deprecated=None,
    ),
    base.member('share:shrink', 'Shrink a share.', _SHARE_ACTION),
    base.member(
        'share:revert_to_snapshot',
        'Revert a share to its newest snapshot.',
        _SHARE_ACTION,
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
    base.admin('share:reset_status', 'Set the status of a share.', _SHARE_ACTION),
    base.admin(
        'share:migration_start', 'Migrate a share to another host.', _SHARE_ACTION
    ),
    base.admin(
        'share:migration_complete', 'Complete the migration of a share.', _SHARE_ACTION
    ),
    base.admin(
        'share:migration_cancel', 'Cancel the migration of a share.', _SHARE_ACTION
    ),
    base.admin(
        'share:migration_get_progress',
        'Show the progress of the migration of a share.',
        _SHARE_ACTION,
        'GET /v2/shares/{id}/migration-progress',
    ),
    base.admin(
        'share:reset_task_state', 'Set the task state of a share.', _SHARE_ACTION
    ),
    base.admin(
        'share:manage',
        'Manage a share that exists on a back end.',
        'POST /v2/shares/manage',
        'POST /v2/os-share-manage',
    ),
    base.admin(
        'share:unmanage',
        'Unmanage a share; its data stays on the back end.',
        _SHARE_ACTION,
        'POST /v2/os-share-unmanage/{id}/unmanage',
    ),
    base.member(
        'share:allow_access', 'Allow a client access to a share.', _SHARE_ACTION
    ),
    base.member('share:deny_access', 'Deny access to a share.', _SHARE_ACTION),
    base.reader(
        'share:access_get', 'Show an access rule.', 'GET /v2/share-access-rules/{id}'
    ),
    base.reader('share:access_get_all', 'List access rules of a share.', _SHARE_ACTION),
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
    # Share instances
    base.admin(
        'share_instance:index',
        'List share instances.',
        'GET /v2/share_instances',
        'GET /v2/shares/{share_id}/instances',
    ),
    base.admin(
        'share_instance:show', 'Show a share instance.', 'GET /v2/share_instances/{id}'
    ),
    base.admin(
        'share_instance:force_delete',
        'Delete a share instance in any status.',
        'POST /v2/share_instances/{id}/action',
    ),
    base.admin(
        'share_instance:reset_status',
        'Set the status of a share instance.',
        'POST /v2/share_instances/{id}/action',
    ),
    # Export locations
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
        f'GET {_EXPORT_LOCATION_METADATA}',
        f'GET {_EXPORT_LOCATION_METADATA}/{{key}}',
    ),
    base.member(
        'share_export_location:update_metadata',
        'Change metadata of an export location.',
        f'PUT {_EXPORT_LOCATION_METADATA}',
        f'POST {_EXPORT_LOCATION_METADATA}',
        f'POST {_EXPORT_LOCATION_METADATA}/{{key}}',
    ),
    base.member(
        'share_export_location:delete_metadata',
        'Delete metadata of an export location.',
        f'DELETE {_EXPORT_LOCATION_METADATA}/{{key}}',
    ),
    base.admin(
        'share_export_location:update_admin_only_metadata',
        'Change metadata under the keys that only administrators may use.',
        f'PUT {_EXPORT_LOCATION_METADATA}',
        f'POST {_EXPORT_LOCATION_METADATA}',
        f'POST {_EXPORT_LOCATION_METADATA}/{{key}}',
    ),
    # Export locations of share instances
    base.admin(
        'share_instance_export_location:index',
        'List export locations of a share instance.',
        'GET /v2/share_instances/{id}/export_locations',
    ),
    base.admin(
        'share_instance_export_location:show',
        'Show an export location of a share instance.',
        'GET /v2/share_instances/{id}/export_locations/{el}',
    ),
    # Share transfers
    _transfer_reader(
        'share_transfer:get_all',
        'List share transfers.',
        'GET /v2/share-transfers',
        'GET /v2/share-transfers/detail',
    ),
    base.admin(
        'share_transfer:get_all_tenant',
        'List share transfers of all projects.',
        'GET /v2/share-transfers',
        'GET /v2/share-transfers/detail',
    ),
    _transfer_member(
        'share_transfer:create',
        'Offer a share to another project.',
        'POST /v2/share-transfers',
    ),
    _transfer_reader(
        'share_transfer:get', 'Show a share transfer.', f'GET {_TRANSFER}'
    ),
    _transfer_member(
        'share_transfer:accept',
        'Accept a share of another project.',
        f'POST {_TRANSFER}/accept',
    ),
    _transfer_member(
        'share_transfer:delete', 'Withdraw a share transfer.', f'DELETE {_TRANSFER}'
    ),
    # Share backups
    base.member('share_backup:create', 'Back up a share.', f'POST {_BACKUPS}'),
    base.reader('share_backup:get', 'Show a share backup.', f'GET {_BACKUP}'),
    base.reader(
        'share_backup:get_all',
        'List share backups.',
        f'GET {_BACKUPS}',
        f'GET {_BACKUPS}/detail',
    ),
    base.admin(
        'share_backup:get_all_project',
        'List share backups of all projects.',
        f'GET {_BACKUPS}',
        f'GET {_BACKUPS}/detail',
    ),
    base.member(
        'share_backup:restore',
        'Restore a backup to its share or to another one.',
        _BACKUP_ACTION,
    ),
    base.admin(
        'share_backup:reset_status', 'Set the status of a share backup.', _BACKUP_ACTION
    ),
    base.member(
        'share_backup:update',
        'Change the name or the description of a share backup.',
        f'PUT {_BACKUP}',
    ),
    base.member('share_backup:delete', 'Delete a share backup.', f'DELETE {_BACKUP}'),
]
