"""Policy rules of security services."""

from manila_lite.policies import base

RULES = [
    base.member(
        'security_service:create',
        'Create a security service.',
        'POST /v2/security-services',
    ),
    base.reader(
        'security_service:show',
        'Show a security service.',
        'GET /v2/security-services/{id}',
    ),
    base.reader(
        'security_service:detail',
        'List security services in detail.',
        'GET /v2/security-services/detail',
    ),
    base.reader(
        'security_service:index', 'List security services.', 'GET /v2/security-services'
    ),
    base.member(
        'security_service:update',
        'Change a security service.',
        'PUT /v2/security-services/{id}',
    ),
    base.member(
        'security_service:delete',
        'Delete a security service.',
        'DELETE /v2/security-services/{id}',
    ),
    base.admin(
        'security_service:get_all_security_services',
        'List security services of all projects.',
        'GET /v2/security-services',
        'GET /v2/security-services/detail',
    ),
]
