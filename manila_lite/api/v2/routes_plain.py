"""Routes of plain records and of services."""

from manila_lite.api import wsgi
from manila_lite.api.router import ACTION
from manila_lite.api.router import Route
from manila_lite.api.v2.admin import availability_zones
from manila_lite.api.v2.admin import messages
from manila_lite.api.v2.admin import scheduler_stats
from manila_lite.api.v2.admin import services
from manila_lite.api.v2.types import access as share_type_access
from manila_lite.api.v2.types import extra_specs as share_type_extra_specs
from manila_lite.api.v2.types import share_types

CONTROLLERS: dict[str, type[wsgi.Controller]] = {
    'availability_zones': availability_zones.AvailabilityZonesController,
    'messages': messages.MessagesController,
    'scheduler_stats': scheduler_stats.SchedulerStatsController,
    'services': services.ServicesController,
    'share_type_access': share_type_access.ShareTypeAccessController,
    'share_type_extra_specs': (
        share_type_extra_specs.ShareTypeExtraSpecsController
    ),
    'share_types': share_types.ShareTypesController,
}

_TYPE = '/types/{type_id}'
_SPECS = f'{_TYPE}/extra_specs'

# fmt: off
ROUTES = [
    Route('GET', '/os-availability-zone', 'availability_zones', 'index',
          until='2.6'),
    Route('GET', '/availability-zones', 'availability_zones', 'index',
          since='2.7'),

    Route('GET', '/os-services', 'services', 'index', until='2.6'),
    Route('PUT', '/os-services/{verb}', 'services', 'update', until='2.6'),
    Route('GET', '/services', 'services', 'index', since='2.7'),
    Route('PUT', '/services/{verb}', 'services', 'update', since='2.7'),
    Route('POST', '/services/ensure-shares', 'services', 'ensure_shares',
          since='2.86'),

    Route('GET', '/scheduler-stats/pools', 'scheduler_stats', 'index'),
    Route('GET', '/scheduler-stats/pools/detail', 'scheduler_stats',
          'detail'),

    Route('GET', '/messages', 'messages', 'index', since='2.37'),
    Route('GET', '/messages/{message_id}', 'messages', 'show',
          since='2.37'),
    Route('DELETE', '/messages/{message_id}', 'messages', 'delete',
          since='2.37'),

    Route('GET', '/types', 'share_types', 'index'),
    Route('POST', '/types', 'share_types', 'create'),
    Route('GET', '/types/default', 'share_types', 'default',
          kind='collection'),
    Route('GET', _TYPE, 'share_types', 'show'),
    Route('PUT', _TYPE, 'share_types', 'update', since='2.50'),
    Route('DELETE', _TYPE, 'share_types', 'delete'),
    Route('POST', f'{_TYPE}/action', 'share_type_access', ACTION),
    Route('GET', f'{_TYPE}/os-share-type-access', 'share_type_access',
          'index'),
    Route('GET', f'{_TYPE}/share_type_access', 'share_type_access', 'index'),

    Route('GET', _SPECS, 'share_type_extra_specs', 'index'),
    Route('POST', _SPECS, 'share_type_extra_specs', 'create'),
    Route('GET', f'{_SPECS}/{{key}}', 'share_type_extra_specs', 'show'),
    Route('PUT', f'{_SPECS}/{{key}}', 'share_type_extra_specs', 'update'),
    Route('DELETE', f'{_SPECS}/{{key}}', 'share_type_extra_specs', 'delete'),
]
# fmt: on
