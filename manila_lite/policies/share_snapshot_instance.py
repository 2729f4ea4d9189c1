"""Policy rules of snapshot instances."""

from manila_lite.policies import base

RULES = [
    base.admin(
        'share_snapshot_instance:index',
        'List snapshot instances.',
        'GET /v2/snapshot-instances',
    ),
    base.admin(
        'share_snapshot_instance:detail',
        'List snapshot instances in detail.',
        'GET /v2/snapshot-instances/detail',
    ),
    base.admin(
        'share_snapshot_instance:show',
        'Show a snapshot instance.',
        'GET /v2/snapshot-instances/{id}',
    ),
    base.admin(
        'share_snapshot_instance:reset_status',
        'Set the status of a snapshot instance.',
        'POST /v2/snapshot-instances/{id}/action',
    ),
]
