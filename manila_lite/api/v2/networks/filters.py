"""Filters of share network lists."""

from manila_lite.api import paging, wsgi
from manila_lite.api.filters import Filter, exact, filters, number
from manila_lite.api.v2.networks.views import DETAILS_POLICY
from manila_lite.db.queries.networks import views as network_views

_ON_NETWORK = filters(
    *exact('id', 'name', 'status', 'user_id'), Filter('description', since='2.36')
)
_ON_SUBNET = filters(
    # Fields with a policy of their own require it as filters, too.
    Filter('network_type', policy=DETAILS_POLICY),
    Filter('segmentation_id', policy=DETAILS_POLICY, parse=number),
    *exact(
        'neutron_net_id', 'neutron_subnet_id', 'cidr', 'gateway', 'availability_zone_id'
    ),
    Filter('ip_version', parse=number),
    Filter('mtu', parse=number),
)
_LIKE = filters(
    Filter('name~', 'name', since='2.36'),
    Filter('description~', 'description', since='2.36'),
    skip_empty=True,
)
_OTHERS = filters(
    Filter('created_since', parse=paging.parse_date),
    Filter('created_before', parse=paging.parse_date),
    Filter('security_service_id'),
    # The command line client sends an id or a name here.
    Filter('security_service'),
    Filter('nova_net_id', until='2.25'),
)


QUERY = (
    *paging.query_keys(),
    _ON_NETWORK,
    _ON_SUBNET,
    _LIKE,
    _OTHERS,
    Filter('all_tenants', parse=paging.parse_flag),
    Filter('project_id'),
)


def parse(req: wsgi.Request) -> network_views.ShareNetworkFilter:
    """Return the filter of a list query, restricted by policies.

    Unknown keys are ignored (notes: Filters).
    """
    return network_views.ShareNetworkFilter(
        project_id=_project_id(req),
        network=_ON_NETWORK.values(req),
        subnet=_ON_SUBNET.values(req),
        like=_LIKE.values(req),
        **_OTHERS.values(req),
    )


def _project_id(req: wsgi.Request) -> str | None:
    """Return the id of the requested project, or None for all."""
    all_projects = paging.parse_flag(req.query, 'all_tenants')
    if (all_projects or 'project_id' in req.query) and req.ctx.can(
        'share_network:get_all_share_networks'
    ):
        return req.query.get('project_id')
    return req.ctx.project_id
