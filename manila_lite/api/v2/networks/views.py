"""Views of share networks and their subnets."""

from collections.abc import Mapping
import typing

from manila_lite.api import wsgi
from manila_lite.api.fields import Field, FieldValue, child, const, extra, fields
from manila_lite.db import rows
from manila_lite.db.queries.networks.subnets import Subnet

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
