"""Share networks and their views, which show their subnets, too."""

from collections.abc import Mapping
import typing

from manila_lite import exception
from manila_lite.api import paging, schema as s, wsgi
from manila_lite.api.fields import Field, FieldValue, child, const, extra, fields
from manila_lite.api.filters import Filter, exact, filters, number
from manila_lite.api.v2 import targets
from manila_lite.db import rows
from manila_lite.db.queries import pages
from manila_lite.db.queries.networks import share_networks as network_views
from manila_lite.db.queries.networks.subnets import Subnet
from manila_lite.db.session import Database
from manila_lite.share.operations.networks import checks

DETAILS_POLICY = 'share_network:show_network_details'


def _of_default(name: str) -> FieldValue:
    """An attribute of the default subnet, for versions before 2.51."""
    return FieldValue(f"more['defaults'].get(row.id, $).{name}", _NOTHING)


def _privileged(name: str) -> FieldValue:
    """An attribute that requires the policy for network details."""
    return FieldValue(f"row.{name} if more['details'] else None")


def _privileged_of_default(name: str) -> FieldValue:
    return FieldValue(
        f"more['defaults'].get(row.id, $).{name} if more['details'] else None", _NOTHING
    )


_NOTHING = Subnet(*[None] * len(Subnet._fields))  # type: ignore[arg-type]

SUMMARY = fields(Field('id'), Field('name'))

_SUBNET_FIELDS = (
    Field('id'),
    Field('availability_zone'),
    Field('created_at'),
    Field('updated_at'),
    Field('neutron_net_id'),
    Field('neutron_subnet_id'),
    Field('ip_version'),
    Field('cidr'),
    Field('mtu'),
    Field('gateway'),
    Field('segmentation_id', _privileged('segmentation_id')),
    Field('network_type', _privileged('network_type')),
    Field('metadata', since='2.78', shape=dict[str, str]),
)
NESTED_SUBNET = fields(*_SUBNET_FIELDS)
SUBNET = fields(
    *_SUBNET_FIELDS,
    Field('share_network_id'),
    Field('share_network_name', extra('name'), shape=str | None),
)

DETAIL = fields(
    Field('id'),
    Field('name'),
    Field('project_id'),
    Field('created_at'),
    Field('updated_at'),
    Field('description'),
    Field('neutron_net_id', _of_default('neutron_net_id'), until='2.50'),
    Field('neutron_subnet_id', _of_default('neutron_subnet_id'), until='2.50'),
    Field('cidr', _of_default('cidr'), until='2.50'),
    Field('ip_version', _of_default('ip_version'), until='2.50'),
    Field('network_type', _privileged_of_default('network_type'), until='2.50'),
    Field('segmentation_id', _privileged_of_default('segmentation_id'), until='2.50'),
    Field('nova_net_id', const(None), until='2.25'),
    Field('gateway', _of_default('gateway'), since='2.18', until='2.50'),
    Field('mtu', _of_default('mtu'), since='2.20', until='2.50'),
    Field(
        'share_network_subnets',
        child('subnets', []),
        since='2.51',
        shape=[NESTED_SUBNET],
    ),
    Field('status', since='2.63'),
    Field('security_service_update_support', since='2.63'),
    Field('network_allocation_update_support', since='2.70'),
)


def details(
    req: wsgi.Request, subnets: Mapping[str, list[Subnet]]
) -> dict[str, typing.Any]:
    """Return what `DETAIL` reads in addition to the networks with these subnets."""
    more: dict[str, typing.Any] = {'details': req.ctx.can(DETAILS_POLICY)}
    if req.minor >= 51:
        view = NESTED_SUBNET.many(req.minor)
        more['subnets'] = {id: view(of_one, more) for id, of_one in subnets.items()}
    else:
        more['defaults'] = _defaults(subnets)
    return more


def _defaults(subnets: Mapping[str, list[Subnet]]) -> dict[str, Subnet]:
    """Return the oldest default subnet of each network that has one."""
    return {
        id: next(one for one in found if one.is_default)
        for id, found in subnets.items()
        if any(one.is_default for one in found)
    }


