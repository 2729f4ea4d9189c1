"""Subnets of share networks and their metadata."""

from collections.abc import Mapping
import typing

from manila_lite.api import paging, schema as s, versions, wsgi
from manila_lite.api.services import ApiServices
from manila_lite.api.v2 import targets
from manila_lite.api.v2.metadata import IdentifiedRow, MetadataController
from manila_lite.api.v2.networks import share_networks
from manila_lite.api.v2.networks.share_networks import NEUTRON_FIELDS, neutron_ids
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


class ShareNetworkSubnetsController(wsgi.Controller):
    target = targets.NETWORK.loader

    @wsgi.method(
        'share_network_subnet:index',
        target=True,
        answer={'share_network_subnets': [share_networks.SUBNET]},
        query=(paging.MARKER,),
    )
    def index(self, req: wsgi.Request, network: rows.ShareNetworkRow) -> dict:
        items = share_networks.show_subnets(
            req, network, self.services.db.read(subnets.list_for_network, network.id)
        )
        return {'share_network_subnets': paging.behind_marker(req, items)}

    @wsgi.method(
        'share_network_subnet:show',
        target=True,
        answer={'share_network_subnet': share_networks.SUBNET},
    )
    def show(
        self, req: wsgi.Request, network: rows.ShareNetworkRow, subnet_id: str
    ) -> dict:
        return self._response(req, network, subnet_id)

    @wsgi.method(
        'share_network_subnet:create',
        target=True,
        body=CREATE,
        answer={'share_network_subnet': share_networks.SUBNET},
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
        found = self.services.db.read(subnets.get, network.id, subnet_id)
        return {
            'share_network_subnet': share_networks.show_subnets(req, network, [found])[
                0
            ]
        }


_TO_DRIVERS = versions.window(since='2.89')
"""The versions whose changes of some keys are sent to drivers."""


class ShareNetworkSubnetMetadataController(MetadataController):
    target = targets.NETWORK.loader

    checks_body_first = True
    table = subnets.METADATA
    policies = {
        'get': 'share_network_subnet:get_metadata',
        'update': 'share_network_subnet:update_metadata',
        'delete': 'share_network_subnet:delete_metadata',
    }

    def __init__(self, services: ApiServices):
        super().__init__(services)
        self._driver_keys = frozenset(services.conf.driver_updatable_subnet_metadata)

    def parent(
        self, req: wsgi.Request, target: IdentifiedRow, path: Mapping[str, str]
    ) -> IdentifiedRow:
        return self.services.db.read(subnets.get, target.id, path['subnet_id'])

    def set_values(
        self,
        req: wsgi.Request,
        target: IdentifiedRow,
        parent: IdentifiedRow,
        values: dict[str, str],
        *,
        replace: bool,
    ) -> dict[str, str]:
        """Set keys; the updatable ones are sent to the drivers."""
        driver_values = {
            key: value
            for key, value in values.items()
            if key in self._driver_keys and req.minor in _TO_DRIVERS
        }
        return self.services.network_changes.set_subnet_metadata(
            req.ctx,
            target.id,
            parent.id,
            values,
            replace=replace,
            driver_values=driver_values,
        )
