"""Policy rules of recovery."""

from manila_lite.policies import base

RULES = [
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
