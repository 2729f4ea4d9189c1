"""Who may see services and take them out of scheduling."""

from manila_lite.policies import base

RULES = [
    base.admin(
        'service:index',
        'List services.',
        'GET /v2/os-services',
        'GET /v2/services',
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
        'Have a share service ensure all its shares again.',
        'POST /v2/services/ensure-shares',
    ),
]
