"""Routes of replicas of shares."""

from manila_lite.api import wsgi
from manila_lite.api.router import ACTION
from manila_lite.api.router import Route
from manila_lite.api.v2.replicas import actions as share_replica_actions
from manila_lite.api.v2.replicas import (
    export_locations as share_replica_export_locations,
)
from manila_lite.api.v2.replicas import metadata as share_replica_metadata
from manila_lite.api.v2.replicas import replicas as share_replicas
from manila_lite.api.v2.replicas.replicas import EXPERIMENTAL

CONTROLLERS: dict[str, type[wsgi.Controller]] = {
    'share_replicas': share_replicas.ShareReplicasController,
    'share_replica_actions': (
        share_replica_actions.ShareReplicaActionsController
    ),
    'share_replica_metadata': (
        share_replica_metadata.ShareReplicaMetadataController
    ),
    'share_replica_export_locations': (
        share_replica_export_locations.ShareReplicaExportLocationsController
    ),
}

_REPLICA = '/share-replicas/{share_replica_id}'
_METADATA = f'{_REPLICA}/metadata'
_EXPORTS = f'{_REPLICA}/export-locations'


def _of_replicas(
    method: str, path: str, handler: str, controller: str = 'share_replicas'
) -> Route:
    return Route(
        method,
        path,
        controller,
        handler,
        since='2.11',
        experimental=EXPERIMENTAL,
    )


def _of_exports(path: str, handler: str) -> Route:
    return Route(
        'GET',
        path,
        'share_replica_export_locations',
        handler,
        since='2.47',
        experimental='2.47-2.55',
        kind='free',
    )


def _of_metadata(method: str, path: str, handler: str) -> Route:
    return Route(
        method,
        path,
        'share_replica_metadata',
        handler,
        since='2.95',
        kind='free',
    )


# fmt: off
ROUTES = [
    _of_replicas('GET', '/share-replicas', 'index'),
    _of_replicas('GET', '/share-replicas/detail', 'detail'),
    _of_replicas('POST', '/share-replicas', 'create'),
    _of_replicas('GET', _REPLICA, 'show'),
    _of_replicas('DELETE', _REPLICA, 'delete'),
    _of_replicas('POST', f'{_REPLICA}/action', ACTION,
                 'share_replica_actions'),

    _of_exports(_EXPORTS, 'index'),
    _of_exports(f'{_EXPORTS}/{{export_location_id}}', 'show'),

    _of_metadata('GET', _METADATA, 'index'),
    _of_metadata('POST', _METADATA, 'create'),
    _of_metadata('PUT', _METADATA, 'replace'),
    _of_metadata('GET', f'{_METADATA}/{{key}}', 'show'),
    _of_metadata('POST', f'{_METADATA}/{{key}}', 'create_one'),
    _of_metadata('DELETE', f'{_METADATA}/{{key}}', 'delete'),
]
# fmt: on
