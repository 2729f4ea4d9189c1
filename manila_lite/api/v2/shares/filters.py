"""Filters of share lists."""

from manila_lite.api import paging, wsgi
from manila_lite.api.filters import Filter, exact, filters
from manila_lite.api.v2 import literals, targets
from manila_lite.api.v2.types.extra_specs import TENANT_VISIBLE
from manila_lite.db.queries.shares import views as share_views

SORT_KEYS: dict[str, str] = {
    **{
        name: name
        for name in share_views.SHARE_COLUMNS | share_views.INSTANCE_SORT_KEYS
    },
    'name': 'display_name',
    'description': 'display_description',
}
_POLICIES = {
    'host': 'share:list_by_host',
    'share_server_id': 'share:list_by_share_server_id',
}
"""The policies of keys that filter by, or sort by, hidden fields."""

_ON_SHARE = filters(
    Filter('name', 'display_name'),
    Filter('display_name'),
    *exact(
        'snapshot_id',
        'share_group_id',
        'share_proto',
        'source_share_group_snapshot_member_id',
    ),
    Filter('description', 'display_description', since='2.36'),
    Filter('display_description', since='2.36'),
    Filter('is_soft_deleted', since='2.69', parse=paging.parse_flag),
)
_ON_INSTANCE = filters(
    *exact('status', 'share_type_id', 'share_network_id'),
    Filter('share_type', 'share_type_id'),
    Filter('mount_point_name', since='2.84'),
    *(Filter(key, policy=policy) for key, policy in _POLICIES.items()),
    Filter('encryption_key_ref', since='2.90', admin_only=True),
)
_LIKE = filters(
    Filter('name~', 'display_name', since='2.36'),
    Filter('display_name~', 'display_name', since='2.36'),
    Filter('description~', 'display_description', since='2.36'),
    Filter('display_description~', 'display_description', since='2.36'),
    skip_empty=True,
)
_OTHERS = filters(
    # Adds public shares of other projects to those of the own project.
    Filter('is_public', 'include_public', parse=paging.parse_flag),
    Filter('metadata', parse=literals.parse),
    Filter('extra_specs', parse=literals.parse),
    Filter('export_location_id', 'export_id', since='2.35'),
    Filter('export_location_path', 'export_path', since='2.35'),
    Filter('availability_zone', 'zone', since='2.97'),
)


QUERY = (
    *paging.query_keys(SORT_KEYS),
    _ON_SHARE,
    _ON_INSTANCE,
    _LIKE,
    _OTHERS,
    Filter('all_tenants', parse=paging.parse_flag),
    Filter('project_id'),
    Filter('with_count', parse=paging.parse_flag),
)


def parse(req: wsgi.Request) -> share_views.ShareFilter:
    """Return the filter of a list query, restricted by policies.

    Unknown keys are ignored (notes: Filters).
    """
    share = {'is_soft_deleted': False} | _ON_SHARE.values(req)
    others = _OTHERS.values(req)
    specs = others.get('extra_specs', {})
    if not (req.ctx.is_admin or specs.keys() <= TENANT_VISIBLE.keys()):
        # Values that are not shown are not found: they name back ends.
        share['id'] = ''
    return share_views.ShareFilter(
        project_id=_project_id(req),
        include_hidden=targets.sees_hidden(req.ctx),
        admin_exports=bool(req.ctx.is_admin),
        share=share,
        instance=_ON_INSTANCE.values(req),
        like=_LIKE.values(req),
        **others,
    )


def _project_id(req: wsgi.Request) -> str | None:
    """Return the id of the requested project, or None for all."""
    if lists_all_projects(req):
        return req.query.get('project_id') or None
    return req.ctx.project_id


def lists_all_projects(req: wsgi.Request) -> bool:
    """Whether the caller asks for the shares of all projects, and may."""
    return paging.parse_flag(req.query, 'all_tenants') and req.ctx.can(
        'share:list_all_projects'
    )


def ignored_sort_keys(req: wsgi.Request) -> set[str]:
    """Return the sort keys that the caller may not filter by either."""
    return {key for key, policy in _POLICIES.items() if not req.ctx.can(policy)}
