"""Share networks, their subnets, security services and share servers."""

from manila_lite.policies import base

_NETWORK_LISTS = ('GET /v2/share-networks', 'GET /v2/share-networks/detail')
_NETWORK_ACTION = 'POST /v2/share-networks/{id}/action'
_SUBNETS = '/v2/share-networks/{id}/subnets'
_SUBNET = f'{_SUBNETS}/{{sid}}'
_SUBNET_METADATA = f'{_SUBNET}/metadata'
_SERVER = '/v2/share-servers/{id}'
_SERVER_ACTION = f'POST {_SERVER}/action'

RULES = [
    # Share networks
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
        _NETWORK_ACTION,
    ),
    base.member(
        'share_network:add_security_service_check',
        'Check whether a security service can be added to a share network in use.',
        _NETWORK_ACTION,
    ),
    base.member(
        'share_network:remove_security_service',
        'Remove a security service from a share network.',
        _NETWORK_ACTION,
    ),
    base.member(
        'share_network:update_security_service',
        'Replace a security service of a share network.',
        _NETWORK_ACTION,
    ),
    base.member(
        'share_network:update_security_service_check',
        'Check whether a security service of a share network in use can be replaced.',
        _NETWORK_ACTION,
    ),
    base.admin(
        'share_network:reset_status',
        'Set the status of a share network.',
        _NETWORK_ACTION,
    ),
    base.admin(
        'share_network:get_all_share_networks',
        'List share networks of all projects.',
        *_NETWORK_LISTS,
    ),
    base.member(
        'share_network:subnet_create_check',
        'Check whether a subnet can be added to a share network in use.',
        _NETWORK_ACTION,
    ),
    base.admin(
        'share_network:show_network_details',
        'Show network type and segmentation id of share networks.',
        *_NETWORK_LISTS,
        'GET /v2/share-networks/{id}',
        deprecated=None,
    ),
    # Share network subnets
    base.member(
        'share_network_subnet:create',
        'Create a subnet of a share network.',
        f'POST {_SUBNETS}',
    ),
    base.member(
        'share_network_subnet:delete',
        'Delete a subnet of a share network.',
        f'DELETE {_SUBNET}',
    ),
    base.reader(
        'share_network_subnet:show',
        'Show a subnet of a share network.',
        f'GET {_SUBNET}',
    ),
    base.reader(
        'share_network_subnet:index',
        'List the subnets of a share network.',
        f'GET {_SUBNETS}',
    ),
    base.member(
        'share_network_subnet:update_metadata',
        'Change metadata of a subnet.',
        f'PUT {_SUBNET_METADATA}',
        f'POST {_SUBNET_METADATA}',
        f'POST {_SUBNET_METADATA}/{{key}}',
        scopes=base.ANY_SCOPE,
    ),
    base.member(
        'share_network_subnet:delete_metadata',
        'Delete metadata of a subnet.',
        f'DELETE {_SUBNET_METADATA}/{{key}}',
        scopes=base.ANY_SCOPE,
    ),
    base.reader(
        'share_network_subnet:get_metadata',
        'Show metadata of a subnet.',
        f'GET {_SUBNET_METADATA}',
        f'GET {_SUBNET_METADATA}/{{key}}',
        scopes=base.ANY_SCOPE,
    ),
    # Security services
    base.member(
        'security_service:create',
        'Create a security service.',
        'POST /v2/security-services',
    ),
    base.reader(
        'security_service:show',
        'Show a security service.',
        'GET /v2/security-services/{id}',
    ),
    base.reader(
        'security_service:detail',
        'List security services in detail.',
        'GET /v2/security-services/detail',
    ),
    base.reader(
        'security_service:index', 'List security services.', 'GET /v2/security-services'
    ),
    base.member(
        'security_service:update',
        'Change a security service.',
        'PUT /v2/security-services/{id}',
    ),
    base.member(
        'security_service:delete',
        'Delete a security service.',
        'DELETE /v2/security-services/{id}',
    ),
    base.admin(
        'security_service:get_all_security_services',
        'List security services of all projects.',
        'GET /v2/security-services',
        'GET /v2/security-services/detail',
    ),
    # Share servers
    base.admin('share_server:index', 'List share servers.', 'GET /v2/share-servers'),
    base.admin('share_server:show', 'Show a share server.', f'GET {_SERVER}'),
    base.admin(
        'share_server:details',
        'Show the driver details of a share server.',
        f'GET {_SERVER}/details',
    ),
    base.admin('share_server:delete', 'Delete a share server.', f'DELETE {_SERVER}'),
    base.admin(
        'share_server:manage_share_server',
        'Manage a share server that exists on a back end.',
        'POST /v2/share-servers/manage',
    ),
    base.admin(
        'share_server:unmanage_share_server',
        'Unmanage a share server; it stays on the back end.',
        _SERVER_ACTION,
    ),
    base.admin(
        'share_server:reset_status', 'Set the status of a share server.', _SERVER_ACTION
    ),
    base.admin(
        'share_server:share_server_migration_start',
        'Migrate a share server to another back end.',
        _SERVER_ACTION,
    ),
    base.admin(
        'share_server:share_server_migration_check',
        'Check whether a share server can be migrated.',
        _SERVER_ACTION,
    ),
    base.admin(
        'share_server:share_server_migration_complete',
        'Start the second phase of a share server migration.',
        _SERVER_ACTION,
    ),
    base.admin(
        'share_server:share_server_migration_cancel',
        'Cancel the migration of a share server.',
        _SERVER_ACTION,
    ),
    base.admin(
        'share_server:share_server_migration_get_progress',
        'Show the progress of a share server migration.',
        _SERVER_ACTION,
    ),
    base.admin(
        'share_server:share_server_reset_task_state',
        'Set the task state of a share server.',
        _SERVER_ACTION,
    ),
]
