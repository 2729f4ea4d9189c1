"""A valid request for every tested operation.

An example prepares the resources it needs and returns the arguments of the
request. It is registered under the key of the operation, in the spelling of
the latest version.
"""

from collections.abc import Callable

from tests.functional.api import published_api
from tests.functional.api.sample_cloud import SERVICE
from tests.functional.api.sample_cloud import TENANT
from tests.functional.api.sample_cloud import RequestArgs
from tests.functional.api.sample_cloud import SampleCloud
from tests.functional.api.sample_cloud import request_args

Example = Callable[[SampleCloud], RequestArgs]
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


def example(operation: published_api.Operation) -> Example:
    return EXAMPLES[latest_key(operation.key)]


def latest_key(key: str) -> str:
    """Return the key in the spelling of the latest version."""
    for old, new in _LATEST.items():
        key = key.replace(old, new)
    return key.replace(' os-', ' ').replace('/os-', '/')


def example_for(*keys: str) -> Callable[[Example], Example]:
    def add(function: Example) -> Example:
        for key in keys:
            assert key not in EXAMPLES, key
            EXAMPLES[key] = function
        return function

    return add


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
    'GET /v2/messages',
    'GET /v2/resource-locks',
    'GET /v2/snapshots',
    'GET /v2/snapshots/detail',
    'GET /v2/snapshot-instances',
    'GET /v2/snapshot-instances/detail',
)
def collection(sample):
    return request_args()


# Shares


@example_for('POST /v2/shares')
def create(sample):
    return request_args({'share': {'share_proto': 'nfs', 'size': 1}})


@example_for('GET /v2/shares/{id}', 'GET /v2/shares/{id}/metadata')
def share(sample):
    return request_args(id=sample.share)


@example_for('GET /v2/shares/{share_id}/instances')
def instances_of_share(sample):
    return request_args(share_id=sample.share)


@example_for('PUT /v2/shares/{id}')
def update(sample):
    return request_args({'share': {'display_name': 'new'}}, id=sample.share)


@example_for(
    'DELETE /v2/shares/{id}',
    f'{_ACTION} force_delete',
    f'{_ACTION} soft_delete',
)
def idle_share(sample):
    return request_args(id=sample.idle_share())


@example_for(f'{_ACTION} restore')
def restore(sample):
    id = sample.idle_share()
    sample.member.act(id, 'soft_delete')
    return request_args(id=id)


@example_for(f'{_ACTION} extend')
def extend(sample):
    return request_args({'new_size': 3}, id=sample.idle_share())


@example_for(f'{_ACTION} shrink')
def shrink(sample):
    return request_args({'new_size': '1'}, id=sample.idle_share())


@example_for(f'{_ACTION} reset_status')
def reset_status(sample):
    return request_args({'status': 'error'}, id=sample.idle_share())


@example_for(f'{_ACTION} reset_task_state')
def reset_task_state(sample):
    return request_args({'task_state': None}, id=sample.idle_share())


# Managing


@example_for('POST /v2/shares/manage')
def manage(sample):
    return request_args(sample.manage_body())


@example_for(f'{_ACTION} unmanage', 'POST /v2/share-unmanage/{id}/unmanage')
def unmanage(sample):
    return request_args(id=sample.idle_share())


@example_for('POST /v2/snapshots/manage')
def manage_snapshot(sample):
    return request_args(sample.manage_snapshot_body())


@example_for('POST /v2/snapshots/{id}/action unmanage')
def unmanage_snapshot(sample):
    return request_args(id=sample.idle_snapshot())


# Metadata


@example_for('POST /v2/shares/{id}/metadata', 'PUT /v2/shares/{id}/metadata')
def metadata(sample):
    return request_args(_VALUES, id=sample.share)


@example_for(
    'GET /v2/shares/{id}/metadata/{key}',
    'DELETE /v2/shares/{id}/metadata/{key}',
)
def metadata_item(sample):
    sample.member.request(
        'POST', f'/shares/{sample.share}/metadata', _VALUES, expect=200
    )
    return request_args(id=sample.share, key='color')


@example_for('POST /v2/shares/{id}/metadata/{key}')
def new_metadata_item(sample):
    return request_args(_VALUES, id=sample.share, key='color')


# Instances


@example_for(
    'GET /v2/share_instances/{id}',
    'GET /v2/share_instances/{id}/export_locations',
)
def instance(sample):
    return request_args(id=sample.instance_of(sample.share))


@example_for('GET /v2/share_instances/{id}/export_locations/{el}')
def export_of_instance(sample):
    return request_args(
        id=sample.instance_of(sample.share), el=sample.export_of(sample.share)
    )


@example_for(f'{_INSTANCE_ACTION} force_delete')
def idle_instance(sample):
    return request_args(id=sample.instance_of(sample.idle_share()))


@example_for(f'{_INSTANCE_ACTION} reset_status')
def reset_instance_status(sample):
    return request_args(
        {'status': 'error'}, id=sample.instance_of(sample.idle_share())
    )


# Snapshots

