"""Snapshots, their instances and export locations."""

from manila_lite.policies import base

_LIST = ('GET /v2/snapshots', 'GET /v2/snapshots/detail')
_ACTION = 'POST /v2/snapshots/{id}/action'

RULES = [
    # Share snapshots
    base.reader(
        'share_snapshot:get_snapshot', 'Show a snapshot.', 'GET /v2/snapshots/{id}'
    ),
    base.reader('share_snapshot:get_all_snapshots', 'List snapshots.', *_LIST),
    base.admin(
        'share_snapshot:list_all_projects', 'List snapshots of all projects.', *_LIST
    ),
    base.admin(
        'share_snapshot:list_snapshots_in_deferred_deletion_states',
        'Show snapshots in deferred deletion.',
        *_LIST,
        'GET /v2/snapshots/{id}',
    ),
    base.admin(
        'share_snapshot:manage_snapshot',
        'Manage a snapshot that exists on a back end.',
        'POST /v2/snapshots/manage',
    ),
    base.admin(
        'share_snapshot:unmanage_snapshot',
        'Unmanage a snapshot; it stays on the back end.',
        _ACTION,
    ),
    base.admin(
        'share_snapshot:force_delete', 'Delete a snapshot in any status.', _ACTION
    ),
    base.admin('share_snapshot:reset_status', 'Set the status of a snapshot.', _ACTION),
    base.reader(
        'share_snapshot:access_list',
        'List the access rules of a snapshot.',
        'GET /v2/snapshots/{id}/access-list',
    ),
    base.member(
        'share_snapshot:allow_access', 'Allow a client access to a snapshot.', _ACTION
    ),
    base.member(
        'share_snapshot:deny_access', 'Deny a client access to a snapshot.', _ACTION
    ),
    base.reader(
        'share_snapshot:get_metadata',
        'Show metadata of a snapshot.',
        'GET /v2/snapshots/{id}/metadata',
        'GET /v2/snapshots/{id}/metadata/{key}',
    ),
    base.member(
        'share_snapshot:update_metadata',
        'Change metadata of a snapshot.',
        'PUT /v2/snapshots/{id}/metadata',
        'POST /v2/snapshots/{id}/metadata',
        'POST /v2/snapshots/{id}/metadata/{key}',
    ),
    base.member(
        'share_snapshot:delete_metadata',
        'Delete metadata of a snapshot.',
        'DELETE /v2/snapshots/{id}/metadata/{key}',
    ),
    # Share snapshot instances
    base.admin(
        'share_snapshot_instance:index',
        'List snapshot instances.',
        'GET /v2/snapshot-instances',
    ),
    base.admin(
        'share_snapshot_instance:detail',
        'List snapshot instances in detail.',
        'GET /v2/snapshot-instances/detail',
    ),
    base.admin(
        'share_snapshot_instance:show',
        'Show a snapshot instance.',
        'GET /v2/snapshot-instances/{id}',
    ),
    base.admin(
        'share_snapshot_instance:reset_status',
        'Set the status of a snapshot instance.',
        'POST /v2/snapshot-instances/{id}/action',
    ),
    # Export locations of snapshots
    base.reader(
        'share_snapshot_export_location:index',
        'List export locations of a snapshot.',
        'GET /v2/snapshots/{id}/export-locations',
    ),
    base.reader(
        'share_snapshot_export_location:show',
        'Show an export location of a snapshot.',
        'GET /v2/snapshots/{id}/export-locations/{el}',
    ),
    # Export locations of snapshot instances
    base.admin(
        'share_snapshot_instance_export_location:index',
        'List export locations of a snapshot instance.',
        'GET /v2/snapshot-instances/{id}/export-locations',
    ),
    base.admin(
        'share_snapshot_instance_export_location:show',
        'Show an export location of a snapshot instance.',
        'GET /v2/snapshot-instances/{id}/export-locations/{el}',
    ),
]
