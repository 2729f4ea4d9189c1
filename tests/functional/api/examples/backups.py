"""Valid requests about share backups."""

from tests.functional.api.examples.registry import example_for
from tests.functional.api.samples.requests import request_args

_ALL = '/v2/share-backups'
_ONE = f'{_ALL}/{{id}}'


@example_for(f'GET {_ALL}', f'GET {_ALL}/detail')
def list_backups(sample):
    return request_args()


@example_for(f'POST {_ALL}')
def create(sample):
    return request_args(sample.backup_body())


@example_for(f'GET {_ONE}', f'DELETE {_ONE}', f'POST {_ONE}/action restore')
def backup(sample):
    return request_args(id=sample.new_backup())


@example_for(f'PUT {_ONE}')
def update(sample):
    return request_args(
        {'share_backup': {'name': 'tuesday', 'description': 'late'}},
        id=sample.new_backup(),
    )


@example_for(f'POST {_ONE}/action reset_status')
def reset(sample):
    return request_args({'status': 'error'}, id=sample.new_backup())
