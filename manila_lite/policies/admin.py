"""The service, its projects and users: quotas, messages, recovery."""

from manila_lite.policies import base

RULES = [
    # The description of the API
    base.rule(
        'api_description:get',
        f'({base.ADMIN}) or role:member or role:reader or role:service',
        'Read the API description in OpenAPI. With "@" it is public, and '
        'needs no sign-in.',
        'GET /v2/openapi.json',
        deprecated=None,
    ),
    # Availability zones
    base.reader(
        'availability_zone:index',
        'List availability zones.',
        'GET /v2/os-availability-zone',
        'GET /v2/availability-zones',
    ),
    # Pools
    base.admin(
        'scheduler_stats:pools:index',
        'List the names of pools.',
        'GET /v2/scheduler-stats/pools',
    ),
    base.admin(
        'scheduler_stats:pools:detail',
        'List pools with their capabilities.',
        'GET /v2/scheduler-stats/pools/detail',
    ),
    # Services
    base.admin(
        'service:index', 'List services.', 'GET /v2/os-services', 'GET /v2/services'
    ),
    base.admin(
        'service:update',
        'Enable or disable a service.',
        'PUT /v2/os-services/enable',
        'PUT /v2/os-services/disable',
        'PUT /v2/services/enable',
        'PUT /v2/services/disable',
    ),
    base.admin(
        'service:ensure_shares',
        'Ensure all shares of a share service.',
        'POST /v2/services/ensure-shares',
    ),
    # Quota sets
    base.admin(
        'quota_set:update',
        'Change quotas.',
        'PUT /v2/os-quota-sets/{project_id}',
        'PUT /v2/quota-sets/{project_id}',
    ),
    base.reader(
        'quota_set:show',
        'Show quotas, default quotas and their usage.',
        'GET /v2/os-quota-sets/{project_id}',
        'GET /v2/os-quota-sets/{project_id}/defaults',
        'GET /v2/quota-sets/{project_id}',
        'GET /v2/quota-sets/{project_id}/defaults',
        'GET /v2/quota-sets/{project_id}/detail',
    ),
    base.admin(
        'quota_set:delete',
        'Return quotas to their defaults.',
        'DELETE /v2/os-quota-sets/{project_id}',
        'DELETE /v2/quota-sets/{project_id}',
    ),
    # Quota classes
    base.admin(
        'quota_class_set:update',
        'Change the quotas of a class.',
        'PUT /v2/os-quota-class-sets/{class}',
        'PUT /v2/quota-class-sets/{class}',
    ),
    base.reader(
        'quota_class_set:show',
        'Show the quotas of a class.',
        'GET /v2/os-quota-class-sets/{class}',
        'GET /v2/quota-class-sets/{class}',
    ),
    # Identity, where Keystone is replaced
    base.reader(
        'identity:get_project',
        'See a project. Lists contain the projects that the caller may see.',
        'GET /v3/projects',
        'GET /v3/projects/{project_id}',
        deprecated=None,
    ),
    base.rule(
        'identity:get_user',
        f'({base.ADMIN}) or (rule:owner-user)',
        'See a user. Lists contain the users that the caller may see.',
        'GET /v3/users',
        'GET /v3/users/{user_id}',
        'GET /v3/users/{user_id}/projects',
        'GET /v3/role_assignments',
        deprecated=None,
    ),
    base.rule(
        'identity:validate_token',
        base.OWNER_USER_OR_SERVICE,
        'See the description of another valid token.',
        'GET /v3/auth/tokens',
        deprecated=None,
    ),
    base.rule(
        'identity:revoke_token',
        base.OWNER_USER_OR_SERVICE,
        'End a valid token before it expires.',
        'DELETE /v3/auth/tokens',
        deprecated=None,
    ),
    # User messages
    base.reader('message:get', 'Show a message.', 'GET /v2/messages/{id}'),
    base.reader('message:get_all', 'List messages.', 'GET /v2/messages'),
    base.member('message:delete', 'Delete a message.', 'DELETE /v2/messages/{id}'),
    # Recovery
    base.admin(
        'recovery:in_flight',
        'List resources in flight with holder and next step.',
        'GET /v2/recovery/in-flight',
        deprecated=None,
    ),
    base.admin(
        'recovery:preview',
        'Show what a recovery pass would do.',
        'GET /v2/recovery/preview',
        deprecated=None,
    ),
    base.admin(
        'recovery:log',
        'List the decisions of recovery.',
        'GET /v2/recovery/log',
        deprecated=None,
    ),
    base.admin(
        'recovery:run',
        'Request a recovery pass of a service, or the rescue of one resource.',
        'POST /v2/recovery/run',
        deprecated=None,
    ),
]
