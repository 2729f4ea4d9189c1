"""Valid requests about shares and share instances."""

from tests.functional.api.examples.registry import example_for
from tests.functional.api.samples.requests import request_args

_ACTION = 'POST /v2/shares/{id}/action'
_INSTANCE_ACTION = 'POST /v2/share_instances/{id}/action'
_EXPORT = '/v2/shares/{id}/export_locations/{el}'
_VALUES = {'metadata': {'color': 'blue'}}


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
    'DELETE /v2/shares/{id}', f'{_ACTION} force_delete', f'{_ACTION} soft_delete'
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
    'GET /v2/shares/{id}/metadata/{key}', 'DELETE /v2/shares/{id}/metadata/{key}'
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
    'GET /v2/share_instances/{id}', 'GET /v2/share_instances/{id}/export_locations'
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
    return request_args({'status': 'error'}, id=sample.instance_of(sample.idle_share()))


# Export locations


@example_for('GET /v2/shares/{id}/export_locations')
def exports(sample):
    return request_args(id=sample.share)


@example_for(f'GET {_EXPORT}', f'GET {_EXPORT}/metadata')
def export(sample):
    return request_args(id=sample.share, el=sample.export_of(sample.share))


@example_for(f'POST {_EXPORT}/metadata', f'PUT {_EXPORT}/metadata')
def export_metadata(sample):
    return request_args(_VALUES, id=sample.share, el=sample.export_of(sample.share))


@example_for(f'GET {_EXPORT}/metadata/{{key}}', f'DELETE {_EXPORT}/metadata/{{key}}')
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
        _VALUES, id=sample.share, el=sample.export_of(sample.share), key='color'
    )
