"""Replicas and their export locations."""

from manila_lite.policies import base

_REPLICAS = '/v2/share-replicas'
_REPLICA = f'{_REPLICAS}/{{id}}'
_ACTION = f'POST {_REPLICA}/action'
_METADATA = f'{_REPLICA}/metadata'
_EXPORTS = '/v2/share-replicas/{id}/export-locations'

RULES = [
    # Share replicas
    base.member(
        'share_replica:create', 'Create a replica of a share.', f'POST {_REPLICAS}'
    ),
    base.reader(
        'share_replica:get_all',
        'List replicas.',
        f'GET {_REPLICAS}',
        f'GET {_REPLICAS}/detail',
    ),
    base.reader('share_replica:show', 'Show a replica.', f'GET {_REPLICA}'),
    base.member('share_replica:delete', 'Delete a replica.', f'DELETE {_REPLICA}'),
    base.admin(
        'share_replica:force_delete', 'Delete a replica in any status.', _ACTION
    ),
    base.member(
        'share_replica:promote', 'Promote a replica to the active one.', _ACTION
    ),
    base.admin('share_replica:resync', 'Bring a replica up to date at once.', _ACTION),
    base.admin(
        'share_replica:reset_replica_state',
        'Set the replica state of a replica.',
        _ACTION,
    ),
    base.admin('share_replica:reset_status', 'Set the status of a replica.', _ACTION),
    base.member(
        'share_replica:update_metadata',
        'Change metadata of a replica.',
        f'PUT {_METADATA}',
        f'POST {_METADATA}',
        f'POST {_METADATA}/{{key}}',
        scopes=base.ANY_SCOPE,
    ),
    base.member(
        'share_replica:delete_metadata',
        'Delete metadata of a replica.',
        f'DELETE {_METADATA}/{{key}}',
        scopes=base.ANY_SCOPE,
    ),
    base.member(
        'share_replica:get_metadata',
        'Show metadata of a replica.',
        f'GET {_METADATA}',
        f'GET {_METADATA}/{{key}}',
        scopes=base.ANY_SCOPE,
    ),
    # Export locations of replicas
    base.reader(
        'share_replica_export_location:index',
        'List export locations of a replica.',
        f'GET {_EXPORTS}',
    ),
    base.reader(
        'share_replica_export_location:show',
        'Show an export location of a replica.',
        f'GET {_EXPORTS}/{{el}}',
    ),
]
