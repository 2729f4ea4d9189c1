"""The policy rule of the API description."""

from manila_lite.policies import base

RULES = [
    base.rule(
        'api_description:get',
        f'({base.ADMIN}) or role:member or role:reader or role:service',
        'Read the API description in OpenAPI. With "@" it is public, and '
        'needs no sign-in.',
        'GET /v2/openapi.json',
        deprecated=None,
    )
]
