"""Examples and refusals of share networks and security services."""

from tests.functional.api import error_cases as refusals
from tests.functional.api.error_cases import UNKNOWN
from tests.functional.api.error_cases import Refused
from tests.functional.api.examples import of
from tests.functional.api.sample_cloud import FOREIGN
from tests.functional.api.sample_cloud import given
from tests.functional.api.sample_networks import NEUTRON

_NETWORKS = '/v2/share-networks'
_NETWORK = f'{_NETWORKS}/{{id}}'
_ACTION = f'POST {_NETWORK}/action'
_SUBNETS = f'{_NETWORK}/subnets'
_SUBNET = f'{_SUBNETS}/{{sid}}'
_METADATA = f'{_SUBNET}/metadata'
_SERVICES = '/v2/security-services'
_SERVICE = f'{_SERVICES}/{{id}}'
_VALUES = {'metadata': {'color': 'blue'}}


@of(
    f'GET {_NETWORKS}',
    f'GET {_NETWORKS}/detail',
    f'GET {_SERVICES}',
    f'GET {_SERVICES}/detail',
)
def collection(world):
    return given()


@of(f'POST {_NETWORKS}')
def create(world):
    return given({'share_network': {'name': 'new', **NEUTRON}})


@of(f'GET {_NETWORK}', f'GET {_SUBNETS}')
def network(world):
    return given(id=world.network)


@of(f'PUT {_NETWORK}')
def update(world):
    return given(
        {'share_network': {'name': 'other', 'description': 'new'}},
        id=world.network,
    )


@of(f'DELETE {_NETWORK}')
def unused(world):
    return given(id=world.new_network())


@of(f'{_ACTION} add_security_service')
def add_service(world):
    return given(
        {'security_service_id': world.service}, id=world.new_network()
    )


@of(f'{_ACTION} remove_security_service')
def remove_service(world):
    id = world.new_network()
    world.on_network(
        id, 'add_security_service', security_service_id=world.service
    )
    return given({'security_service_id': world.service}, id=id)


@of(f'{_ACTION} add_security_service_check')
def add_service_check(world):
    return given(
        {
            'security_service_id': world.new_service(type='kerberos'),
            'reset_operation': True,
        },
        id=world.used_network,
    )


@of(f'{_ACTION} update_security_service')
def update_service_of_network(world):
    id = world.new_network()
    return given(world.two_services(id), id=id)


@of(f'{_ACTION} update_security_service_check')
def update_service_check(world):
    return given(
        {
            'current_service_id': world.used_service,
            'new_service_id': world.new_service(),
            'reset_operation': False,
        },
        id=world.used_network,
    )


@of(f'{_ACTION} share_network_subnet_create_check')
def create_subnet_check(world):
    return given({**NEUTRON, 'reset_operation': False}, id=world.used_network)


@of(f'{_ACTION} reset_status')
def reset_status(world):
    return given({'status': 'error'}, id=world.new_network())


# Subnets


@of(f'POST {_SUBNETS}')
def create_subnet(world):
    return given(
        {'share-network-subnet': {'availability_zone': 'nova', **NEUTRON}},
        id=world.new_network(),
    )


@of(f'GET {_SUBNET}', f'GET {_METADATA}')
def subnet(world):
    return given(id=world.network, sid=world.subnet)


@of(f'DELETE {_SUBNET}')
def unused_subnet(world):
    return given(id=world.network, sid=world.new_subnet())


@of(f'POST {_METADATA}', f'PUT {_METADATA}')
def metadata(world):
    return given(_VALUES, id=world.network, sid=world.subnet)


@of(f'GET {_METADATA}/{{key}}', f'DELETE {_METADATA}/{{key}}')
def metadata_item(world):
    world.member.request(
        'POST',
        f'/share-networks/{world.network}/subnets/{world.subnet}/metadata',
        _VALUES,
        expect=200,
    )
    return given(id=world.network, sid=world.subnet, key='color')


@of(f'POST {_METADATA}/{{key}}')
def new_metadata_item(world):
    return given(_VALUES, id=world.network, sid=world.subnet, key='color')


# Security services


@of(f'POST {_SERVICES}')
def create_service(world):
    return given(
        {
            'security_service': {
                'type': 'active_directory',
                'name': 'new',
                'password': 'secret',
            }
        }
    )


@of(f'GET {_SERVICE}')
def service(world):
    return given(id=world.service)


@of(f'PUT {_SERVICE}')
def update_service(world):
    return given(
        {'security_service': {'name': 'other', 'dns_ip': '::1'}},
        id=world.service,
    )


@of(f'DELETE {_SERVICE}')
def unused_service(world):
    return given(id=world.new_service())


# Refusals


@refusals.of(400, f'GET {_NETWORKS}', f'GET {_NETWORKS}/detail')
def wordy_limit(world):
    return Refused(given(query='?limit=all'))


@refusals.of(413, f'POST {_NETWORKS}')
def above_the_quota(world):
    world.admin.request(
        'PUT',
        f'/quota-sets/{FOREIGN}',
        {'quota_set': {'share_networks': 0}},
        expect=200,
    )
    return Refused(create(world), {'by': 'foreign'})


@refusals.of(409, f'DELETE {_NETWORK}')
def network_of_two_subnets(world):
    id = world.new_network()
    world.new_subnet(id)
    return Refused(given(id=id))


@refusals.of(409, f'{_ACTION} add_security_service')
def second_service_of_a_type(world):
    return Refused(
        given({'security_service_id': world.attached}, id=world.network)
    )


@refusals.of(409, f'{_ACTION} add_security_service_check')
def check_of_a_second_service_of_a_type(world):
    return Refused(
        given({'security_service_id': world.service}, id=world.used_network)
    )


@refusals.of(
    409,
    f'{_ACTION} update_security_service',
    f'{_ACTION} update_security_service_check',
)
def service_of_another_type(world):
    services = {
        'current_service_id': world.used_service,
        'new_service_id': world.attached,
    }
    return Refused(given(services, id=world.used_network))


@refusals.of(409, f'{_ACTION} share_network_subnet_create_check')
def check_of_the_same_subnet_again(world):
    return Refused(given(NEUTRON, id=world.network))


@refusals.of(409, f'POST {_SUBNETS}')
def the_same_subnet_again(world):
    return Refused(given({'share-network-subnet': NEUTRON}, id=world.network))


@refusals.of(409, f'DELETE {_SUBNET}')
def subnet_in_use(world):
    return Refused(given(id=world.used_network, sid=world.used_subnet))


@refusals.of(404, f'GET {_SERVICES}')
def services_of_unknown_network(world):
    return Refused(given(query=f'?share_network_id={UNKNOWN}'))
