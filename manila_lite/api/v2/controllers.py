"""The controllers by the names that the route table uses."""

from manila_lite.api import wsgi
from manila_lite.api.v2 import routes_access
from manila_lite.api.v2 import routes_managing
from manila_lite.api.v2 import routes_networks
from manila_lite.api.v2 import routes_plain
from manila_lite.api.v2 import routes_quota
from manila_lite.api.v2 import routes_recovery
from manila_lite.api.v2 import routes_replicas
from manila_lite.api.v2 import routes_share_servers
from manila_lite.api.v2 import routes_snapshots
from manila_lite.api.v2.shares import actions as share_actions
from manila_lite.api.v2.shares import export_locations
from manila_lite.api.v2.shares import instances as share_instances
from manila_lite.api.v2.shares import metadata as share_metadata
from manila_lite.api.v2.shares import shares

CONTROLLERS: dict[str, type[wsgi.Controller]] = {
    'shares': shares.SharesController,
    'share_actions': share_actions.ShareActionsController,
    'share_metadata': share_metadata.ShareMetadataController,
    'share_export_locations': export_locations.ShareExportLocationsController,
    'share_export_location_metadata': (
        export_locations.ShareExportLocationMetadataController
    ),
    'instances_of_share': share_instances.InstancesOfShareController,
    'share_instances': share_instances.ShareInstancesController,
    'share_instance_actions': share_instances.ShareInstanceActionsController,
    'share_instance_export_locations': (
        export_locations.ShareInstanceExportLocationsController
    ),
    **routes_access.CONTROLLERS,
    **routes_managing.CONTROLLERS,
    **routes_networks.CONTROLLERS,
    **routes_plain.CONTROLLERS,
    **routes_quota.CONTROLLERS,
    **routes_recovery.CONTROLLERS,
    **routes_replicas.CONTROLLERS,
    **routes_share_servers.CONTROLLERS,
    **routes_snapshots.CONTROLLERS,
}
