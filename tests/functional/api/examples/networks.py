"""Examples and error cases of share networks and security services."""

from tests.functional.api import error_cases
from tests.functional.api.error_cases import UNKNOWN, RefusedRequest
from tests.functional.api.examples.registry import example_for
from tests.functional.api.samples.cloud import DOWN_HOST
from tests.functional.api.samples.networks import NEUTRON
from tests.functional.api.samples.requests import FOREIGN, request_args

_NETWORKS = '/v2/share-networks'
_NETWORK = f'{_NETWORKS}/{{id}}'
_ACTION = f'POST {_NETWORK}/action'
_SUBNETS = f'{_NETWORK}/subnets'
_SUBNET = f'{_SUBNETS}/{{sid}}'
_METADATA = f'{_SUBNET}/metadata'
_SERVICES = '/v2/security-services'
_SERVICE = f'{_SERVICES}/{{id}}'
_VALUES = {'metadata': {'color': 'blue'}}


@example_for(
    f'GET {_NETWORKS}',
    f'GET {_NETWORKS}/detail',
    f'GET {_SERVICES}',
    f'GET {_SERVICES}/detail',
)
def collection(sample):
    return request_args()


@example_for(f'POST {_NETWORKS}')
def create(sample):
    return request_args({'share_network': {'name': 'new', **NEUTRON}})


@example_for(f'GET {_NETWORK}', f'GET {_SUBNETS}')
def network(sample):
    return request_args(id=sample.network)


@example_for(f'PUT {_NETWORK}')
def update(sample):
    return request_args(
        {'share_network': {'name': 'other', 'description': 'new'}}, id=sample.network
    )


@example_for(f'DELETE {_NETWORK}')
def unused(sample):
    return request_args(id=sample.new_network())


@example_for(f'{_ACTION} add_security_service')
def add_service(sample):
    return request_args(
        {'security_service_id': sample.security_service}, id=sample.new_network()
    )


@example_for(f'{_ACTION} remove_security_service')
def remove_service(sample):
    id = sample.new_network()
    sample.act_on_network(
        id, 'add_security_service', security_service_id=sample.security_service
    )
    return request_args({'security_service_id': sample.security_service}, id=id)


@example_for(f'{_ACTION} add_security_service_check')
def add_service_check(sample):
    return request_args(
        {
            'security_service_id': sample.new_security_service(type='kerberos'),
            'reset_operation': True,
        },
        id=sample.used_network,
    )


@example_for(f'{_ACTION} update_security_service')
def update_service_of_network(sample):
    id = sample.new_network()
    return request_args(sample.service_replacement(id), id=id)


@example_for(f'{_ACTION} update_security_service_check')
def update_service_check(sample):
    return request_args(
        {
            'current_service_id': sample.used_security_service,
            'new_service_id': sample.new_security_service(),
            'reset_operation': False,
        },
        id=sample.used_network,
    )


@example_for(f'{_ACTION} share_network_subnet_create_check')
def create_subnet_check(sample):
    return request_args({**NEUTRON, 'reset_operation': False}, id=sample.used_network)


@example_for(f'{_ACTION} reset_status')
def reset_status(sample):
    return request_args({'status': 'error'}, id=sample.new_network())


# Subnets


@example_for(f'POST {_SUBNETS}')
def create_subnet(sample):
    return request_args(
        {'share-network-subnet': {'availability_zone': 'nova', **NEUTRON}},
        id=sample.new_network(),
    )


@example_for(f'GET {_SUBNET}', f'GET {_METADATA}')
def subnet(sample):
    return request_args(id=sample.network, sid=sample.subnet)


@example_for(f'DELETE {_SUBNET}')
def unused_subnet(sample):
    return request_args(id=sample.network, sid=sample.new_subnet())


@example_for(f'POST {_METADATA}', f'PUT {_METADATA}')
def metadata(sample):
    return request_args(_VALUES, id=sample.network, sid=sample.subnet)


