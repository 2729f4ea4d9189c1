"""A valid request for every walked operation.

An example prepares what it needs and gives the rest of the request. It is
found by the key of the operation, in the spelling of the latest version.
"""

from collections.abc import Callable

from tests.functional.api import published_api as published
from tests.functional.api.sample_cloud import SERVICE
from tests.functional.api.sample_cloud import TENANT
from tests.functional.api.sample_cloud import Given
from tests.functional.api.sample_cloud import World
from tests.functional.api.sample_cloud import given

Example = Callable[[World], Given]
EXAMPLES: dict[str, Example] = {}

_LATEST = {
    '/os-share-manage': '/shares/manage',
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


@of(
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
    'GET /v2/messages',
    'GET /v2/resource-locks',
    'GET /v2/snapshots',
    'GET /v2/snapshots/detail',
    'GET /v2/snapshot-instances',
    'GET /v2/snapshot-instances/detail',
)
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


@of(
    'DELETE /v2/shares/{id}',
    f'{_ACTION} force_delete',
    f'{_ACTION} soft_delete',
)
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


@of(f'{_ACTION} reset_task_state')
def reset_task_state(world):
    return given({'task_state': None}, id=world.idle())


# Managing


@of('POST /v2/shares/manage')
def manage(world):
    return given(world.manage_body())


@of(f'{_ACTION} unmanage', 'POST /v2/share-unmanage/{id}/unmanage')
def unmanage(world):
    return given(id=world.idle())


@of('POST /v2/snapshots/manage')
def manage_snapshot(world):
    return given(world.manage_snapshot_body())


@of('POST /v2/snapshots/{id}/action unmanage')
def unmanage_snapshot(world):
    return given(id=world.idle_snapshot())


# Metadata


@of('POST /v2/shares/{id}/metadata', 'PUT /v2/shares/{id}/metadata')
def metadata(world):
    return given(_VALUES, id=world.share)


@of(
    'GET /v2/shares/{id}/metadata/{key}',
    'DELETE /v2/shares/{id}/metadata/{key}',
)
def metadata_item(world):
    world.member.request(
        'POST', f'/shares/{world.share}/metadata', _VALUES, expect=200
    )
    return given(id=world.share, key='color')


@of('POST /v2/shares/{id}/metadata/{key}')
def new_metadata_item(world):
    return given(_VALUES, id=world.share, key='color')


# Instances


@of(
    'GET /v2/share_instances/{id}',
    'GET /v2/share_instances/{id}/export_locations',
)
def instance(world):
    return given(id=world.instance_of(world.share))


@of('GET /v2/share_instances/{id}/export_locations/{el}')
def export_of_instance(world):
    return given(
        id=world.instance_of(world.share), el=world.export_of(world.share)
    )


@of(f'{_INSTANCE_ACTION} force_delete')
def idle_instance(world):
    return given(id=world.instance_of(world.idle()))


@of(f'{_INSTANCE_ACTION} reset_status')
def reset_instance_status(world):
    return given({'status': 'error'}, id=world.instance_of(world.idle()))


# Snapshots

_SNAPSHOT = '/v2/snapshots/{id}'
_SNAPSHOT_ACTION = f'POST {_SNAPSHOT}/action'
_SNAPSHOT_INSTANCE = '/v2/snapshot-instances/{id}'


@of('POST /v2/snapshots')
def create_snapshot(world):
    return given({'snapshot': {'share_id': world.sitting(), 'name': 'new'}})


@of(f'{_ACTION} revert')
def revert(world):
    return given({'snapshot_id': world.spare_snapshot}, id=world.still())


@of(f'GET {_SNAPSHOT}', f'GET {_SNAPSHOT}/metadata')
def snapshot(world):
    return given(id=world.snapshot)


@of(f'PUT {_SNAPSHOT}')
def update_snapshot(world):
    return given({'snapshot': {'display_name': 'new'}}, id=world.snapshot)


@of(f'DELETE {_SNAPSHOT}', f'{_SNAPSHOT_ACTION} force_delete')
def idle_snapshot(world):
    return given(id=world.idle_snapshot())


@of(f'{_SNAPSHOT_ACTION} reset_status')
def reset_snapshot_status(world):
    return given({'status': 'error'}, id=world.idle_snapshot())


@of(f'POST {_SNAPSHOT}/metadata', f'PUT {_SNAPSHOT}/metadata')
def snapshot_metadata(world):
    return given(_VALUES, id=world.snapshot)


@of(
    f'GET {_SNAPSHOT}/metadata/{{key}}', f'DELETE {_SNAPSHOT}/metadata/{{key}}'
)
def snapshot_metadata_item(world):
    world.member.request(
        'POST', f'/snapshots/{world.snapshot}/metadata', _VALUES, expect=200
    )
    return given(id=world.snapshot, key='color')


@of(f'POST {_SNAPSHOT}/metadata/{{key}}')
def new_snapshot_metadata_item(world):
    return given(_VALUES, id=world.snapshot, key='color')


@of(f'GET {_SNAPSHOT_INSTANCE}')
def snapshot_instance(world):
    return given(id=world.instance_of_snapshot(world.snapshot))


@of(f'POST {_SNAPSHOT_INSTANCE}/action reset_status')
def reset_snapshot_instance_status(world):
    return given(
        {'status': 'error'},
        id=world.instance_of_snapshot(world.idle_snapshot()),
    )


# Who may mount snapshots, and where


@of(f'{_SNAPSHOT_ACTION} allow_access')
def allow_to_mount(world):
    return given(world.rule_body(), id=world.snapshot)


@of(f'{_SNAPSHOT_ACTION} deny_access')
def deny_to_mount(world):
    return given({'access_id': world.new_snapshot_rule()}, id=world.snapshot)


@of(f'GET {_SNAPSHOT}/access-list', f'GET {_SNAPSHOT}/export-locations')
def mountable(world):
    return given(id=world.snapshot)


@of(f'GET {_SNAPSHOT}/export-locations/{{el}}')
def export_of_snapshot(world):
    return given(id=world.snapshot, el=world.export_of_snapshot())


@of(f'GET {_SNAPSHOT_INSTANCE}/export-locations')
def exports_of_snapshot_instance(world):
    return given(id=world.instance_of_snapshot(world.snapshot))


@of(f'GET {_SNAPSHOT_INSTANCE}/export-locations/{{el}}')
def export_of_snapshot_instance(world):
    return given(
        id=world.instance_of_snapshot(world.snapshot),
        el=world.export_of_snapshot(),
    )


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
        'POST',
        f'/shares/{world.share}/export_locations/{el}/metadata',
        _VALUES,
        expect=200,
    )
    return given(id=world.share, el=el, key='color')


