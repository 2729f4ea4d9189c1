"""Subnets of a share network: list, show, create, delete."""

import typing

from manila_lite.api import schema as s, wsgi
from manila_lite.api.v2.networks import views
from manila_lite.api.v2.networks.share_networks import NEUTRON_FIELDS, neutron_ids
from manila_lite.api.v2.targets import SubnetTargetController
from manila_lite.db import rows
from manila_lite.db.queries.networks import subnets

SUBNET_FIELDS: dict[str, typing.Any] = {
    'availability_zone': s.optional_id(),
    **NEUTRON_FIELDS,
}
CREATE = s.schema(
    wrapper='share-network-subnet',
    missing=400,
    **SUBNET_FIELDS,
    metadata=s.since('2.78', s.mapping(s.string(1023, 1), nullable=True)),
)

SEVERAL_PER_ZONE_SINCE = 70
"""The minor version since which a zone may have several subnets."""


class ShareNetworkSubnetsController(SubnetTargetController):
    @wsgi.method(
        'share_network_subnet:index',
        target=True,
        answer={'share_network_subnets': [views.SUBNET]},
    )
    def index(self, req: wsgi.Request, network: rows.ShareNetworkRow) -> dict:
        return {
            'share_network_subnets': views.show_subnets(
                req,
                network,
                self.services.db.read(subnets.list_for_network, network.id),
            )
        }

    @wsgi.method(
        'share_network_subnet:show',
        target=True,
        answer={'share_network_subnet': views.SUBNET},
    )
    def show(
        self, req: wsgi.Request, network: rows.ShareNetworkRow, subnet_id: str
    ) -> dict:
        return self._response(req, network, subnet_id)

    @wsgi.method(
        'share_network_subnet:create',
        target=True,
        body=CREATE,
        answer={'share_network_subnet': views.SUBNET},
    )
    def create(
        self, req: wsgi.Request, network: rows.ShareNetworkRow, args: dict
    ) -> dict:
        """Add a subnet; without a zone it serves all zones."""
        subnet_id = self.services.network_changes.create_subnet(
            req.ctx,
            network.id,
            zone=args.get('availability_zone'),
            subnet=neutron_ids(args),
            metadata=args.get('metadata'),
            allow_several=req.minor >= SEVERAL_PER_ZONE_SINCE,
        )
        return self._response(req, network, subnet_id)

    @wsgi.method('share_network_subnet:delete', target=True, status=202)
    def delete(
        self, req: wsgi.Request, network: rows.ShareNetworkRow, subnet_id: str
    ) -> None:
        self.services.network_changes.delete_subnet(req.ctx, network.id, subnet_id)

    def _response(
        self, req: wsgi.Request, network: rows.ShareNetworkRow, subnet_id: str
    ) -> dict:
        found = self.subnet(network, subnet_id)
        return {'share_network_subnet': views.show_subnets(req, network, [found])[0]}
