"""Examples and error cases of share replicas."""

from tests.functional.api import error_cases
from tests.functional.api.error_cases import UNKNOWN, RefusedRequest
from tests.functional.api.examples.registry import example_for
from tests.functional.api.samples.requests import request_args

_REPLICAS = '/v2/share-replicas'
_REPLICA = f'{_REPLICAS}/{{id}}'
_ACTION = f'POST {_REPLICA}/action'
_METADATA = f'{_REPLICA}/metadata'
_EXPORTS = f'{_REPLICA}/export-locations'
_VALUES = {'metadata': {'color': 'blue'}}


@example_for(f'GET {_REPLICAS}', f'GET {_REPLICAS}/detail')
def collection(sample):
    return request_args()


@example_for(f'POST {_REPLICAS}')
def create(sample):
    sample.idle_replica()
    return request_args({'share_replica': {'share_id': sample.spare_replicated_share}})


@example_for(f'GET {_REPLICA}', f'GET {_METADATA}', f'GET {_EXPORTS}')
def replica(sample):
    return request_args(id=sample.replica)


@example_for(f'DELETE {_REPLICA}', f'{_ACTION} resync', f'{_ACTION} force_delete')
def idle_replica(sample):
    return request_args(id=sample.idle_replica())


@example_for(f'{_ACTION} promote')
def promote(sample):
    return request_args({'quiesce_wait_time': 30}, id=sample.idle_replica())


@example_for(f'{_ACTION} reset_status')
def reset_status(sample):
    return request_args({'status': 'error'}, id=sample.idle_replica())


@example_for(f'{_ACTION} reset_replica_state')
def reset_replica_state(sample):
    return request_args({'replica_state': 'out_of_sync'}, id=sample.idle_replica())


@example_for(f'POST {_METADATA}', f'PUT {_METADATA}')
def change_metadata(sample):
    return request_args(_VALUES, id=sample.replica)


@example_for(
    f'GET {_METADATA}/{{key}}',
    f'POST {_METADATA}/{{key}}',
    f'DELETE {_METADATA}/{{key}}',
)
def metadata_item(sample):
    sample.admin.request(
        'PUT', f'/share-replicas/{sample.replica}/metadata', _VALUES, expect=200
    )
    return request_args(_VALUES, id=sample.replica, key='color')


@example_for(f'GET {_EXPORTS}/{{el}}')
def export(sample):
    return request_args(id=sample.replica, el=sample.replica_export)


@error_cases.register(404, f'POST {_REPLICAS}')
def replica_of_unknown_share(sample):
    return RefusedRequest(request_args({'share_replica': {'share_id': UNKNOWN}}))


@error_cases.register(413, f'POST {_REPLICAS}')
def above_the_quota(sample):
    return RefusedRequest(
        request_args({'share_replica': {'share_id': sample.oversized_replicated_share}})
    )


@error_cases.register(400, f'DELETE {_REPLICA}')
def last_active_replica(sample):
    sample.idle_replica()
    return RefusedRequest(request_args(id=sample.active_replica))
