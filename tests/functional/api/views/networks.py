"""Requests that show the views of share networks and security services."""

from tests.functional.api import published_api
from tests.functional.api.samples.networks import NEUTRON
from tests.functional.api.views.registry import (
    register_get_view,
    register_view,
    register_wrapper_view,
)

_ALL = 'all_tenants=1'


def _network(sample):
    return f'/share-networks/{sample.network}'


def _subnets(sample):
    return f'{_network(sample)}/subnets'


def _subnet(sample):
    return f'{_subnets(sample)}/{sample.subnet}'


register_get_view(
    'networks',
    'share_networks',
    f'/share-networks?{_ALL}',
    'share network',
    'list item (summary)',
)
register_get_view(
    'networks in detail',
    'share_networks',
    f'/share-networks/detail?{_ALL}',
    'share network',
    'detail',
)
register_get_view('network', 'share_network', _network, 'share network', 'detail')


@register_view('network create', 'share network', 'detail')
def created(sample, api, minor):
    return [
        api.request(
            'POST',
            '/share-networks',
            {'share_network': {**NEUTRON}},
            expect=200,
            version=published_api.version_text(minor),
        ).json['share_network']
    ]


@register_view('network update', 'share network', 'detail')
def updated(sample, api, minor):
    return [
        api.request(
            'PUT',
            _network(sample),
            {'share_network': {'name': 'other'}},
            expect=200,
            version=published_api.version_text(minor),
        ).json['share_network']
    ]


@register_view('network add and remove service', 'share network', 'detail')
def changed(sample, api, minor):
    id = sample.new_network()
    return [
        api.request(
            'POST',
            f'/share-networks/{id}/action',
            {name: {'security_service_id': sample.security_service}},
            expect=200,
            version=published_api.version_text(minor),
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
            version=published_api.version_text(minor),
        ).json
    ]


@register_view('network replace service', 'share network', 'detail', since=63)
def replaced(sample, api, minor):
    id = sample.new_network()
    return [
        _checked(
            api, minor, id, 'update_security_service', sample.service_replacement(id)
        )[0]['share_network']
    ]


@register_view(
    'check of a service, unused network',
    'share network',
    'security service check',
    since=63,
)
def added_unused(sample, api, minor):
    return _checked(
        api,
        minor,
        sample.new_network(),
        'add_security_service_check',
        {'security_service_id': sample.security_service},
    )


# No back end has replied yet.
_PENDING = {
    'boolean|null': 'null',
    'object host -> boolean|null': 'object host -> null',
}


@register_view(
    'check of another service',
    'share network',
    'security service check',
    since=63,
    types=_PENDING,
)
def replaced_used(sample, api, minor):
    return _checked(
        api,
        minor,
        sample.used_network,
        'update_security_service_check',
        {
            'current_service_id': sample.used_security_service,
            'new_service_id': sample.new_security_service(),
        },
    )


@register_view(
    'check of a subnet',
    'share network',
    'subnet create check',
    since=70,
    types=_PENDING | {'object': 'object host -> null'},
)
def subnet_used(sample, api, minor):
    return _checked(
        api, minor, sample.used_network, 'share_network_subnet_create_check', {}
    )


register_get_view(
    'subnets',
    'share_network_subnets',
    _subnets,
    'share network subnet',
    'detail and list item',
    since=51,
)
register_get_view(
    'subnet',
    'share_network_subnet',
    _subnet,
    'share network subnet',
    'detail and list item',
    since=51,
)


@register_view(
    'subnet create', 'share network subnet', 'detail and list item', since=51
)
def subnet_created(sample, api, minor):
    return [
        api.request(
            'POST',
            f'/share-networks/{sample.new_network()}/subnets',
            {'share-network-subnet': {'availability_zone': 'nova'}},
            expect=200,
            version=published_api.version_text(minor),
        ).json['share_network_subnet']
    ]


register_wrapper_view(
    'subnet metadata',
    lambda sample: f'{_subnet(sample)}/metadata',
    'metadata',
    'all kinds',
    since=78,
)

register_get_view(
    'services',
    'security_services',
    f'/security-services?{_ALL}',
    'security service',
    'summary',
)
register_get_view(
    'services in detail',
    'security_services',
    f'/security-services/detail?{_ALL}',
    'security service',
    'detail',
    'detail list',
)
register_get_view(
    'service',
    'security_service',
    lambda sample: f'/security-services/{sample.security_service}',
    'security service',
    'detail',
)


@register_view('service create', 'security service', 'detail')
def service_created(sample, api, minor):
    return [
        api.request(
            'POST',
            '/security-services',
            {'security_service': {'type': 'ldap', 'ou': 'CN=Computers'}},
            expect=200,
            version=published_api.version_text(minor),
        ).json['security_service']
    ]


@register_view('service update', 'security service', 'detail')
def service_updated(sample, api, minor):
    return [
        api.request(
            'PUT',
            f'/security-services/{sample.security_service}',
            {'security_service': {'user': 'other'}},
            expect=200,
            version=published_api.version_text(minor),
        ).json['security_service']
    ]
