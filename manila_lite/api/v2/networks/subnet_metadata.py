"""The metadata of a subnet of a share network."""

from collections.abc import Mapping

from manila_lite.api import versions, wsgi
from manila_lite.api.services import ApiServices
from manila_lite.api.v2.metadata import IdentifiedRow, MetadataController
from manila_lite.api.v2.targets import SubnetTargetController
from manila_lite.db.queries.networks import subnets

_TO_DRIVERS = versions.window(since='2.89')
"""The versions whose changes of some keys are sent to drivers."""


class ShareNetworkSubnetMetadataController(MetadataController, SubnetTargetController):
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
        return self.subnet(target, path['subnet_id'])

    def merge(
        self,
        req: wsgi.Request,
        target: IdentifiedRow,
        parent: IdentifiedRow,
        values: dict[str, str],
    ) -> dict[str, str]:
        return self._set(req, target, parent, values, replace=False)

    def replace_all(
        self,
        req: wsgi.Request,
        target: IdentifiedRow,
        parent: IdentifiedRow,
        values: dict[str, str],
    ) -> dict[str, str]:
        return self._set(req, target, parent, values, replace=True)

    def _set(
        self,
        req: wsgi.Request,
        network: IdentifiedRow,
        subnet: IdentifiedRow,
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
            network.id,
            subnet.id,
            values,
            replace=replace,
            driver_values=driver_values,
        )
