"""The metadata of a subnet of a share network."""

import typing

from manila_lite import exception
from manila_lite.api import wsgi
from manila_lite.api.v2 import metadata
from manila_lite.api.v2.targets import SubnetTargetController
from manila_lite.db.queries.networks import subnets

_GET = 'share_network_subnet:get_metadata'
_UPDATE = 'share_network_subnet:update_metadata'
_DELETE = 'share_network_subnet:delete_metadata'


_DRIVER_VALUES_SINCE = 89
"""The minor version since which some keys are sent to drivers."""


class ShareNetworkSubnetMetadataController(SubnetTargetController):
    def __init__(self, services: typing.Any):
        super().__init__(services)
        self._driver_keys = frozenset(
            services.conf.driver_updatable_subnet_metadata
        )

    @wsgi.method(_GET, target=True)
    def index(
        self, req: wsgi.Request, network: typing.Any, subnet_id: str
    ) -> dict:
        return metadata.show(self.subnet(network, subnet_id).metadata)

    @wsgi.method(_GET, target=True)
    def show(
        self, req: wsgi.Request, network: typing.Any, subnet_id: str, key: str
    ) -> dict:
        return metadata.show_one(self.subnet(network, subnet_id).metadata, key)

    @wsgi.method(_UPDATE, target=True, body=metadata.VALUES)
    def create(
        self,
        req: wsgi.Request,
        network: typing.Any,
        args: dict,
        subnet_id: str,
    ) -> dict:
        return self._set(req, network, subnet_id, args['metadata'])

    @wsgi.method(_UPDATE, target=True, body=metadata.VALUES)
    def create_one(
        self,
        req: wsgi.Request,
        network: typing.Any,
        args: dict,
        subnet_id: str,
        key: str,
    ) -> dict:
        return self._set(
            req,
            network,
            subnet_id,
            metadata.require_single_key(args['metadata'], key),
        )

    @wsgi.method(_UPDATE, target=True, body=metadata.VALUES)
    def replace(
        self,
        req: wsgi.Request,
        network: typing.Any,
        args: dict,
        subnet_id: str,
    ) -> dict:
        """Replace all keys."""
        return self._set(
            req, network, subnet_id, args['metadata'], replace=True
        )

    @wsgi.method(_DELETE, target=True)
    def delete(
        self, req: wsgi.Request, network: typing.Any, subnet_id: str, key: str
    ) -> None:
        subnet = self.subnet(network, subnet_id)
        if not self.services.db.write(
            subnets.METADATA.remove, subnet.id, [key]
        ):
            raise exception.MetadataItemNotFound(key=key)

    def _set(self, req, network, subnet_id, values, *, replace=False):
        """Set keys; the updatable ones are sent to the drivers."""
        subnet = self.subnet(network, subnet_id)
        driver_values = {
            key: value
            for key, value in values.items()
            if key in self._driver_keys and req.minor >= _DRIVER_VALUES_SINCE
        }
        return metadata.show(
            self.services.network_changes.set_subnet_metadata(
                req.ctx,
                network.id,
                subnet.id,
                values,
                replace=replace,
                driver_values=driver_values,
            )
        )
