"""Policy rules of share networks."""

from manila_lite.policies import base

_LIST = ('GET /v2/share-networks', 'GET /v2/share-networks/detail')
_ACTION = 'POST /v2/share-networks/{id}/action'

RULES = [
    base.member(
        'share_network:create', 'Create a share network.', 'POST /v2/share-networks'
    ),
    base.reader(
        'share_network:show', 'Show a share network.', 'GET /v2/share-networks/{id}'
    ),
    base.reader(
        'share_network:index', 'List share networks.', 'GET /v2/share-networks'
    ),
    base.reader(
        'share_network:detail',
        'List share networks in detail.',
        'GET /v2/share-networks/detail',
    ),
    base.member(
        'share_network:update', 'Change a share network.', 'PUT /v2/share-networks/{id}'
    ),
    base.member(
        'share_network:delete',
        'Delete a share network.',
        'DELETE /v2/share-networks/{id}',
    ),
    base.member(
        'share_network:add_security_service',
        'Add a security service to a share network.',
        _ACTION,
    ),
    base.member(
        'share_network:add_security_service_check',
        'Check whether a security service can be added to a share network in use.',
        _ACTION,
    ),
    base.member(
        'share_network:remove_security_service',
        'Remove a security service from a share network.',
        _ACTION,
    ),
    base.member(
        'share_network:update_security_service',
        'Replace a security service of a share network.',
        _ACTION,
    ),
    base.member(
        'share_network:update_security_service_check',
        'Check whether a security service of a share network in use can be replaced.',
        _ACTION,
    ),
    base.admin(
        'share_network:reset_status', 'Set the status of a share network.', _ACTION
    ),
    base.admin(
        'share_network:get_all_share_networks',
        'List share networks of all projects.',
        *_LIST,
    ),
    base.member(
        'share_network:subnet_create_check',
        'Check whether a subnet can be added to a share network in use.',
        _ACTION,
    ),
    base.admin(
        'share_network:show_network_details',
        'Show network type and segmentation id of share networks.',
        *_LIST,
        'GET /v2/share-networks/{id}',
        deprecated=None,
    ),
]
