"""Policy rules of the identity API, which Keystone replaces."""

from manila_lite.policies import base

RULES = [
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
]
