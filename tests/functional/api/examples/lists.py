"""Valid requests for lists that need no arguments."""

from tests.functional.api.examples.registry import example_for
from tests.functional.api.samples.requests import request_args


@example_for(
    'GET /',
    'GET /v2/',
    'GET /healthcheck',
    'GET /v2/extensions',
    'GET /v2/availability-zones',
    'GET /v2/services',
    'GET /v2/limits',
    'GET /v2/scheduler-stats/pools',
    'GET /v2/scheduler-stats/pools/detail',
    'GET /v2/shares',
    'GET /v2/shares/detail',
    'GET /v2/share_instances',
    'GET /v2/types',
    'GET /v2/types/default',
    'GET /v2/share-group-types',
    'GET /v2/share-group-types/default',
    'GET /v2/qos-types',
    'GET /v2/messages',
    'GET /v2/resource-locks',
    'GET /v2/snapshots',
    'GET /v2/snapshots/detail',
    'GET /v2/snapshot-instances',
    'GET /v2/snapshot-instances/detail',
)
def collection(sample):
    return request_args()