@of(f'POST {_EXPORT}/metadata/{{key}}')
def new_export_metadata_item(world):
    return given(
        _VALUES, id=world.share, el=world.export_of(world.share), key='color'
    )


# Share types

_TYPE = '/v2/types/{id}'
_SPECS = f'{_TYPE}/extra_specs'


@of('POST /v2/types')
def create_type(world):
    return given(world.type_body())


@of(f'GET {_TYPE}', f'GET {_SPECS}', f'GET {_TYPE}/share_type_access')
def share_type(world):
    return given(id=world.private_type)


@of(f'PUT {_TYPE}')
def update_type(world):
    return given({'share_type': {'description': 'new'}}, id=world.silent_type)


@of(f'DELETE {_TYPE}')
def unused_type(world):
    return given(id=world.new_type())


@of(f'POST {_TYPE}/action addProjectAccess')
def add_access(world):
    return given({'project': TENANT}, id=world.new_type())


@of(f'POST {_TYPE}/action removeProjectAccess')
def remove_access(world):
    id = world.new_type()
    world.share_type_with(id, TENANT)
    return given({'project': TENANT}, id=id)


@of(f'POST {_SPECS}')
def new_extra_specs(world):
    return given({'extra_specs': {'color': 'blue'}}, id=world.private_type)


@of(f'GET {_SPECS}/{{key}}', f'DELETE {_SPECS}/{{key}}')
def extra_spec(world):
    world.admin.request(
        'POST',
        f'/types/{world.private_type}/extra_specs',
        {'extra_specs': {'color': 'blue'}},
        expect=200,
    )
    return given(id=world.private_type, key='color')


@of(f'PUT {_SPECS}/{{key}}')
def change_extra_spec(world):
    return given({'color': 'red'}, id=world.private_type, key='color')


# Services


@of('PUT /v2/services/enable', 'PUT /v2/services/disable')
def service(world):
    return given(SERVICE)


@of('POST /v2/services/ensure-shares')
def ensure_shares(world):
    world.calm()
    return given({'ensure_shares': {'host': SERVICE['host']}})


# Quotas

_QUOTA = '/v2/quota-sets/{project_id}'
_CLASS = '/v2/quota-class-sets/{class}'


@of(
    f'GET {_QUOTA}',
    f'GET {_QUOTA}/defaults',
    f'GET {_QUOTA}/detail',
    f'DELETE {_QUOTA}',
)
def quota_set(world):
    return given(project_id=TENANT)


@of(f'PUT {_QUOTA}')
def change_quota_set(world):
    return given({'quota_set': {'snapshots': 70000}}, project_id=TENANT)


@of(f'GET {_CLASS}')
def quota_class(world):
    return given(**{'class': 'default'})


@of(f'PUT {_CLASS}')
def change_quota_class(world):
    return given(
        {'quota_class_set': {'snapshots': 70000}}, **{'class': 'default'}
    )


# Messages


@of('GET /v2/messages/{id}')
def message(world):
    return given(id=world.message)


@of('DELETE /v2/messages/{id}')
def message_to_delete(world):
    return given(id=world.new_message())


# Resource locks


@of('POST /v2/resource-locks')
def create_lock(world):
    return given(world.lock_body())


@of('GET /v2/resource-locks/{id}', 'DELETE /v2/resource-locks/{id}')
def lock(world):
    return given(id=world.new_lock())


@of('PUT /v2/resource-locks/{id}')
def change_lock(world):
    return given(
        {'resource_lock': {'lock_reason': 'it is ours'}}, id=world.new_lock()
    )


# Access rules

_RULE = '/v2/share-access-rules/{id}'


@of(f'{_ACTION} allow_access')
def allow(world):
    return given(world.rule_body(), id=world.guarded)


@of(f'{_ACTION} deny_access')
def deny(world):
    return given({'access_id': world.new_rule()}, id=world.guarded)


@of(f'{_ACTION} access_list')
def access_list(world):
    return given(id=world.guarded)


@of('GET /v2/share-access-rules')
def rules_of_share(world):
    return given(query=f'?share_id={world.guarded}')


@of(f'GET {_RULE}')
def rule(world):
    return given(id=world.new_rule())


@of(f'PUT {_RULE}')
def change_rule(world):
    return given(
        {'update_access': {'access_level': 'ro'}}, id=world.new_rule()
    )


@of(f'PUT {_RULE}/metadata')
def rule_metadata(world):
    return given(_VALUES, id=world.new_rule())


@of(f'DELETE {_RULE}/metadata/{{key}}')
def rule_metadata_item(world):
    id = world.new_rule()
    world.member.request(
        'PUT', f'/share-access-rules/{id}/metadata', _VALUES, expect=200
    )
    return given(id=id, key='color')
