"""Where the views of share networks and security services are seen."""

from tests.functional.api import published_api as published
from tests.functional.api.sample_networks import NEUTRON
from tests.functional.api.views import around
from tests.functional.api.views import in_get
from tests.functional.api.views import seen

_ALL = 'all_tenants=1'


def _network(world):
    return f'/share-networks/{world.network}'


def _subnets(world):
    return f'{_network(world)}/subnets'


def _subnet(world):
    return f'{_subnets(world)}/{world.subnet}'


in_get(
    'networks',
    'share_networks',
    f'/share-networks?{_ALL}',
    'share network',
    'list item (summary)',
)
in_get(
    'networks in detail',
    'share_networks',
    f'/share-networks/detail?{_ALL}',
    'share network',
    'detail',
)
in_get('network', 'share_network', _network, 'share network', 'detail')


@seen('network create', 'share network', 'detail')
def created(world, api, minor):
    return [
        api.request(
            'POST',
            '/share-networks',
            {'share_network': {**NEUTRON}},
            expect=200,
            version=published.text(minor),
        ).json['share_network']
    ]


@seen('network update', 'share network', 'detail')
def updated(world, api, minor):
    return [
        api.request(
            'PUT',
            _network(world),
            {'share_network': {'name': 'other'}},
            expect=200,
            version=published.text(minor),
        ).json['share_network']
    ]


@seen('network with a service more, and less', 'share network', 'detail')
def changed(world, api, minor):
    id = world.new_network()
    return [
        api.request(
            'POST',
            f'/share-networks/{id}/action',
            {name: {'security_service_id': world.service}},
            expect=200,
            version=published.text(minor),
        ).json['share_network']
        for name in ('add_security_service', 'remove_security_service')
    ]


def _checked(api, minor, network_id, action, body):
    return [
        api.request(
            'POST',
            f'/share-networks/{network_id}/action',
            {action: body},
            expect=202,
            version=published.text(minor),
        ).json
    ]


@seen('network with another service', 'share network', 'detail', since=63)
def replaced(world, api, minor):
    id = world.new_network()
    return [
        _checked(
            api, minor, id, 'update_security_service', world.two_services(id)
        )[0]['share_network']
    ]


@seen(
    'check of a service, network not in use',
    'share network',
    'security service check',
    since=63,
)
def added_unused(world, api, minor):
    return _checked(
        api,
        minor,
        world.new_network(),
        'add_security_service_check',
        {'security_service_id': world.service},
    )


# Nobody has answered yet.
_PENDING = {
    'boolean|null': 'null',
    'object host -> boolean|null': 'object host -> null',
}


@seen(
    'check of another service',
    'share network',
    'security service check',
    since=63,
    types=_PENDING,
)
def replaced_used(world, api, minor):
    return _checked(
        api,
        minor,
        world.used_network,
        'update_security_service_check',
        {
            'current_service_id': world.used_service,
            'new_service_id': world.new_service(),
        },
    )


@seen(
    'check of a subnet',
    'share network',
    'subnet create check',
    since=70,
    types=_PENDING | {'object': 'object host -> null'},
)
def subnet_used(world, api, minor):
    return _checked(
        api, minor, world.used_network, 'share_network_subnet_create_check', {}
    )


in_get(
    'subnets',
    'share_network_subnets',
    _subnets,
    'share network subnet',
    'detail and list item',
    since=51,
)
in_get(
    'subnet',
    'share_network_subnet',
    _subnet,
    'share network subnet',
    'detail and list item',
    since=51,
)


@seen(
    'subnet create', 'share network subnet', 'detail and list item', since=51
)
def subnet_created(world, api, minor):
    return [
        api.request(
            'POST',
            f'/share-networks/{world.new_network()}/subnets',
            {'share-network-subnet': {'availability_zone': 'nova'}},
            expect=200,
            version=published.text(minor),
        ).json['share_network_subnet']
    ]


around(
    'subnet metadata',
    lambda world: f'{_subnet(world)}/metadata',
    'metadata',
    'all kinds',
    since=78,
)

in_get(
    'services',
    'security_services',
    f'/security-services?{_ALL}',
    'security service',
    'summary',
)
in_get(
    'services in detail',
    'security_services',
    f'/security-services/detail?{_ALL}',
    'security service',
    'detail',
    'detail list',
)
in_get(
    'service',
    'security_service',
    lambda world: f'/security-services/{world.service}',
    'security service',
    'detail',
)


@seen('service create', 'security service', 'detail')
def service_created(world, api, minor):
    return [
        api.request(
            'POST',
            '/security-services',
            {'security_service': {'type': 'ldap', 'ou': 'CN=Computers'}},
            expect=200,
            version=published.text(minor),
        ).json['security_service']
    ]


@seen('service update', 'security service', 'detail')
def service_updated(world, api, minor):
    return [
        api.request(
            'PUT',
            f'/security-services/{world.service}',
            {'security_service': {'user': 'other'}},
            expect=200,
            version=published.text(minor),
        ).json['security_service']
    ]
