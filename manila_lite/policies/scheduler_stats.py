"""Policy rules of scheduler statistics."""

from manila_lite.policies import base

RULES = [
    base.admin(
        'scheduler_stats:pools:index',
        'List the names of pools.',
        'GET /v2/scheduler-stats/pools',
    ),
    base.admin(
        'scheduler_stats:pools:detail',
        'List pools with their capabilities.',
        'GET /v2/scheduler-stats/pools/detail',
    ),
]
