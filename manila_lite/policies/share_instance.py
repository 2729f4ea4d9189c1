"""Policy rules of share instances."""

from manila_lite.policies import base

RULES = [
    base.admin(
        'share_instance:index',
        'List share instances.',
        'GET /v2/share_instances',
        'GET /v2/shares/{share_id}/instances',
    ),
    base.admin(
        'share_instance:show', 'Show a share instance.', 'GET /v2/share_instances/{id}'
    ),
    base.admin(
        'share_instance:force_delete',
        'Delete a share instance in any status.',
        'POST /v2/share_instances/{id}/action',
    ),
    base.admin(
        'share_instance:reset_status',
        'Set the status of a share instance.',
        'POST /v2/share_instances/{id}/action',
    ),
]
