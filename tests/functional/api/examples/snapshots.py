"""Valid requests about snapshots."""

from tests.functional.api.examples.registry import example_for
from tests.functional.api.samples.requests import request_args

_ACTION = 'POST /v2/shares/{id}/action'
_VALUES = {'metadata': {'color': 'blue'}}


# Snapshots

_SNAPSHOT = '/v2/snapshots/{id}'
_SNAPSHOT_ACTION = f'POST {_SNAPSHOT}/action'
_SNAPSHOT_INSTANCE = '/v2/snapshot-instances/{id}'


@example_for('POST /v2/snapshots')
def create_snapshot(sample):
    return request_args(
        {'snapshot': {'share_id': sample.idle_snapshot_source(), 'name': 'new'}}
    )


@example_for(f'{_ACTION} revert')
def revert(sample):
    return request_args(
        {'snapshot_id': sample.spare_snapshot}, id=sample.idle_snapshotted_share()
    )


@example_for(f'GET {_SNAPSHOT}', f'GET {_SNAPSHOT}/metadata')
def snapshot(sample):
    return request_args(id=sample.snapshot)


@example_for(f'PUT {_SNAPSHOT}')
def update_snapshot(sample):
    return request_args({'snapshot': {'display_name': 'new'}}, id=sample.snapshot)


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
        {'status': 'error'}, id=sample.instance_of_snapshot(sample.idle_snapshot())
    )


# Snapshot access rules and export locations


@example_for(f'{_SNAPSHOT_ACTION} allow_access')
def allow_to_mount(sample):
    return request_args(sample.rule_body(), id=sample.snapshot)


@example_for(f'{_SNAPSHOT_ACTION} deny_access')
def deny_to_mount(sample):
    return request_args({'access_id': sample.new_snapshot_rule()}, id=sample.snapshot)


@example_for(f'GET {_SNAPSHOT}/access-list', f'GET {_SNAPSHOT}/export-locations')
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
        id=sample.instance_of_snapshot(sample.snapshot), el=sample.export_of_snapshot()
    )
