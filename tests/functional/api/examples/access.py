"""Valid requests about access rules and resource locks."""

from tests.functional.api.examples.registry import example_for
from tests.functional.api.samples.requests import request_args

_ACTION = 'POST /v2/shares/{id}/action'
_VALUES = {'metadata': {'color': 'blue'}}


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
    return request_args({'access_id': sample.new_rule()}, id=sample.locked_share)


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
    return request_args({'update_access': {'access_level': 'ro'}}, id=sample.new_rule())


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
