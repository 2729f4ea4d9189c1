"""Policy rules of share transfers."""

import functools

from manila_lite.policies import base

_ONE = '/v2/share-transfers/{id}'

# As published, only the rule for all projects has a scope.
_member = functools.partial(base.member, scopes=base.NO_SCOPE)
_reader = functools.partial(base.reader, scopes=base.NO_SCOPE)

RULES = [
    _reader(
        'share_transfer:get_all',
        'List share transfers.',
        'GET /v2/share-transfers',
        'GET /v2/share-transfers/detail',
    ),
    base.admin(
        'share_transfer:get_all_tenant',
        'List share transfers of all projects.',
        'GET /v2/share-transfers',
        'GET /v2/share-transfers/detail',
    ),
    _member(
        'share_transfer:create',
        'Offer a share to another project.',
        'POST /v2/share-transfers',
    ),
    _reader('share_transfer:get', 'Show a share transfer.', f'GET {_ONE}'),
    _member(
        'share_transfer:accept',
        'Accept a share of another project.',
        f'POST {_ONE}/accept',
    ),
    _member('share_transfer:delete', 'Withdraw a share transfer.', f'DELETE {_ONE}'),
]
