"""Filters of snapshot lists."""

from collections.abc import Mapping

from manila_lite import exception
from manila_lite.api import paging, wsgi
from manila_lite.api.filters import Filter, filters, non_empty, number
from manila_lite.api.v2 import literals, targets
from manila_lite.db.queries.snapshots import views as snapshot_views

SORT_KEYS: dict[str, str] = {
    **{
        name: name
        for name in snapshot_views.SNAPSHOT_COLUMNS | snapshot_views.INSTANCE_SORT_KEYS
    },
    'name': 'display_name',
    'description': 'display_description',
}
ADMIN_SORT_KEYS = ('provider_location',)

_USAGE = {'any': None, 'used': True, 'unused': False}


def _size(query: Mapping[str, str], key: str) -> int:
    non_empty(query, key)
    return number(query, key)


def _metadata(query: Mapping[str, str], key: str) -> dict[str, str]:
    non_empty(query, key)
    return literals.parse(query, key)


def _used(query: Mapping[str, str], key: str) -> bool | None:
    usage = non_empty(query, key)
    if usage not in _USAGE:
        raise exception.InvalidInput(
            reason=f'{key} must be one of: ' + ', '.join(_USAGE)
        )
    return _USAGE[usage]


_ON_SNAPSHOT = filters(
    Filter('name', 'display_name', parse=non_empty),
    Filter('display_name', parse=non_empty),
    Filter('share_id', parse=non_empty),
    Filter('size', parse=_size),
    Filter('description', 'display_description', since='2.36', parse=non_empty),
    Filter('display_description', since='2.36', parse=non_empty),
)
_LIKE = filters(
    Filter('name~', 'display_name', since='2.36', parse=non_empty),
    Filter('display_name~', 'display_name', since='2.36', parse=non_empty),
    Filter('description~', 'display_description', since='2.36', parse=non_empty),
    Filter(
        'display_description~', 'display_description', since='2.36', parse=non_empty
    ),
)
_OTHERS = filters(
    Filter('status', parse=non_empty),
    Filter('metadata', since='2.73', parse=_metadata),
    Filter('usage', 'used', admin_only=True, parse=_used, words=_USAGE),
)


QUERY = (
    *paging.query_keys(SORT_KEYS),
    _ON_SNAPSHOT,
    _LIKE,
    _OTHERS,
    Filter('all_tenants', parse=paging.parse_flag),
    Filter('project_id'),
    Filter('with_count', parse=paging.parse_flag),
)


def parse(req: wsgi.Request) -> snapshot_views.SnapshotFilter:
    """Return the filter of a list query, restricted by policies.

    Unknown keys are ignored; an empty value of a known key is refused
    (notes: Filters).
    """
    return snapshot_views.SnapshotFilter(
        project_id=_project_id(req),
        include_hidden=targets.sees_hidden_snapshots(req.ctx),
        snapshot=_ON_SNAPSHOT.values(req),
        like=_LIKE.values(req),
        **_OTHERS.values(req),
    )


def _project_id(req: wsgi.Request) -> str | None:
    """Return the id of the requested project, or None for all."""
    if not (
        paging.parse_flag(req.query, 'all_tenants')
        and req.ctx.can('share_snapshot:list_all_projects')
    ):
        return req.ctx.project_id
    if 'project_id' not in req.query:
        return None
    return non_empty(req.query, 'project_id')
