"""Routes of share networks, their subnets, and security services."""

from manila_lite.api import wsgi
from manila_lite.api.router import ACTION
from manila_lite.api.router import Route
from manila_lite.api.v2.networks import actions as share_network_actions
from manila_lite.api.v2.networks import security_services
from manila_lite.api.v2.networks import share_networks
from manila_lite.api.v2.networks import (
    subnet_metadata as share_network_subnet_metadata,
)
from manila_lite.api.v2.networks import subnets as share_network_subnets

CONTROLLERS: dict[str, type[wsgi.Controller]] = {
    'share_networks': share_networks.ShareNetworksController,
    'share_network_actions': (
        share_network_actions.ShareNetworkActionsController
    ),
    'share_network_subnets': (
        share_network_subnets.ShareNetworkSubnetsController
    ),
    'share_network_subnet_metadata': (
        share_network_subnet_metadata.ShareNetworkSubnetMetadataController
    ),
    'security_services': security_services.SecurityServicesController,
}

_NETWORK = '/share-networks/{share_network_id}'
_SUBNETS = f'{_NETWORK}/subnets'
_SUBNET = f'{_SUBNETS}/{{subnet_id}}'
_METADATA = f'{_SUBNET}/metadata'
_TAGS = 'share_network_subnet_metadata'
_SERVICE = '/security-services/{security_service_id}'

# fmt: off
ROUTES = [
    Route('GET', '/share-networks', 'share_networks', 'index'),
    Route('GET', '/share-networks/detail', 'share_networks', 'detail'),
    Route('POST', '/share-networks', 'share_networks', 'create'),
    Route('GET', _NETWORK, 'share_networks', 'show'),
    Route('PUT', _NETWORK, 'share_networks', 'update'),
    Route('DELETE', _NETWORK, 'share_networks', 'delete'),
    Route('POST', f'{_NETWORK}/action', 'share_network_actions', ACTION),

    Route('GET', _SUBNETS, 'share_network_subnets', 'index', since='2.51',
          kind='free'),
    Route('POST', _SUBNETS, 'share_network_subnets', 'create', since='2.51',
          kind='free'),
    Route('GET', _SUBNET, 'share_network_subnets', 'show', since='2.51',
          kind='free'),
    Route('DELETE', _SUBNET, 'share_network_subnets', 'delete',
          since='2.51', kind='free'),

    Route('GET', _METADATA, _TAGS, 'index', since='2.78', kind='free'),
    Route('POST', _METADATA, _TAGS, 'create', since='2.78', kind='free'),
    Route('PUT', _METADATA, _TAGS, 'replace', since='2.78', kind='free'),
    Route('GET', f'{_METADATA}/{{key}}', _TAGS, 'show', since='2.78',
          kind='free'),
    Route('POST', f'{_METADATA}/{{key}}', _TAGS, 'create_one', since='2.78',
          kind='free'),
    Route('DELETE', f'{_METADATA}/{{key}}', _TAGS, 'delete', since='2.78',
          kind='free'),

    Route('GET', '/security-services', 'security_services', 'index'),
    Route('GET', '/security-services/detail', 'security_services',
          'detail'),
    Route('POST', '/security-services', 'security_services', 'create'),
    Route('GET', _SERVICE, 'security_services', 'show'),
    Route('PUT', _SERVICE, 'security_services', 'update'),
    Route('DELETE', _SERVICE, 'security_services', 'delete'),
]
# fmt: on