@example_for(f'GET {_METADATA}/{{key}}', f'DELETE {_METADATA}/{{key}}')
def metadata_item(sample):
    sample.member.request(
        'POST',
        f'/share-networks/{sample.network}/subnets/{sample.subnet}/metadata',
        _VALUES,
        expect=200,
    )
    return request_args(id=sample.network, sid=sample.subnet, key='color')


@example_for(f'POST {_METADATA}/{{key}}')
def new_metadata_item(sample):
    return request_args(_VALUES, id=sample.network, sid=sample.subnet, key='color')


# Security services


@example_for(f'POST {_SERVICES}')
def create_service(sample):
    return request_args(
        {
            'security_service': {
                'type': 'active_directory',
                'name': 'new',
                'password': 'secret',
            }
        }
    )


@example_for(f'GET {_SERVICE}')
def security_service(sample):
    return request_args(id=sample.security_service)


@example_for(f'PUT {_SERVICE}')
def update_service(sample):
    return request_args(
        {'security_service': {'name': 'other', 'dns_ip': '::1'}},
        id=sample.security_service,
    )


@example_for(f'DELETE {_SERVICE}')
def unused_service(sample):
    return request_args(id=sample.new_security_service())


# Error cases


@error_cases.register(400, f'GET {_NETWORKS}', f'GET {_NETWORKS}/detail')
def limit_that_is_no_number(sample):
    return RefusedRequest(request_args(query='?limit=all'))


@error_cases.register(413, f'POST {_NETWORKS}')
def above_the_quota(sample):
    sample.admin.request(
        'PUT',
        f'/quota-sets/{FOREIGN}',
        {'quota_set': {'share_networks': 0}},
        expect=200,
    )
    return RefusedRequest(create(sample), {'persona': 'foreign'})


@error_cases.register(409, f'DELETE {_NETWORK}')
def network_of_two_subnets(sample):
    id = sample.new_network()
    sample.new_subnet(id)
    return RefusedRequest(request_args(id=id))


@error_cases.register(409, f'{_ACTION} add_security_service')
def second_service_of_a_type(sample):
    return RefusedRequest(
        request_args(
            {'security_service_id': sample.attached_security_service}, id=sample.network
        )
    )


@error_cases.register(409, f'{_ACTION} add_security_service_check')
def check_of_a_second_service_of_a_type(sample):
    return RefusedRequest(
        request_args(
            {'security_service_id': sample.security_service}, id=sample.used_network
        )
    )


@error_cases.register(
    409,
    f'{_ACTION} update_security_service',
    f'{_ACTION} update_security_service_check',
)
def service_of_another_type(sample):
    services = {
        'current_service_id': sample.used_security_service,
        'new_service_id': sample.attached_security_service,
    }
    return RefusedRequest(request_args(services, id=sample.used_network))


@error_cases.register(409, f'{_ACTION} share_network_subnet_create_check')
def check_of_a_subnet_while_a_service_is_down(sample):
    return RefusedRequest(
        request_args(NEUTRON, id=_network_of_a_service_that_is_down(sample))
    )


@error_cases.register(409, f'POST {_SUBNETS}')
def subnet_while_a_service_is_down(sample):
    return RefusedRequest(
        request_args(
            {'share-network-subnet': NEUTRON},
            id=_network_of_a_service_that_is_down(sample),
        )
    )


def _network_of_a_service_that_is_down(sample):
    id = sample.new_network()
    sample.insert_server(id, sample.subnet_of(id), host=DOWN_HOST)
    return id


@error_cases.register(409, f'DELETE {_SUBNET}')
def subnet_in_use(sample):
    return RefusedRequest(request_args(id=sample.used_network, sid=sample.used_subnet))


@error_cases.register(404, f'GET {_SERVICES}')
def services_of_unknown_network(sample):
    return RefusedRequest(request_args(query=f'?share_network_id={UNKNOWN}'))
