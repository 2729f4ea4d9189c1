"""Access rules and resource locks."""

from manila_lite.policies import base

_ACCESS_RULE = '/v2/share-access-rules/{id}'
_ACCESS_METADATA = '/v2/share-access-rules/{id}/metadata'
_LOCK = '/v2/resource-locks/{id}'

RULES = [
    # Share access rules
    base.reader('share_access_rule:get', 'Show an access rule.', f'GET {_ACCESS_RULE}'),
    base.reader(
        'share_access_rule:index',
        'List access rules of a share.',
        'GET /v2/share-access-rules',
    ),
    base.member(
        'share_access_rule:update',
        'Change the level of an access rule.',
        f'PUT {_ACCESS_RULE}',
    ),
    # Metadata of access rules
    base.member(
        'share_access_metadata:update',
        'Change metadata of an access rule.',
        f'PUT {_ACCESS_METADATA}',
    ),
    base.member(
        'share_access_metadata:delete',
        'Delete metadata of an access rule.',
        f'DELETE {_ACCESS_METADATA}/{{key}}',
    ),
    # Resource locks
    base.rule(
        'resource_lock:get',
        base.SERVICE_OR_READER,
        'Show a resource lock.',
        f'GET {_LOCK}',
        deprecated=base.DEPRECATED_OWNER,
    ),
    base.rule(
        'resource_lock:get_all',
        base.SERVICE_OR_READER,
        'List resource locks.',
        'GET /v2/resource-locks',
        deprecated=base.DEPRECATED_OWNER,
    ),
    base.rule(
        'resource_lock:get_all_projects',
        base.SERVICE,
        'List resource locks of all projects.',
        'GET /v2/resource-locks',
        deprecated=base.DEPRECATED_ADMIN,
    ),
    base.rule(
        'resource_lock:create',
        base.SERVICE_OR_MEMBER,
        'Lock a resource.',
        'POST /v2/resource-locks',
        deprecated=base.DEPRECATED_OWNER,
    ),
    base.rule(
        'resource_lock:update',
        base.OWNER_USER_OR_SERVICE,
        'Change a resource lock within its lock context.',
        f'PUT {_LOCK}',
        deprecated=base.DEPRECATED_OWNER_USER,
    ),
    base.rule(
        'resource_lock:delete',
        base.OWNER_USER_OR_SERVICE,
        'Delete a resource lock within its lock context.',
        f'DELETE {_LOCK}',
        deprecated=base.DEPRECATED_OWNER_USER,
    ),
    base.rule(
        'resource_lock:bypass_locked_show_action',
        base.OWNER_USER_OR_SERVICE,
        'Show the client of an access rule although its visibility is locked.',
        'GET /v2/share-access-rules',
        'GET /v2/share-access-rules/{id}',
        deprecated=base.DEPRECATED_OWNER_USER,
    ),
]
