"""Routes of quotas and limits."""

from manila_lite.api import wsgi
from manila_lite.api.router import Route
from manila_lite.api.v2.admin import limits
from manila_lite.api.v2.admin import quota_class_sets
from manila_lite.api.v2.admin import quota_sets

CONTROLLERS: dict[str, type[wsgi.Controller]] = {
    'limits': limits.LimitsController,
    'quota_class_sets': quota_class_sets.QuotaClassSetsController,
    'quota_sets': quota_sets.QuotaSetsController,
}

_OLD_SET = '/os-quota-sets/{project_id}'
_SET = '/quota-sets/{project_id}'
_OLD_CLASS = '/os-quota-class-sets/{class_name}'
_CLASS = '/quota-class-sets/{class_name}'

# fmt: off
ROUTES = [
    Route('GET', '/limits', 'limits', 'index'),

    Route('GET', _OLD_SET, 'quota_sets', 'show', until='2.6'),
    Route('PUT', _OLD_SET, 'quota_sets', 'update', until='2.6'),
    Route('DELETE', _OLD_SET, 'quota_sets', 'delete', until='2.6'),
    Route('GET', f'{_OLD_SET}/defaults', 'quota_sets', 'defaults',
          until='2.6', kind='member'),
    Route('GET', _SET, 'quota_sets', 'show', since='2.7'),
    Route('PUT', _SET, 'quota_sets', 'update', since='2.7'),
    Route('DELETE', _SET, 'quota_sets', 'delete', since='2.7'),
    Route('GET', f'{_SET}/defaults', 'quota_sets', 'defaults', since='2.7',
          kind='member'),
    Route('GET', f'{_SET}/detail', 'quota_sets', 'detail', since='2.25',
          kind='member'),

    Route('GET', _OLD_CLASS, 'quota_class_sets', 'show', until='2.6'),
    Route('PUT', _OLD_CLASS, 'quota_class_sets', 'update', until='2.6'),
    Route('GET', _CLASS, 'quota_class_sets', 'show', since='2.7'),
    Route('PUT', _CLASS, 'quota_class_sets', 'update', since='2.7'),
]
# fmt: on
