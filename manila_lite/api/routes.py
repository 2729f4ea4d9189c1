"""The route table: every operation of the API, one row per window."""

from manila_lite.api.router import Route, action, delete, get, post, put, records, serve
from manila_lite.api.v2 import replicas, versions
from manila_lite.api.v2.access import rules
from manila_lite.api.v2.access.resource_locks import ResourceLocksController
from manila_lite.api.v2.admin.messages import MessagesController
from manila_lite.api.v2.admin.quota_sets import (
    QuotaClassSetsController,
    QuotaSetsController,
)
from manila_lite.api.v2.admin.recovery import RecoveryController
from manila_lite.api.v2.admin.scheduler_stats import SchedulerStatsController
from manila_lite.api.v2.admin.services import ServicesController
from manila_lite.api.v2.admin.site import (
    AvailabilityZonesController,
    ExtensionsController,
    LimitsController,
)
from manila_lite.api.v2.backups import (
    ShareBackupActionsController,
    ShareBackupsController,
)
from manila_lite.api.v2.groups import (
    ShareGroupActionsController,
    ShareGroupsController,
    ShareGroupSnapshotActionsController,
    ShareGroupSnapshotsController,
)
from manila_lite.api.v2.networks.actions import ShareNetworkActionsController
from manila_lite.api.v2.networks.security_services import SecurityServicesController
from manila_lite.api.v2.networks.share_networks import ShareNetworksController
from manila_lite.api.v2.networks.subnets import (
    ShareNetworkSubnetMetadataController,
    ShareNetworkSubnetsController,
)
from manila_lite.api.v2.servers import (
    ShareServerActionsController,
    ShareServersController,
)
from manila_lite.api.v2.shares import actions, export_locations, instances
from manila_lite.api.v2.shares.migrations import ShareMigrationController
from manila_lite.api.v2.shares.shares import ShareMetadataController, SharesController
from manila_lite.api.v2.shares.transfers import ShareTransfersController
from manila_lite.api.v2.snapshots import (
    SnapshotActionsController,
    SnapshotExportLocationsController,
    SnapshotInstanceActionsController,
    SnapshotInstanceExportLocationsController,
    SnapshotInstancesController,
    SnapshotManageController,
    SnapshotMetadataController,
    SnapshotsController,
)
from manila_lite.api.v2.types.access import ShareTypeAccessController
from manila_lite.api.v2.types.extra_specs import (
    ShareGroupTypeSpecsController,
    ShareTypeExtraSpecsController,
)
from manila_lite.api.v2.types.group_types import (
    ShareGroupTypeAccessController,
    ShareGroupTypesController,
)
from manila_lite.api.v2.types.qos_types import (
    QosTypesController,
    QosTypeSpecsController,
)
from manila_lite.api.v2.types.share_types import ShareTypesController
from manila_lite.api.v2.versions import ApiDescriptionController, VersionsController

_METADATA = (
    get('', 'index'),
    post('', 'create'),
    put('', 'replace'),
    get('/{key}', 'show'),
    post('/{key}', 'create_one'),
    delete('/{key}', 'delete'),
)
_SPECS = records('key', 'index create show update delete')

_GROUPS = {'since': '2.31', 'experimental': '2.31-2.54'}