_SNAPSHOT = '/v2/snapshots/{id}'
_SNAPSHOT_ACTION = f'POST {_SNAPSHOT}/action'
_SNAPSHOT_INSTANCE = '/v2/snapshot-instances/{id}'


@example_for('POST /v2/snapshots')
def create_snapshot(sample):
    return request_args(
        {
            'snapshot': {
                'share_id': sample.idle_snapshot_source(),
                'name': 'new',
            }
        }
    )


@example_for(f'{_ACTION} revert')
def revert(sample):
    return request_args(
        {'snapshot_id': sample.spare_snapshot},
        id=sample.idle_snapshotted_share(),
    )


@example_for(f'GET {_SNAPSHOT}', f'GET {_SNAPSHOT}/metadata')
def snapshot(sample):
    return request_args(id=sample.snapshot)


@example_for(f'PUT {_SNAPSHOT}')
def update_snapshot(sample):
    return request_args(
        {'snapshot': {'display_name': 'new'}}, id=sample.snapshot
    )


@example_for(f'DELETE {_SNAPSHOT}', f'{_SNAPSHOT_ACTION} force_delete')
def idle_snapshot(sample):
    return request_args(id=sample.idle_snapshot())


@example_for(f'{_SNAPSHOT_ACTION} reset_status')
def reset_snapshot_status(sample):
    return request_args({'status': 'error'}, id=sample.idle_snapshot())


@example_for(f'POST {_SNAPSHOT}/metadata', f'PUT {_SNAPSHOT}/metadata')
def snapshot_metadata(sample):
    return request_args(_VALUES, id=sample.snapshot)


@example_for(
    f'GET {_SNAPSHOT}/metadata/{{key}}', f'DELETE {_SNAPSHOT}/metadata/{{key}}'
)
def snapshot_metadata_item(sample):
    sample.member.request(
        'POST', f'/snapshots/{sample.snapshot}/metadata', _VALUES, expect=200
    )
    return request_args(id=sample.snapshot, key='color')


@example_for(f'POST {_SNAPSHOT}/metadata/{{key}}')
def new_snapshot_metadata_item(sample):
    return request_args(_VALUES, id=sample.snapshot, key='color')


@example_for(f'GET {_SNAPSHOT_INSTANCE}')
def snapshot_instance(sample):
    return request_args(id=sample.instance_of_snapshot(sample.snapshot))


@example_for(f'POST {_SNAPSHOT_INSTANCE}/action reset_status')
def reset_snapshot_instance_status(sample):
    return request_args(
        {'status': 'error'},
        id=sample.instance_of_snapshot(sample.idle_snapshot()),
    )


# Snapshot access rules and export locations


@example_for(f'{_SNAPSHOT_ACTION} allow_access')
def allow_to_mount(sample):
    return request_args(sample.rule_body(), id=sample.snapshot)


@example_for(f'{_SNAPSHOT_ACTION} deny_access')
def deny_to_mount(sample):
    return request_args(
        {'access_id': sample.new_snapshot_rule()}, id=sample.snapshot
    )


@example_for(
    f'GET {_SNAPSHOT}/access-list', f'GET {_SNAPSHOT}/export-locations'
)
def mountable(sample):
    return request_args(id=sample.snapshot)


@example_for(f'GET {_SNAPSHOT}/export-locations/{{el}}')
def export_of_snapshot(sample):
    return request_args(id=sample.snapshot, el=sample.export_of_snapshot())


@example_for(f'GET {_SNAPSHOT_INSTANCE}/export-locations')
def exports_of_snapshot_instance(sample):
    return request_args(id=sample.instance_of_snapshot(sample.snapshot))


@example_for(f'GET {_SNAPSHOT_INSTANCE}/export-locations/{{el}}')
def export_of_snapshot_instance(sample):
    return request_args(
        id=sample.instance_of_snapshot(sample.snapshot),
        el=sample.export_of_snapshot(),
    )


# Export locations


@example_for('GET /v2/shares/{id}/export_locations')
def exports(sample):
    return request_args(id=sample.share)


@example_for(f'GET {_EXPORT}', f'GET {_EXPORT}/metadata')
def export(sample):
    return request_args(id=sample.share, el=sample.export_of(sample.share))


@example_for(f'POST {_EXPORT}/metadata', f'PUT {_EXPORT}/metadata')
def export_metadata(sample):
    return request_args(
        _VALUES, id=sample.share, el=sample.export_of(sample.share)
    )


@example_for(
    f'GET {_EXPORT}/metadata/{{key}}', f'DELETE {_EXPORT}/metadata/{{key}}'
)
def export_metadata_item(sample):
    el = sample.export_of(sample.share)
    sample.member.request(
        'POST',
        f'/shares/{sample.share}/export_locations/{el}/metadata',
        _VALUES,
        expect=200,
    )
    return request_args(id=sample.share, el=el, key='color')


@example_for(f'POST {_EXPORT}/metadata/{{key}}')
def new_export_metadata_item(sample):
    return request_args(
        _VALUES,
        id=sample.share,
        el=sample.export_of(sample.share),
        key='color',
    )


