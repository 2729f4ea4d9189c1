"""Policy rules of resource locks."""

from manila_lite.policies import base

_ONE = '/v2/resource-locks/{id}'

RULES = [
    base.rule(
        'resource_lock:get',
        base.SERVICE_OR_READER,
        'Show a resource lock.',
        f'GET {_ONE}',
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
        f'PUT {_ONE}',
        deprecated=base.DEPRECATED_OWNER_USER,
    ),
    base.rule(
        'resource_lock:delete',
        base.OWNER_USER_OR_SERVICE,
        'Delete a resource lock within its lock context.',
        f'DELETE {_ONE}',
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