ROUTES: list[Route] = [
    # Versions, their description and extensions
    *serve(VersionsController, '', get('/', 'index', kind='root')),
    *serve(ApiDescriptionController, '', get(versions.PATH, 'show', kind='root')),
    *serve(
        ExtensionsController, '/extensions', get('', 'index'), get('/{alias}', 'show')
    ),
    # Shares and share instances
    *serve(
        SharesController,
        '/shares',
        *records('share_id', 'index detail create show update delete'),
    ),
    *serve(actions.ShareActionsController, '/shares/{share_id}', action('/action')),
    *serve(
        ShareMigrationController,
        '/shares/{share_id}/migration-progress',
        get('', 'show', since='2.98'),
    ),
    *serve(ShareMetadataController, '/shares/{share_id}/metadata', *_METADATA),
    *serve(
        export_locations.ShareExportLocationsController,
        '/shares/{share_id}/export_locations',
        get('', 'index', since='2.9'),
        get('/{export_location_id}', 'show', since='2.9'),
    ),
    *serve(
        export_locations.ShareExportLocationMetadataController,
        '/shares/{share_id}/export_locations/{export_location_id}/metadata',
        *_METADATA,
        since='2.87',
    ),
    *serve(
        instances.InstancesOfShareController,
        '/shares/{share_id}/instances',
        get('', 'index', since='2.3'),
    ),
    *serve(
        instances.ShareInstancesController,
        '/share_instances',
        get('', 'index', since='2.3'),
        get('/{share_instance_id}', 'show', since='2.3'),
    ),
    *serve(
        instances.ShareInstanceActionsController,
        '/share_instances/{share_instance_id}',
        action('/action', since='2.3'),
    ),
    *serve(
        export_locations.ShareInstanceExportLocationsController,
        '/share_instances/{share_instance_id}/export_locations',
        get('', 'index', since='2.9'),
        get('/{export_location_id}', 'show', since='2.9'),
    ),
    *serve(
        actions.ShareManageController,
        '',
        post('/os-share-manage', 'create', until='2.6', kind='free'),
        post('/shares/manage', 'create', since='2.7'),
    ),
    *serve(
        actions.ShareUnmanageController,
        '/os-share-unmanage/{share_id}/unmanage',
        post('', 'unmanage', until='2.6'),
    ),
    # Access rules and resource locks
    *serve(
        rules.ShareAccessRulesController,
        '/share-access-rules',
        get('', 'index', since='2.45'),
        get('/{access_id}', 'show', since='2.45'),
        put('/{access_id}', 'update', since='2.88'),
    ),
    *serve(
        rules.ShareAccessMetadataController,
        '/share-access-rules/{access_id}/metadata',
        put('', 'create', since='2.45'),
        delete('/{key}', 'delete', since='2.45'),
    ),
    *serve(
        ResourceLocksController,
        '/resource-locks',
        *records('lock_id', 'index create show update delete'),
        since='2.81',
    ),
    *serve(
        rules.SnapshotAccessListController,
        '/snapshots/{snapshot_id}/access-list',
        get('', 'index', since='2.32'),
    ),
    # Snapshots and snapshot instances
    *serve(
        SnapshotManageController, '', post('/snapshots/manage', 'create', since='2.12')
    ),
    *serve(
        SnapshotsController,
        '/snapshots',
        *records('snapshot_id', 'index detail create show update delete'),
    ),
    *serve(SnapshotActionsController, '/snapshots/{snapshot_id}', action('/action')),
    *serve(
        SnapshotMetadataController,
        '/snapshots/{snapshot_id}/metadata',
        *_METADATA,
        since='2.73',
    ),
    *serve(
        SnapshotExportLocationsController,
        '/snapshots/{snapshot_id}/export-locations',
        get('', 'index', since='2.32'),
        get('/{export_location_id}', 'show', since='2.32'),
    ),
    *serve(
        SnapshotInstancesController,
        '/snapshot-instances',
        *records('snapshot_instance_id', 'index detail show'),
        since='2.19',
    ),
    *serve(
        SnapshotInstanceActionsController,
        '/snapshot-instances/{snapshot_instance_id}',
        action('/action', since='2.19'),
    ),
    *serve(
        SnapshotInstanceExportLocationsController,
        '/snapshot-instances/{snapshot_instance_id}/export-locations',
        get('', 'index', since='2.32'),
        get('/{export_location_id}', 'show', since='2.32'),
    ),
    # Share replicas
    *serve(
        replicas.ShareReplicasController,
        '/share-replicas',
        *records('share_replica_id', 'index detail create show delete'),
        since='2.11',
        experimental='2.11-2.55',
    ),
    *serve(
        replicas.ShareReplicaActionsController,
        '/share-replicas/{share_replica_id}',
        action('/action', since='2.11', experimental='2.11-2.55'),
    ),
    *serve(
        replicas.ShareReplicaExportLocationsController,
        '/share-replicas/{share_replica_id}/export-locations',
        get('', 'index'),
        get('/{export_location_id}', 'show'),
        since='2.47',
        experimental='2.47-2.55',
    ),
    *serve(
        replicas.ShareReplicaMetadataController,
        '/share-replicas/{share_replica_id}/metadata',
        *_METADATA,
        since='2.95',
    ),
    # Share types
    *serve(
        ShareTypesController,
        '/types',
        get('', 'index'),
        post('', 'create'),
        get('/default', 'default', kind='collection'),
        get('/{type_id}', 'show'),
        put('/{type_id}', 'update', since='2.50'),
        delete('/{type_id}', 'delete'),
    ),
    *serve(
        ShareTypeAccessController,
        '/types/{type_id}',
        action('/action'),
        get('/os-share-type-access', 'index'),
        get('/share_type_access', 'index'),
    ),
    *serve(ShareTypeExtraSpecsController, '/types/{type_id}/extra_specs', *_SPECS),
    # Share group types
    *serve(
        ShareGroupTypesController,
        '/share-group-types',
        get('', 'index'),
        post('', 'create'),
        get('/default', 'default', kind='collection'),
        get('/{type_id}', 'show'),
        delete('/{type_id}', 'delete'),
        **_GROUPS,
    ),
    *serve(
        ShareGroupTypeAccessController,
        '/share-group-types/{type_id}',
        action('/action'),
        get('/access', 'index'),
        **_GROUPS,
    ),
    *serve(
        ShareGroupTypeSpecsController,
        '/share-group-types/{type_id}/group-specs',
        *_SPECS,
        **_GROUPS,
    ),
    # Share groups
    *serve(
        ShareGroupsController,
        '/share-groups',
        *records('share_group_id', 'index detail create show update delete'),
        **_GROUPS,
    ),
    *serve(
        ShareGroupActionsController,
        '/share-groups/{share_group_id}',
        action('/action'),
        **_GROUPS,
    ),
    *serve(
        ShareGroupSnapshotsController,
        '/share-group-snapshots',
        *records('share_group_snapshot_id', 'index detail create show update delete'),
        get('/{share_group_snapshot_id}/members', 'members', kind='member'),
        **_GROUPS,
    ),
    *serve(
        ShareGroupSnapshotActionsController,
        '/share-group-snapshots/{share_group_snapshot_id}',
        action('/action'),
        **_GROUPS,
    ),
    # Share backups
    *serve(
        ShareBackupsController,
        '/share-backups',
        *records('backup_id', 'index detail create show update delete'),
        since='2.80',
        experimental='2.80-',
    ),
    *serve(
        ShareBackupActionsController,
        '/share-backups/{backup_id}',
        action('/action'),
        since='2.80',
        experimental='2.80-',
    ),
    # QoS types
    *serve(
        QosTypesController,
        '/qos-types',
        *records('type_id', 'index create show update delete'),
        since='2.94',
    ),
    *serve(QosTypeSpecsController, '/qos-types/{type_id}/specs', *_SPECS, since='2.94'),
    # Share networks, subnets and security services
    *serve(
        ShareNetworksController,
        '/share-networks',
        *records('share_network_id', 'index detail create show update delete'),
    ),
    *serve(
        ShareNetworkActionsController,
        '/share-networks/{share_network_id}',
        action('/action'),
    ),
    *serve(
        ShareNetworkSubnetsController,
        '/share-networks/{share_network_id}/subnets',
        *records('subnet_id', 'index create show delete'),
        since='2.51',
    ),
    *serve(
        ShareNetworkSubnetMetadataController,
        '/share-networks/{share_network_id}/subnets/{subnet_id}/metadata',
        *_METADATA,
        since='2.78',
    ),
    *serve(
        SecurityServicesController,
        '/security-services',
        *records('security_service_id', 'index detail create show update delete'),
    ),
    # Share transfers
    *serve(
        ShareTransfersController,
        '/share-transfers',
        *records('transfer_id', 'index detail create show'),
        post('/{transfer_id}/accept', 'accept', kind='member'),
        delete('/{transfer_id}', 'delete'),
        since='2.77',
    ),
    # Share servers
    *serve(
        ShareServersController,
        '/share-servers',
        get('', 'index'),
        post('/manage', 'manage', since='2.49'),
        get('/{share_server_id}', 'show'),
        get('/{share_server_id}/details', 'details', kind='member'),
        delete('/{share_server_id}', 'delete'),
    ),
    *serve(
        ShareServerActionsController,
        '/share-servers/{share_server_id}',
        action('/action'),
    ),
    # Services, pools, quotas, messages, recovery
    *serve(
        AvailabilityZonesController,
        '',
        get('/os-availability-zone', 'index', until='2.6'),
        get('/availability-zones', 'index', since='2.7'),
    ),
    *serve(
        ServicesController,
        '',
        get('/os-services', 'index', until='2.6'),
        put('/os-services/{verb}', 'update', until='2.6'),
        get('/services', 'index', since='2.7'),
        put('/services/{verb}', 'update', since='2.7'),
        post('/services/ensure-shares', 'ensure_shares', since='2.86'),
    ),
    *serve(
        SchedulerStatsController,
        '/scheduler-stats/pools',
        get('', 'index'),
        get('/detail', 'detail'),
    ),
    *serve(
        MessagesController,
        '/messages',
        *records('message_id', 'index show delete'),
        since='2.37',
    ),
    *serve(LimitsController, '', get('/limits', 'index')),
    *serve(
        QuotaSetsController,
        '',
        get('/os-quota-sets/{project_id}', 'show', until='2.6'),
        put('/os-quota-sets/{project_id}', 'update', until='2.6'),
        delete('/os-quota-sets/{project_id}', 'delete', until='2.6'),
        get(
            '/os-quota-sets/{project_id}/defaults',
            'defaults',
            until='2.6',
            kind='member',
        ),
        get('/quota-sets/{project_id}', 'show', since='2.7'),
        put('/quota-sets/{project_id}', 'update', since='2.7'),
        delete('/quota-sets/{project_id}', 'delete', since='2.7'),
        get(
            '/quota-sets/{project_id}/defaults', 'defaults', since='2.7', kind='member'
        ),
        get('/quota-sets/{project_id}/detail', 'detail', since='2.25', kind='member'),
    ),
    *serve(
        QuotaClassSetsController,
        '',
        get('/os-quota-class-sets/{class_name}', 'show', until='2.6'),
        put('/os-quota-class-sets/{class_name}', 'update', until='2.6'),
        get('/quota-class-sets/{class_name}', 'show', since='2.7'),
        put('/quota-class-sets/{class_name}', 'update', since='2.7'),
    ),
    *serve(
        RecoveryController,
        '/recovery',
        get('/in-flight', 'in_flight'),
        get('/preview', 'preview'),
        get('/log', 'log'),
        post('/run', 'run'),
    ),
]
