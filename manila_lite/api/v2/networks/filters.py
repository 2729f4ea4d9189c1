"""Filters of share network lists."""

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
_PRIVILEGED = ('network_type', 'segmentation_id')
_LIKE = {'name~': 'name', 'description~': 'description'}

_number = schema.non_negative_int.at(0)


def parse(req: wsgi.Request) -> network_views.ShareNetworkFilter:
    """Return the filter of a list query, restricted by policies.

    Unknown keys are ignored (notes: Filters). Filters by fields with a
    policy of their own require that policy.
    """
    query = req.query
    filters = network_views.ShareNetworkFilter(
        project_id=_project(req),
        created_since=paging.parse_time(query, 'created_since'),
        created_before=paging.parse_time(query, 'created_before'),
        security_service_id=query.get('security_service_id'),
        # The command line client sends an id or a name here.
        security_service=query.get('security_service'),
    )
    for key in _PRIVILEGED:
        if key in query:
            req.ctx.authorize(DETAILS_POLICY)
    filters.network = {key: query[key] for key in _OF_NETWORK if key in query}
    filters.subnet = {
        key: query[key]
        for key in (*_OF_SUBNET, 'network_type')
        if key in query
    }
    filters.subnet |= {
        key: _parse_number(query, key) for key in _NUMBERS if key in query
    }
    if req.minor >= 36:
        filters.like = {
            column: query[key]
            for key, column in _LIKE.items()
            if query.get(key)
        }
        if 'description' in query:
            filters.network['description'] = query['description']
    return filters


def _project(req: wsgi.Request) -> str | None:
    """Return the id of the requested project, or None for all."""
    all_projects = paging.parse_flag(req.query, 'all_tenants')
    if (all_projects or 'project_id' in req.query) and req.ctx.can(
        'share_network:get_all_share_networks'
    ):
        return req.query.get('project_id')
    return req.ctx.project_id


def _parse_number(query: typing.Mapping[str, str], key: str) -> int:
    try:
        return _number(query[key])
    except schema.ValidationError as error:
        raise exception.InvalidInput(reason=f'{key} {error.rule}') from None
