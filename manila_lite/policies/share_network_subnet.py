"""Policy rules of share network subnets and their metadata."""

from manila_lite.policies import base

_SUBNETS = '/v2/share-networks/{id}/subnets'
_SUBNET = f'{_SUBNETS}/{{sid}}'
_METADATA = f'{_SUBNET}/metadata'

RULES = [
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
        f'PUT {_METADATA}',
        f'POST {_METADATA}',
        f'POST {_METADATA}/{{key}}',
        scopes=base.ANY_SCOPE,
    ),
    base.member(
        'share_network_subnet:delete_metadata',
        'Delete metadata of a subnet.',
        f'DELETE {_METADATA}/{{key}}',
        scopes=base.ANY_SCOPE,
    ),
    base.reader(
        'share_network_subnet:get_metadata',
        'Show metadata of a subnet.',
        f'GET {_METADATA}',
        f'GET {_METADATA}/{{key}}',
        scopes=base.ANY_SCOPE,
    ),
]
