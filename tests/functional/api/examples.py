"""A valid request for every walked operation.

An example prepares what it needs and gives the rest of the request. It is
found by the key of the operation, in the spelling of the latest version.
"""

from collections.abc import Callable

from tests.functional.api import published
from tests.functional.api.world import Given
from tests.functional.api.world import World
from tests.functional.api.world import given

Example = Callable[[World], Given]
EXAMPLES: dict[str, Example] = {}

_LATEST = {
    '/os-availability-zone': '/availability-zones',
    '/os-share-type-access': '/share_type_access',
}
_ACTION = 'POST /v2/shares/{id}/action'
_INSTANCE_ACTION = 'POST /v2/share_instances/{id}/action'
_EXPORT = '/v2/shares/{id}/export_locations/{el}'
_VALUES = {'metadata': {'color': 'blue'}}


def example(operation: published.Operation) -> Example:
    return EXAMPLES[latest(operation.key)]


def latest(key: str) -> str:
    """The key in the spelling of the latest version."""
    for old, new in _LATEST.items():
        key = key.replace(old, new)
    return key.replace(' os-', ' ').replace('/os-', '/')


def of(*keys: str) -> Callable[[Example], Example]:
    def keep(function: Example) -> Example:
        for key in keys:
            assert key not in EXAMPLES, key
            EXAMPLES[key] = function
        return function
    return keep


@of('GET /', 'GET /v2/', 'GET /healthcheck', 'GET /v2/shares',
    'GET /v2/shares/detail', 'GET /v2/share_instances')
def collection(world):
    return given()


# Shares

@of('POST /v2/shares')
def create(world):
    return given({'share': {'share_proto': 'nfs', 'size': 1}})


@of('GET /v2/shares/{id}', 'GET /v2/shares/{id}/metadata')
def share(world):
    return given(id=world.share)


@of('GET /v2/shares/{share_id}/instances')
def instances_of_share(world):
    return given(share_id=world.share)


@of('PUT /v2/shares/{id}')
def update(world):
    return given({'share': {'display_name': 'new'}}, id=world.share)


@of('DELETE /v2/shares/{id}', f'{_ACTION} force_delete',
    f'{_ACTION} soft_delete')
def idle(world):
    return given(id=world.idle())


@of(f'{_ACTION} restore')
def restore(world):
    id = world.idle()
    world.member.act(id, 'soft_delete')
    return given(id=id)


@of(f'{_ACTION} extend')
def extend(world):
    return given({'new_size': 3}, id=world.idle())


@of(f'{_ACTION} shrink')
def shrink(world):
    return given({'new_size': '1'}, id=world.idle())


@of(f'{_ACTION} reset_status')
def reset_status(world):
    return given({'status': 'error'}, id=world.idle())


# Metadata

@of('POST /v2/shares/{id}/metadata', 'PUT /v2/shares/{id}/metadata')
def metadata(world):
    return given(_VALUES, id=world.share)


@of('GET /v2/shares/{id}/metadata/{key}',
    'DELETE /v2/shares/{id}/metadata/{key}')
def metadata_item(world):
    world.member.request('POST', f'/shares/{world.share}/metadata', _VALUES,
                         expect=200)
    return given(id=world.share, key='color')


@of('POST /v2/shares/{id}/metadata/{key}')
def new_metadata_item(world):
    return given(_VALUES, id=world.share, key='color')


# Instances

@of('GET /v2/share_instances/{id}',
    'GET /v2/share_instances/{id}/export_locations')
def instance(world):
    return given(id=world.instance_of(world.share))


@of('GET /v2/share_instances/{id}/export_locations/{el}')
def export_of_instance(world):
    return given(id=world.instance_of(world.share),
                 el=world.export_of(world.share))


@of(f'{_INSTANCE_ACTION} force_delete')
def idle_instance(world):
    return given(id=world.instance_of(world.idle()))


@of(f'{_INSTANCE_ACTION} reset_status')
def reset_instance_status(world):
    return given({'status': 'error'}, id=world.instance_of(world.idle()))


# Export locations

@of('GET /v2/shares/{id}/export_locations')
def exports(world):
    return given(id=world.share)


@of(f'GET {_EXPORT}', f'GET {_EXPORT}/metadata')
def export(world):
    return given(id=world.share, el=world.export_of(world.share))


@of(f'POST {_EXPORT}/metadata', f'PUT {_EXPORT}/metadata')
def export_metadata(world):
    return given(_VALUES, id=world.share, el=world.export_of(world.share))


@of(f'GET {_EXPORT}/metadata/{{key}}', f'DELETE {_EXPORT}/metadata/{{key}}')
def export_metadata_item(world):
    el = world.export_of(world.share)
    world.member.request(
        'POST', f'/shares/{world.share}/export_locations/{el}/metadata',
        _VALUES, expect=200)
    return given(id=world.share, el=el, key='color')


@of(f'POST {_EXPORT}/metadata/{{key}}')
def new_export_metadata_item(world):
    return given(_VALUES, id=world.share, el=world.export_of(world.share),
                 key='color')
