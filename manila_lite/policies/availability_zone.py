"""Policy rules of availability zones."""

from manila_lite.policies import base

RULES = [
    base.reader(
        'availability_zone:index',
        'List availability zones.',
        'GET /v2/os-availability-zone',
        'GET /v2/availability-zones',
    )
]
