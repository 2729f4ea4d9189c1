"""What the query of a share list means, and what metadata may hold."""

from collections.abc import Collection, Mapping
import typing

from manila_lite import exception
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
    """The filter a list query asks for, within the rights of the caller.

    Unknown keys are ignored (notes: Filters).
    """
    query = req.query
    wanted = share_views.ShareFilter(
        include_hidden=req.ctx.can(
            'share:list_shares_in_deferred_deletion_states'
        )
    )
    _whose(req, wanted)
    for key, column in _ON_SHARE.items():
        if key in query:
            wanted.share[column] = query[key]
    for key in _ON_INSTANCE:
        if key in query:
            wanted.instance[key] = query[key]
    if 'share_type' in query:
        wanted.instance['share_type_id'] = query['share_type']
    # Own shares are listed in any case; public ones of others join them.
    wanted.include_public = paging.parse_flag(query, 'is_public')
    wanted.share['is_soft_deleted'] = req.minor >= 69 and paging.parse_flag(
        query, 'is_soft_deleted'
    )
    wanted.metadata = literals.parse(query, 'metadata')
    _windowed(req, wanted)
    _with_rights(req, wanted)
    return wanted


def _whose(req: wsgi.Request, wanted: share_views.ShareFilter) -> None:
    everybody = paging.parse_flag(req.query, 'all_tenants') and req.ctx.can(
        'share:list_all_projects'
    )
    if not everybody:
        wanted.project_id = req.ctx.project_id
    elif req.query.get('project_id'):
        wanted.project_id = req.query['project_id']


def _windowed(req: wsgi.Request, wanted: share_views.ShareFilter) -> None:
    query = req.query
    if req.minor >= 35:
        wanted.export_id = query.get('export_location_id')
        wanted.export_path = query.get('export_location_path')
    if req.minor >= 36:
        for key, column in _LIKE.items():
            if query.get(key):
                wanted.like[column] = query[key]
        for key in _DESCRIPTION:
            if key in query:
                wanted.share['display_description'] = query[key]
    if req.minor >= 84 and 'mount_point_name' in query:
        wanted.instance['mount_point_name'] = query['mount_point_name']
    if req.minor >= 97:
        wanted.zone = query.get('availability_zone')


def _with_rights(req: wsgi.Request, wanted: share_views.ShareFilter) -> None:
    query, ctx = req.query, req.ctx
    for key, policy in (
        ('host', 'share:list_by_host'),
        ('share_server_id', 'share:list_by_share_server_id'),
    ):
        if key in query:
            ctx.authorize(policy)
            wanted.instance[key] = query[key]
    if not ctx.is_admin:
        return
    wanted.extra_specs = literals.parse(query, 'extra_specs')
    if 'encryption_key_ref' in query and req.minor >= 90:
        wanted.instance['encryption_key_ref'] = query['encryption_key_ref']


def check_metadata(
    metadata: Mapping[str, str],
    admin_only: Collection[str],
    ctx: typing.Any,
    target: typing.Any = None,
    policy: str = 'share:update_admin_only_metadata',
) -> None:
    """Refuse keys that only administrators may change."""
    held = sorted(set(metadata) & set(admin_only))
    if held and not ctx.can(policy, target):
        raise exception.AdminOnlyMetadata(keys=', '.join(held))
