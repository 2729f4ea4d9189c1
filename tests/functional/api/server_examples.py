"""Examples and refusals of share servers."""

from tests.functional.api import error_cases as refusals
from tests.functional.api.error_cases import Refused
from tests.functional.api.examples import of
from tests.functional.api.sample_cloud import given

_SERVERS = '/v2/share-servers'
_SERVER = f'{_SERVERS}/{{id}}'
_ACTION = f'POST {_SERVER}/action'


@of(f'GET {_SERVERS}')
def collection(world):
    return given()


@of(f'GET {_SERVER}', f'GET {_SERVER}/details')
def server(world):
    return given(id=world.server)


@of(f'DELETE {_SERVER}')
def unused(world):
    return given(id=world.spare_server())


@of(f'POST {_SERVERS}/manage')
def manage(world):
    return given(world.server_body())


@of(f'{_ACTION} unmanage')
def unmanage(world):
    return given({'force': False}, id=world.spare_server())


@of(f'{_ACTION} reset_status')
def reset_status(world):
    return given({'status': 'error'}, id=world.spare_server())


@refusals.of(409, f'DELETE {_SERVER}')
def used(world):
    return Refused(given(id=world.laden_server))
