"""Valid requests about types, services, quotas and messages."""

from tests.functional.api.examples.registry import example_for
from tests.functional.api.samples.cloud import SERVICE
from tests.functional.api.samples.requests import TENANT, request_args

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
    return request_args({'share_type': {'description': 'new'}}, id=sample.minimal_type)


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
    return request_args({'extra_specs': {'color': 'blue'}}, id=sample.private_type)


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


# Share group types

_GROUP_TYPE = '/v2/share-group-types/{id}'
_GROUP_SPECS = f'{_GROUP_TYPE}/group-specs'


@example_for('POST /v2/share-group-types')
def create_group_type(sample):
    return request_args(sample.group_type_body())


@example_for(f'GET {_GROUP_TYPE}', f'GET {_GROUP_SPECS}', f'GET {_GROUP_TYPE}/access')
def group_type(sample):
    return request_args(id=sample.private_group_type)


@example_for(f'DELETE {_GROUP_TYPE}')
def unused_group_type(sample):
    return request_args(id=sample.new_group_type())


@example_for(f'POST {_GROUP_TYPE}/action addProjectAccess')
def add_group_type_access(sample):
    return request_args({'project': TENANT}, id=sample.new_group_type())


@example_for(f'POST {_GROUP_TYPE}/action removeProjectAccess')
def remove_group_type_access(sample):
    id = sample.new_group_type()
    sample.grant_type_access(id, TENANT, '/share-group-types')
    return request_args({'project': TENANT}, id=id)


@example_for(f'POST {_GROUP_SPECS}')
def new_group_specs(sample):
    return request_args(
        {'group_specs': {'color': 'blue'}}, id=sample.private_group_type
    )


@example_for(f'GET {_GROUP_SPECS}/{{key}}', f'DELETE {_GROUP_SPECS}/{{key}}')
def group_spec(sample):
    sample.admin.request(
        'POST',
        f'/share-group-types/{sample.private_group_type}/group-specs',
        {'group_specs': {'color': 'blue'}},
        expect=200,
    )
    return request_args(id=sample.private_group_type, key='color')


@example_for(f'PUT {_GROUP_SPECS}/{{key}}')
def change_group_spec(sample):
    return request_args({'color': 'red'}, id=sample.private_group_type, key='color')


# QoS types

_QOS_TYPE = '/v2/qos-types/{id}'
_QOS_SPECS = f'{_QOS_TYPE}/specs'


@example_for('POST /v2/qos-types')
def create_qos_type(sample):
    return request_args(sample.qos_type_body())


@example_for(f'GET {_QOS_TYPE}', f'DELETE {_QOS_TYPE}', f'GET {_QOS_SPECS}')
def qos_type(sample):
    return request_args(id=sample.new_qos_type())


@example_for(f'PUT {_QOS_TYPE}')
def update_qos_type(sample):
    return request_args({'qos_type': {'description': 'new'}}, id=sample.new_qos_type())


@example_for(f'POST {_QOS_SPECS}')
def new_qos_specs(sample):
    return request_args({'specs': {'color': 'blue'}}, id=sample.new_qos_type())


@example_for(f'GET {_QOS_SPECS}/{{key}}', f'DELETE {_QOS_SPECS}/{{key}}')
def qos_spec(sample):
    return request_args(id=sample.new_qos_type(), key='peak_iops')


@example_for(f'PUT {_QOS_SPECS}/{{key}}')
def change_qos_spec(sample):
    return request_args(
        {'peak_iops': '7000'}, id=sample.new_qos_type(), key='peak_iops'
    )


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
