"""Who may do what with share networks."""

from manila_lite.policies import base

_LIST = ('GET /v2/share-networks', 'GET /v2/share-networks/detail')
_ACTION = 'POST /v2/share-networks/{id}/action'

RULES = [
    base.member(
        'share_network:create',
        'Create a share network.',
        'POST /v2/share-networks',
    ),
    base.reader(
        'share_network:show',
        'Show a share network.',
        'GET /v2/share-networks/{id}',
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
        'share_network:update',
        'Change a share network.',
        'PUT /v2/share-networks/{id}',
    ),
    base.member(
        'share_network:delete',
        'Delete a share network.',
        'DELETE /v2/share-networks/{id}',
    ),
    base.member(
        'share_network:add_security_service',
        'Have a share network use a security service.',
        _ACTION,
    ),
    base.member(
        'share_network:add_security_service_check',
        'Ask whether a used share network could use a security service.',
        _ACTION,
    ),
    base.member(
        'share_network:remove_security_service',
        'Have a share network no longer use a security service.',
        _ACTION,
    ),
    base.member(
        'share_network:update_security_service',
        'Replace a security service of a share network.',
        _ACTION,
    ),
    base.member(
        'share_network:update_security_service_check',
        'Ask whether a security service of a used share network '
        'could be replaced.',
        _ACTION,
    ),
    base.admin(
        'share_network:reset_status',
        'Set the status of a share network.',
        _ACTION,
    ),
    base.admin(
        'share_network:get_all_share_networks',
        'List share networks of all projects.',
        *_LIST,
    ),
    base.member(
        'share_network:subnet_create_check',
        'Ask whether a used share network could have one more subnet.',
        _ACTION,
    ),
    base.admin(
        'share_network:show_network_details',
        'See the type and the segmentation id of networks.',
        *_LIST,
        'GET /v2/share-networks/{id}',
        deprecated=None,
    ),
]
