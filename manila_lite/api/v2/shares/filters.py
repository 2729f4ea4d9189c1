"""Filters of share lists, and the check of admin-only metadata."""

from manila_lite.api import paging
from manila_lite.api import wsgi
from manila_lite.api.v2 import literals
from manila_lite.db.queries.shares import views as share_views

SORT_KEYS: dict[str, str] = {
    **{
        name: name
        for name in share_views.SHARE_COLUMNS | share_views.INSTANCE_SORT_KEYS
    },
    'name': 'display_name',
    'description': 'display_description',
}

_ON_SHARE = {
    'name': 'display_name',
    'display_name': 'display_name',
    'snapshot_id': 'snapshot_id',
    'share_group_id': 'share_group_id',
    'share_proto': 'share_proto',
    'source_share_group_snapshot_member_id': (
        'source_share_group_snapshot_member_id'
    ),
}
_DESCRIPTION = ('description', 'display_description')
_ON_INSTANCE = ('status', 'share_type_id', 'share_network_id')
_LIKE = {
    'name~': 'display_name',
    'display_name~': 'display_name',
    'description~': 'display_description',
    'display_description~': 'display_description',
}


def parse(req: wsgi.Request) -> share_views.ShareFilter:
    """Return the filter of a list query, restricted by policies.

    Unknown keys are ignored (notes: Filters).
    """
    query = req.query
    filters = share_views.ShareFilter(
        include_hidden=req.ctx.can(
            'share:list_shares_in_deferred_deletion_states'
        )
    )
    _set_project(req, filters)
    for key, column in _ON_SHARE.items():
        if key in query:
            filters.share[column] = query[key]
    for key in _ON_INSTANCE:
        if key in query:
            filters.instance[key] = query[key]
    if 'share_type' in query:
        filters.instance['share_type_id'] = query['share_type']
    # Adds public shares of other projects to those of the own project.
    filters.include_public = paging.parse_flag(query, 'is_public')
    filters.share['is_soft_deleted'] = req.minor >= 69 and paging.parse_flag(
        query, 'is_soft_deleted'
    )
    filters.metadata = literals.parse(query, 'metadata')
    _add_versioned(req, filters)
    _add_privileged(req, filters)
    return filters


def _set_project(req: wsgi.Request, filters: share_views.ShareFilter) -> None:
    all_projects = paging.parse_flag(req.query, 'all_tenants') and req.ctx.can(
        'share:list_all_projects'
    )
    if not all_projects:
        filters.project_id = req.ctx.project_id
    elif req.query.get('project_id'):
        filters.project_id = req.query['project_id']


def _add_versioned(
    req: wsgi.Request, filters: share_views.ShareFilter
) -> None:
    query = req.query
    if req.minor >= 35:
        filters.export_id = query.get('export_location_id')
        filters.export_path = query.get('export_location_path')
    if req.minor >= 36:
        for key, column in _LIKE.items():
            if query.get(key):
                filters.like[column] = query[key]
        for key in _DESCRIPTION:
            if key in query:
                filters.share['display_description'] = query[key]
    if req.minor >= 84 and 'mount_point_name' in query:
        filters.instance['mount_point_name'] = query['mount_point_name']
    if req.minor >= 97:
        filters.zone = query.get('availability_zone')


def _add_privileged(
    req: wsgi.Request, filters: share_views.ShareFilter
) -> None:
    query, ctx = req.query, req.ctx
    for key, policy in (
        ('host', 'share:list_by_host'),
        ('share_server_id', 'share:list_by_share_server_id'),
    ):
        if key in query:
            ctx.authorize(policy)
            filters.instance[key] = query[key]
    if not ctx.is_admin:
        return
    filters.extra_specs = literals.parse(query, 'extra_specs')
    if 'encryption_key_ref' in query and req.minor >= 90:
        filters.instance['encryption_key_ref'] = query['encryption_key_ref']
