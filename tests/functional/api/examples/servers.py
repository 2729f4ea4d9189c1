"""Examples and error cases of share servers."""

from tests.functional.api import error_cases
from tests.functional.api.error_cases import RefusedRequest
from tests.functional.api.examples.registry import example_for
from tests.functional.api.samples.requests import request_args

_SERVERS = '/v2/share-servers'
_SERVER = f'{_SERVERS}/{{id}}'
_ACTION = f'POST {_SERVER}/action'


@example_for(f'GET {_SERVERS}')
def collection(sample):
    return request_args()


@example_for(f'GET {_SERVER}', f'GET {_SERVER}/details')
def server(sample):
    return request_args(id=sample.server)


@example_for(f'DELETE {_SERVER}')
def unused(sample):
    return request_args(id=sample.spare_server())


@example_for(f'POST {_SERVERS}/manage')
def manage(sample):
    return request_args(sample.manage_server_body())


@example_for(f'{_ACTION} unmanage')
def unmanage(sample):
    return request_args({'force': False}, id=sample.spare_server())


@example_for(f'{_ACTION} reset_status')
def reset_status(sample):
    return request_args({'status': 'error'}, id=sample.spare_server())


@error_cases.register(409, f'DELETE {_SERVER}')
def used(sample):
    return RefusedRequest(request_args(id=sample.used_server))