def show_subnets(
    req: wsgi.Request, network: rows.ShareNetworkRow, subnets: list[Subnet]
) -> list[dict]:
    """Return the subnets of a network as separate resources."""
    return SUBNET.many(req.minor)(
        subnets, {'details': req.ctx.can(DETAILS_POLICY), 'name': network.name}
    )


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


FILTERS = (
    _ON_NETWORK,
    _ON_SUBNET,
    _LIKE,
    _OTHERS,
    Filter('all_tenants', parse=paging.parse_flag),
    Filter('project_id'),
)


def parse_filter(req: wsgi.Request) -> network_views.ShareNetworkFilter:
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


_NAME = s.string(255, nullable=True)
NEUTRON_FIELDS: dict[str, typing.Any] = {
    # Not all clients send UUIDs here.
    name: s.optional_id(36)
    for name in checks.NEUTRON_IDS
}

CREATE = s.schema(
    wrapper='share_network',
    name=_NAME,
    description=_NAME,
    nova_net_id=s.anything,
    availability_zone=s.since('2.51', s.optional_id()),
    **NEUTRON_FIELDS,
)

UPDATE = s.schema(
    wrapper='share_network',
    name=_NAME,
    description=_NAME,
    nova_net_id=s.anything,
    **NEUTRON_FIELDS,
)


def neutron_ids(args: dict) -> dict[str, typing.Any]:
    """Return the Neutron ids in a body; both must be given, or none."""
    found = _sent_neutron_ids(args)
    checks.check_neutron_ids(found)
    return found


def _sent_neutron_ids(args: dict) -> dict[str, typing.Any]:
    return {name: args[name] for name in NEUTRON_FIELDS if name in args}


def show_network(db: Database, req: wsgi.Request, network_id: str) -> dict:
    """Return one network in detail."""
    found = db.read(network_views.get, network_id)
    if not found.rows:
        raise exception.ShareNetworkNotFound(share_network_id=network_id)
    more = details(req, found.children['subnets'])
    return {'share_network': DETAIL.function(req.minor)(found.rows[0], more)}


class ShareNetworksController(paging.ListController):
    target = targets.NETWORK.loader

    path = 'share-networks'
    key = 'share_networks'
    summary = SUMMARY
    details = DETAIL
    filters = FILTERS
    policies = {'index': 'share_network:index', 'detail': 'share_network:detail'}

    def read_page(
        self, req: wsgi.Request, page: paging.Page, *, detailed: bool
    ) -> pages.Listing:
        return self.services.db.read(
            network_views.list_page, parse_filter(req), page, detailed=detailed
        )

    def more(self, req: wsgi.Request, found: pages.Listing) -> dict:
        return details(req, found.children.get('subnets', {}))

    @wsgi.method('share_network:show', target=True, answer={'share_network': DETAIL})
    def show(self, req: wsgi.Request, network: rows.ShareNetworkRow) -> dict:
        return show_network(self.services.db, req, network.id)

    @wsgi.method('share_network:create', body=CREATE, answer={'share_network': DETAIL})
    def create(self, req: wsgi.Request, args: dict) -> dict:
        """Create a network with its first subnet."""
        _refuse_nova(args)
        return show_network(
            self.services.db,
            req,
            self.services.share_networks.create(
                req.ctx,
                name=args.get('name'),
                description=args.get('description'),
                zone=args.get('availability_zone'),
                subnet=neutron_ids(args),
            ),
        )

    @wsgi.method(
        'share_network:update',
        target=True,
        body=UPDATE,
        answer={'share_network': DETAIL},
    )
    def update(
        self, req: wsgi.Request, network: rows.ShareNetworkRow, args: dict
    ) -> dict:
        """Update a network; one in use only its name and description."""
        _refuse_nova(args)
        self.services.share_networks.update(
            req.ctx,
            network.id,
            {name: args[name] for name in ('name', 'description') if name in args},
            _sent_neutron_ids(args),
        )
        return show_network(self.services.db, req, network.id)

    @wsgi.method('share_network:delete', target=True, status=202)
    def delete(self, req: wsgi.Request, network: rows.ShareNetworkRow) -> None:
        self.services.share_networks.delete(req.ctx, network.id)


def _refuse_nova(args: dict) -> None:
    if 'nova_net_id' in args:
        raise exception.InvalidInput(reason='nova_net_id is no longer supported')
