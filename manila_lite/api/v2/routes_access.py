"""Routes of access rules and of resource locks."""

from manila_lite.api import wsgi
from manila_lite.api.router import Route
from manila_lite.api.v2.access import resource_locks
from manila_lite.api.v2.access import rule_resource as share_access_rules

CONTROLLERS: dict[str, type[wsgi.Controller]] = {
    'resource_locks': resource_locks.ResourceLocksController,
    'share_access_rules': share_access_rules.ShareAccessRulesController,
    'share_access_metadata': share_access_rules.ShareAccessMetadataController,
}

_RULE = '/share-access-rules/{access_id}'
_LOCK = '/resource-locks/{lock_id}'

# fmt: off
ROUTES = [
    Route('GET', '/share-access-rules', 'share_access_rules', 'index',
          since='2.45'),
    Route('GET', _RULE, 'share_access_rules', 'show', since='2.45'),
    Route('PUT', _RULE, 'share_access_rules', 'update', since='2.88'),
    Route('PUT', f'{_RULE}/metadata', 'share_access_metadata', 'update',
          since='2.45', kind='free'),
    Route('DELETE', f'{_RULE}/metadata/{{key}}', 'share_access_metadata',
          'delete', since='2.45', kind='free'),

    Route('GET', '/resource-locks', 'resource_locks', 'index', since='2.81'),
    Route('POST', '/resource-locks', 'resource_locks', 'create',
          since='2.81'),
    Route('GET', _LOCK, 'resource_locks', 'show', since='2.81'),
    Route('PUT', _LOCK, 'resource_locks', 'update', since='2.81'),
    Route('DELETE', _LOCK, 'resource_locks', 'delete', since='2.81'),
]
# fmt: on
