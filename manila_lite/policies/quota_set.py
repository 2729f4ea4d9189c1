"""Policy rules of quotas of projects, users and share types."""

from manila_lite.policies import base

RULES = [
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
]
