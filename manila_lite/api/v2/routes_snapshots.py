"""Routes of snapshots and their instances."""

from manila_lite.api import wsgi
from manila_lite.api.router import ACTION
from manila_lite.api.router import Route
from manila_lite.api.v2.access import snapshot_rules as snapshot_access
from manila_lite.api.v2.snapshots import actions as snapshot_actions
from manila_lite.api.v2.snapshots import (
    export_locations as snapshot_export_locations,
)
from manila_lite.api.v2.snapshots import instances as snapshot_instances
from manila_lite.api.v2.snapshots import metadata as snapshot_metadata
from manila_lite.api.v2.snapshots import snapshots

CONTROLLERS: dict[str, type[wsgi.Controller]] = {
    'snapshots': snapshots.SnapshotsController,
    'snapshot_actions': snapshot_actions.SnapshotActionsController,
    'snapshot_metadata': snapshot_metadata.SnapshotMetadataController,
    'snapshot_access_list': snapshot_access.SnapshotAccessListController,
    'snapshot_export_locations': (
        snapshot_export_locations.SnapshotExportLocationsController
    ),
    'snapshot_instances': snapshot_instances.SnapshotInstancesController,
    'snapshot_instance_actions': (
        snapshot_instances.SnapshotInstanceActionsController
    ),
    'snapshot_instance_export_locations': (
        snapshot_export_locations.SnapshotInstanceExportLocationsController
    ),
}

_SNAPSHOT = '/snapshots/{snapshot_id}'
_METADATA = f'{_SNAPSHOT}/metadata'
_INSTANCE = '/snapshot-instances/{snapshot_instance_id}'

# fmt: off
ROUTES = [
    Route('GET', '/snapshots', 'snapshots', 'index'),
    Route('GET', '/snapshots/detail', 'snapshots', 'detail'),
    Route('POST', '/snapshots', 'snapshots', 'create'),
    Route('GET', _SNAPSHOT, 'snapshots', 'show'),
    Route('PUT', _SNAPSHOT, 'snapshots', 'update'),
    Route('DELETE', _SNAPSHOT, 'snapshots', 'delete'),
    Route('POST', f'{_SNAPSHOT}/action', 'snapshot_actions', ACTION),

    Route('GET', _METADATA, 'snapshot_metadata', 'index', since='2.73',
          kind='free'),
    Route('POST', _METADATA, 'snapshot_metadata', 'create', since='2.73',
          kind='free'),
    Route('PUT', _METADATA, 'snapshot_metadata', 'replace', since='2.73',
          kind='free'),
    Route('GET', f'{_METADATA}/{{key}}', 'snapshot_metadata', 'show',
          since='2.73', kind='free'),
    Route('POST', f'{_METADATA}/{{key}}', 'snapshot_metadata', 'create_one',
          since='2.73', kind='free'),
    Route('DELETE', f'{_METADATA}/{{key}}', 'snapshot_metadata', 'delete',
          since='2.73', kind='free'),

    Route('GET', f'{_SNAPSHOT}/access-list', 'snapshot_access_list',
          'index', since='2.32', kind='free'),
    Route('GET', f'{_SNAPSHOT}/export-locations',
          'snapshot_export_locations', 'index', since='2.32', kind='free'),
    Route('GET', f'{_SNAPSHOT}/export-locations/{{export_location_id}}',
          'snapshot_export_locations', 'show', since='2.32', kind='free'),

    Route('GET', '/snapshot-instances', 'snapshot_instances', 'index',
          since='2.19'),
    Route('GET', '/snapshot-instances/detail', 'snapshot_instances',
          'detail', since='2.19'),
    Route('GET', _INSTANCE, 'snapshot_instances', 'show', since='2.19'),
    Route('POST', f'{_INSTANCE}/action', 'snapshot_instance_actions',
          ACTION, since='2.19'),
    Route('GET', f'{_INSTANCE}/export-locations',
          'snapshot_instance_export_locations', 'index', since='2.32',
          kind='free'),
    Route('GET', f'{_INSTANCE}/export-locations/{{export_location_id}}',
          'snapshot_instance_export_locations', 'show', since='2.32',
          kind='free'),
]
# fmt: on
