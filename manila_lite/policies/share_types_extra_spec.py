"""Policy rules of extra specs of share types."""

from manila_lite.policies import base

RULES = [
    base.admin(
        'share_types_extra_spec:create',
        'Set extra specs.',
        'POST /v2/types/{id}/extra_specs',
    ),
    base.admin(
        'share_types_extra_spec:show',
        'Show an extra spec.',
        'GET /v2/types/{id}/extra_specs/{key}',
    ),
    base.admin(
        'share_types_extra_spec:index',
        'List extra specs.',
        'GET /v2/types/{id}/extra_specs',
    ),
    base.admin(
        'share_types_extra_spec:update',
        'Change an extra spec.',
        'PUT /v2/types/{id}/extra_specs/{key}',
    ),
    base.admin(
        'share_types_extra_spec:delete',
        'Delete an extra spec.',
        'DELETE /v2/types/{id}/extra_specs/{key}',
    ),
]
