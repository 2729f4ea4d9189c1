"""The route table: every operation of the API, one row per window."""

from manila_lite.api.router import ACTION
from manila_lite.api.router import Route
from manila_lite.api.v2.routes_access import ROUTES as ACCESS
from manila_lite.api.v2.routes_managing import ROUTES as MANAGING
from manila_lite.api.v2.routes_networks import ROUTES as NETWORKS
from manila_lite.api.v2.routes_plain import ROUTES as PLAIN
from manila_lite.api.v2.routes_quota import ROUTES as QUOTA
from manila_lite.api.v2.routes_recovery import ROUTES as RECOVERY
from manila_lite.api.v2.routes_replicas import ROUTES as REPLICAS
from manila_lite.api.v2.routes_share_servers import ROUTES as SHARE_SERVERS
from manila_lite.api.v2.routes_snapshots import ROUTES as SNAPSHOTS

_EXPORT = '/shares/{share_id}/export_locations/{export_location_id}'
_EXPORT_METADATA = f'{_EXPORT}/metadata'
_INSTANCE = '/share_instances/{share_instance_id}'

# fmt: off
_SHARES = [
    Route('GET', '/shares', 'shares', 'index'),
    Route('GET', '/shares/detail', 'shares', 'detail'),
    Route('POST', '/shares', 'shares', 'create'),
    Route('GET', '/shares/{share_id}', 'shares', 'show'),
    Route('PUT', '/shares/{share_id}', 'shares', 'update'),
    Route('DELETE', '/shares/{share_id}', 'shares', 'delete'),
    Route('POST', '/shares/{share_id}/action', 'share_actions', ACTION),

    Route('GET', '/shares/{share_id}/metadata', 'share_metadata', 'index',
          kind='free'),
    Route('POST', '/shares/{share_id}/metadata', 'share_metadata', 'create',
          kind='free'),
    Route('PUT', '/shares/{share_id}/metadata', 'share_metadata', 'replace',
          kind='free'),
    Route('GET', '/shares/{share_id}/metadata/{key}', 'share_metadata',
          'show', kind='free'),
    Route('POST', '/shares/{share_id}/metadata/{key}', 'share_metadata',
          'create_one', kind='free'),
    Route('DELETE', '/shares/{share_id}/metadata/{key}', 'share_metadata',
          'delete', kind='free'),

    Route('GET', '/shares/{share_id}/export_locations',
          'share_export_locations', 'index', since='2.9', kind='free'),
    Route('GET', _EXPORT, 'share_export_locations', 'show', since='2.9',
          kind='free'),
    Route('GET', _EXPORT_METADATA, 'share_export_location_metadata',
          'index', since='2.87', kind='free'),
    Route('POST', _EXPORT_METADATA, 'share_export_location_metadata',
          'create', since='2.87', kind='free'),
    Route('PUT', _EXPORT_METADATA, 'share_export_location_metadata',
          'replace', since='2.87', kind='free'),
    Route('GET', f'{_EXPORT_METADATA}/{{key}}',
          'share_export_location_metadata', 'show', since='2.87',
          kind='free'),
    Route('POST', f'{_EXPORT_METADATA}/{{key}}',
          'share_export_location_metadata', 'create_one', since='2.87',
          kind='free'),
    Route('DELETE', f'{_EXPORT_METADATA}/{{key}}',
          'share_export_location_metadata', 'delete', since='2.87',
          kind='free'),

    Route('GET', '/shares/{share_id}/instances', 'instances_of_share',
          'index', since='2.3', kind='free'),
    Route('GET', '/share_instances', 'share_instances', 'index',
          since='2.3'),
    Route('GET', _INSTANCE, 'share_instances', 'show', since='2.3'),
    Route('POST', f'{_INSTANCE}/action', 'share_instance_actions', ACTION,
          since='2.3'),
    Route('GET', f'{_INSTANCE}/export_locations',
          'share_instance_export_locations', 'index', since='2.9',
          kind='free'),
    Route('GET', f'{_INSTANCE}/export_locations/{{export_location_id}}',
          'share_instance_export_locations', 'show', since='2.9',
          kind='free'),
]

ROUTES = [
    Route('GET', '/', 'versions', 'index', kind='root'),
    Route('GET', '/extensions', 'extensions', 'index'),
    Route('GET', '/extensions/{alias}', 'extensions', 'show'),
    *_SHARES,
    *ACCESS,
    *MANAGING,
    *NETWORKS,
    *PLAIN,
    *QUOTA,
    *RECOVERY,
    *REPLICAS,
    *SHARE_SERVERS,
    *SNAPSHOTS,
]
# fmt: on
