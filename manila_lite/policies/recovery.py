"""Who may see what is in flight, and have it rescued."""

from manila_lite.policies import base

RULES = [
    base.admin(
        'recovery:in_flight',
        'See resources in flight, who works on them and what comes next.',
        'GET /v2/recovery/in-flight',
        deprecated=None,
    ),
    base.admin(
        'recovery:preview',
        'See what a pass of recovery would do.',
        'GET /v2/recovery/preview',
        deprecated=None,
    ),
    base.admin(
        'recovery:log',
        'See what recovery has decided.',
        'GET /v2/recovery/log',
        deprecated=None,
    ),
    base.admin(
        'recovery:run',
        'Have a service rescue what nobody works on, or look at one resource.',
        'POST /v2/recovery/run',
        deprecated=None,
    ),
]
