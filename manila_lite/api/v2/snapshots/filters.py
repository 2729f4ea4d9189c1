"""Filters of snapshot lists."""

from manila_lite import exception
from manila_lite.api import paging
from manila_lite.api import schema
from manila_lite.api import wsgi
from manila_lite.api.v2 import literals
from manila_lite.db.queries.snapshots import views as snapshot_views

SORT_KEYS: dict[str, str] = {
    **{
        name: name
        for name in snapshot_views.SNAPSHOT_COLUMNS
        | snapshot_views.INSTANCE_SORT_KEYS
    },
    'name': 'display_name',
    'description': 'display_description',
}

_EXACT = {
    'name': 'display_name',
    'display_name': 'display_name',
    'share_id': 'share_id',
}
_DESCRIPTION = ('description', 'display_description')
_LIKE = {
    'name~': 'display_name',
    'display_name~': 'display_name',
    'description~': 'display_description',
    'display_description~': 'display_description',
}
_USAGE = {'any': None, 'used': True, 'unused': False}

_size = schema.non_negative_int.at(0)


def parse(req: wsgi.Request) -> snapshot_views.SnapshotFilter:
    """Return the filter of a list query, restricted by policies.

    Unknown keys are ignored; an empty value of a known key is refused
    (notes: Filters).
    """
    filters = snapshot_views.SnapshotFilter()
    _set_project(req, filters)
    for key, column in _EXACT.items():
        if (value := _value(req, key)) is not None:
            filters.snapshot[column] = value
    if (size := _value(req, 'size')) is not None:
        filters.snapshot['size'] = _number('size', size)
    filters.status = _value(req, 'status')
    if req.minor >= 36:
        _by_text(req, filters)
    if req.minor >= 73 and _value(req, 'metadata'):
        filters.metadata = literals.parse(req.query, 'metadata')
    if req.ctx.is_admin and (usage := _value(req, 'usage')) is not None:
        filters.used = _parse_used(usage)
    return filters


def _set_project(
    req: wsgi.Request, filters: snapshot_views.SnapshotFilter
) -> None:
    all_projects = paging.parse_flag(req.query, 'all_tenants') and req.ctx.can(
        'share_snapshot:list_all_projects'
    )
    filters.project_id = (
        _value(req, 'project_id') if all_projects else req.ctx.project_id
    )


def _by_text(
    req: wsgi.Request, filters: snapshot_views.SnapshotFilter
) -> None:
    for key, column in _LIKE.items():
        if (text := _value(req, key)) is not None:
            filters.like[column] = text
    for key in _DESCRIPTION:
        if (text := _value(req, key)) is not None:
            filters.snapshot['display_description'] = text


def _value(req: wsgi.Request, key: str) -> str | None:
    value = req.query.get(key)
    if value == '':
        raise exception.InvalidInput(reason=f'{key} must not be empty')
    return value


def _number(key: str, text: str) -> int:
    try:
        return _size(text)
    except schema.ValidationError as error:
        raise exception.InvalidInput(reason=f'{key} {error.rule}') from None


def _parse_used(usage: str) -> bool | None:
    if usage not in _USAGE:
        raise exception.InvalidInput(
            reason='usage must be one of: ' + ', '.join(_USAGE)
        )
    return _USAGE[usage]
