"""What the query of a share network list means."""

import typing

from manila_lite import exception
from manila_lite.api import paging
from manila_lite.api import schema
from manila_lite.api import wsgi
from manila_lite.api.v2.networks.views import DETAILS_POLICY
from manila_lite.db.queries.networks import views as network_views

_OF_NETWORK = ('id', 'name', 'status', 'user_id')
_OF_SUBNET = (
    'neutron_net_id',
    'neutron_subnet_id',
    'cidr',
    'gateway',
    'availability_zone_id',
)
_NUMBERS = ('ip_version', 'mtu', 'segmentation_id')
_WITH_RIGHT = ('network_type', 'segmentation_id')
_LIKE = {'name~': 'name', 'description~': 'description'}

_number = schema.non_negative_int.at(0)


def parse(req: wsgi.Request) -> network_views.ShareNetworkFilter:
    """The filter a list query asks for, within the rights of the caller.

    Unknown keys are ignored (notes: Filters). What only some may see of
    networks, only they may ask for.
    """
    query = req.query
    wanted = network_views.ShareNetworkFilter(
        project_id=_project(req),
        created_since=paging.parse_time(query, 'created_since'),
        created_before=paging.parse_time(query, 'created_before'),
        security_service_id=query.get('security_service_id'),
        # The command line sends what it was given, an id or a name.
        security_service=query.get('security_service'),
    )
    for key in _WITH_RIGHT:
        if key in query:
            req.ctx.authorize(DETAILS_POLICY)
    wanted.network = {key: query[key] for key in _OF_NETWORK if key in query}
    wanted.subnet = {
        key: query[key]
        for key in (*_OF_SUBNET, 'network_type')
        if key in query
    }
    wanted.subnet |= {
        key: _parsed(query, key) for key in _NUMBERS if key in query
    }
    if req.minor >= 36:
        wanted.like = {
            column: query[key]
            for key, column in _LIKE.items()
            if query.get(key)
        }
        if 'description' in query:
            wanted.network['description'] = query['description']
    return wanted


def _project(req: wsgi.Request) -> str | None:
    """Whose networks are asked for; None for everybody's."""
    everybody = paging.parse_flag(req.query, 'all_tenants')
    if (everybody or 'project_id' in req.query) and req.ctx.can(
        'share_network:get_all_share_networks'
    ):
        return req.query.get('project_id')
    return req.ctx.project_id


def _parsed(query: typing.Mapping[str, str], key: str) -> int:
    try:
        return _number(query[key])
    except schema.ValidationError as refused:
        raise exception.InvalidInput(reason=f'{key} {refused.rule}') from None
