"""Policy rules of default quotas."""

from manila_lite.policies import base

RULES = [
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
]
