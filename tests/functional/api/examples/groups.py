"""Valid requests about share groups and their snapshots."""

from tests.functional.api.examples.registry import example_for
from tests.functional.api.samples.requests import request_args

_GROUP = '/v2/share-groups/{id}'


@example_for('GET /v2/share-groups', 'GET /v2/share-groups/detail')
def list_groups(sample):
    return request_args()


@example_for('POST /v2/share-groups')
def create_group(sample):
    return request_args(sample.group_body())


@example_for(f'GET {_GROUP}', f'DELETE {_GROUP}', f'POST {_GROUP}/action force_delete')
def group(sample):
    return request_args(id=sample.new_group())


@example_for(f'PUT {_GROUP}')
def update_group(sample):
    return request_args(
        {'share_group': {'name': 'photos', 'description': 'of 2026'}},
        id=sample.new_group(),
    )


@example_for(f'POST {_GROUP}/action reset_status')
def reset_group(sample):
    return request_args({'status': 'error'}, id=sample.new_group())


_SNAPSHOTS = '/v2/share-group-snapshots'
_SNAPSHOT = f'{_SNAPSHOTS}/{{id}}'


@example_for(f'GET {_SNAPSHOTS}', f'GET {_SNAPSHOTS}/detail')
def list_snapshots(sample):
    return request_args()


@example_for(f'POST {_SNAPSHOTS}')
def create_snapshot(sample):
    return request_args(sample.group_snapshot_body())


@example_for(
    f'GET {_SNAPSHOT}',
    f'GET {_SNAPSHOT}/members',
    f'DELETE {_SNAPSHOT}',
    f'POST {_SNAPSHOT}/action force_delete',
)
def snapshot(sample):
    return request_args(id=sample.new_group_snapshot())


@example_for(f'PUT {_SNAPSHOT}')
def update_snapshot(sample):
    return request_args(
        {'share_group_snapshot': {'name': 'tuesday', 'description': 'late'}},
        id=sample.new_group_snapshot(),
    )


@example_for(f'POST {_SNAPSHOT}/action reset_status')
def reset_snapshot(sample):
    return request_args({'status': 'error'}, id=sample.new_group_snapshot())
