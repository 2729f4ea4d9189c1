"""Policy rules of services."""

from manila_lite.policies import base

RULES = [
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
]