# Share types

_TYPE = '/v2/types/{id}'
_SPECS = f'{_TYPE}/extra_specs'


@example_for('POST /v2/types')
def create_type(sample):
    return request_args(sample.type_body())


@example_for(f'GET {_TYPE}', f'GET {_SPECS}', f'GET {_TYPE}/share_type_access')
def share_type(sample):
    return request_args(id=sample.private_type)


@example_for(f'PUT {_TYPE}')
def update_type(sample):
    return request_args(
        {'share_type': {'description': 'new'}}, id=sample.minimal_type
    )


@example_for(f'DELETE {_TYPE}')
def unused_type(sample):
    return request_args(id=sample.new_type())


@example_for(f'POST {_TYPE}/action addProjectAccess')
def add_access(sample):
    return request_args({'project': TENANT}, id=sample.new_type())


@example_for(f'POST {_TYPE}/action removeProjectAccess')
def remove_access(sample):
    id = sample.new_type()
    sample.grant_type_access(id, TENANT)
    return request_args({'project': TENANT}, id=id)


@example_for(f'POST {_SPECS}')
def new_extra_specs(sample):
    return request_args(
        {'extra_specs': {'color': 'blue'}}, id=sample.private_type
    )


@example_for(f'GET {_SPECS}/{{key}}', f'DELETE {_SPECS}/{{key}}')
def extra_spec(sample):
    sample.admin.request(
        'POST',
        f'/types/{sample.private_type}/extra_specs',
        {'extra_specs': {'color': 'blue'}},
        expect=200,
    )
    return request_args(id=sample.private_type, key='color')


@example_for(f'PUT {_SPECS}/{{key}}')
def change_extra_spec(sample):
    return request_args({'color': 'red'}, id=sample.private_type, key='color')


# Services


@example_for('PUT /v2/services/enable', 'PUT /v2/services/disable')
def service(sample):
    return request_args(SERVICE)


@example_for('POST /v2/services/ensure-shares')
def ensure_shares(sample):
    sample.clear_ensuring()
    return request_args({'ensure_shares': {'host': SERVICE['host']}})


# Quotas

_QUOTA = '/v2/quota-sets/{project_id}'
_CLASS = '/v2/quota-class-sets/{class}'


@example_for(
    f'GET {_QUOTA}',
    f'GET {_QUOTA}/defaults',
    f'GET {_QUOTA}/detail',
    f'DELETE {_QUOTA}',
)
def quota_set(sample):
    return request_args(project_id=TENANT)


@example_for(f'PUT {_QUOTA}')
def change_quota_set(sample):
    return request_args({'quota_set': {'snapshots': 70000}}, project_id=TENANT)


@example_for(f'GET {_CLASS}')
def quota_class(sample):
    return request_args(**{'class': 'default'})


@example_for(f'PUT {_CLASS}')
def change_quota_class(sample):
    return request_args(
        {'quota_class_set': {'snapshots': 70000}}, **{'class': 'default'}
    )


# Messages


@example_for('GET /v2/messages/{id}')
def message(sample):
    return request_args(id=sample.message)


@example_for('DELETE /v2/messages/{id}')
def message_to_delete(sample):
    return request_args(id=sample.new_message())


# Resource locks


@example_for('POST /v2/resource-locks')
def create_lock(sample):
    return request_args(sample.lock_body())


@example_for('GET /v2/resource-locks/{id}', 'DELETE /v2/resource-locks/{id}')
def lock(sample):
    return request_args(id=sample.new_lock())


@example_for('PUT /v2/resource-locks/{id}')
def change_lock(sample):
    return request_args(
        {'resource_lock': {'lock_reason': 'it is ours'}}, id=sample.new_lock()
    )


# Access rules

_RULE = '/v2/share-access-rules/{id}'


@example_for(f'{_ACTION} allow_access')
def allow(sample):
    return request_args(sample.rule_body(), id=sample.locked_share)


@example_for(f'{_ACTION} deny_access')
def deny(sample):
    return request_args(
        {'access_id': sample.new_rule()}, id=sample.locked_share
    )


@example_for(f'{_ACTION} access_list')
def access_list(sample):
    return request_args(id=sample.locked_share)


@example_for('GET /v2/share-access-rules')
def rules_of_share(sample):
    return request_args(query=f'?share_id={sample.locked_share}')


@example_for(f'GET {_RULE}')
def rule(sample):
    return request_args(id=sample.new_rule())


@example_for(f'PUT {_RULE}')
def change_rule(sample):
    return request_args(
        {'update_access': {'access_level': 'ro'}}, id=sample.new_rule()
    )


@example_for(f'PUT {_RULE}/metadata')
def rule_metadata(sample):
    return request_args(_VALUES, id=sample.new_rule())


@example_for(f'DELETE {_RULE}/metadata/{{key}}')
def rule_metadata_item(sample):
    id = sample.new_rule()
    sample.member.request(
        'PUT', f'/share-access-rules/{id}/metadata', _VALUES, expect=200
    )
    return request_args(id=id, key='color')
