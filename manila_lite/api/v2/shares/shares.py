"""Shares: list, show, create, update, delete."""

from collections.abc import Mapping
import typing

from manila_lite import exception
from manila_lite.api import links, paging, schema as s, wsgi
from manila_lite.api.fields import (
    LINKS,
    Field,
    FieldValue,
    attr,
    child,
    fields,
    fn,
    fn2,
)
from manila_lite.api.filters import Filter, exact, filters
from manila_lite.api.v2 import literals, metadata, targets
from manila_lite.api.v2.types.extra_specs import TENANT_VISIBLE
from manila_lite.db import rows
from manila_lite.db.queries import pages
from manila_lite.db.queries.shares import shares, views as share_views
from manila_lite.db.queries.shares.views import Exports
from manila_lite.db.rows import ShareTarget
from manila_lite.db.session import Database
from manila_lite.share.operations.shares.share_request import ShareRequest
from manila_lite.states.access_rule import RulesStatus
from manila_lite.states.share_instance import InstanceStatus

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


FILTERS = (
    _ON_SHARE,
    _ON_INSTANCE,
    _LIKE,
    _OTHERS,
    Filter('all_tenants', parse=paging.parse_flag),
    Filter('project_id'),
    Filter('with_count', parse=paging.parse_flag),
)


def parse_filter(req: wsgi.Request) -> share_views.ShareFilter:
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


EXPORT_PATHS_UNTIL = 8
"""The last minor version whose view shows export paths."""

_OWN_LIST_FACTOR = 10
"""Factor of the maximum page length for the shares of one project.

Clients expect all of them from a request without a limit.
"""

_NAME = s.string(255, nullable=True)

CREATE = s.schema(
    ['share_proto', 'size'],
    wrapper='share',
    share_proto=s.string(255, 1),
    size=s.integer(1, nullable=True),
    name=s.alias('display_name', _NAME),
    description=s.alias('display_description', _NAME),
    share_type=s.alias(
        'volume_type', s.trimmed(255, nullable=True), when_both='refuse'
    ),
    share_network_id=s.optional_id(),
    snapshot_id=s.optional_id(),
    availability_zone=s.optional_id(),
    metadata=s.mapping(s.string(1023, 1), nullable=True),
    is_public=s.boolean,
    share_group_id=s.since('2.31', s.optional_id()),
    scheduler_hints=s.since(
        '2.65',
        s.obj(
            nullable=True,
            same_host=s.string(4096),
            different_host=s.string(4096),
            only_host=s.since('2.67', s.string(255)),
        ),
    ),
    mount_point_name=s.since('2.84', s.string(255, nullable=True)),
    # Not an optional id: an empty one would create a share without encryption.
    encryption_key_ref=s.since('2.90', s.uuid),
)

UPDATE = s.schema(
    wrapper='share', display_name=_NAME, display_description=_NAME, is_public=s.boolean
)

SUMMARY = fields(Field('id'), Field('name'), Field('links', LINKS))


def _status_before_progress(row: rows.PlainInstanceRow) -> str:
    if row.status == InstanceStatus.CREATING_FROM_SNAPSHOT:
        return InstanceStatus.CREATING
    return row.status


def _size(row: typing.Any) -> int | None:
    """Return the size; None until the back end has reported it.

    If it never has, the size is 1 as published.
    """
    if row.status == InstanceStatus.MANAGE_STARTING:
        return None
    return row.size or 1


def _first_path(row: rows.IdRow, more: Mapping[str, typing.Any]) -> str | None:
    return next(iter(more['exports'].get(row.id, ())), None)


# Fields that shares and share instances have in common.
STATUS_AND_EXPORT_FIELDS = (
    Field('status', fn(_status_before_progress), until='2.53'),
    Field('status', since='2.54'),
    Field('export_location', fn2(_first_path), until='2.8'),
    Field('export_locations', child('exports', []), until='2.8', shape=list[str]),
    Field('progress', since='2.54'),
)

# Several instances have been aggregated already. One is not passed to
# `aggregate_status`, which would take a twentieth of a long list.
_RULES_STATUS = FieldValue(
    "more['rules_status'].get(row.id) or (row.access_rules_status"
    f" if row.status == $ else '{RulesStatus.ACTIVE}')",
    InstanceStatus.AVAILABLE,
)

DETAIL = fields(
    *STATUS_AND_EXPORT_FIELDS,
    Field('id'),
    Field('size', fn(_size)),
    Field('availability_zone'),
    Field('created_at'),
    Field('name', attr('display_name')),
    Field('description', attr('display_description')),
    Field('project_id'),
    Field('snapshot_id'),
    Field('share_network_id'),
    Field('share_proto'),
    Field('metadata', child('metadata'), shape=dict[str, str]),
    Field('volume_type', attr('share_type_name')),
    Field('is_public'),
    Field('links', LINKS),
    Field('share_type', attr('share_type_name'), until='2.5'),
    Field('share_type', attr('share_type_id'), since='2.6'),
    Field('share_type_name', since='2.6'),
    Field('snapshot_support', since='2.2'),
    Field('task_state', since='2.5'),
    Field('access_rules_status', _RULES_STATUS, since='2.10'),
    Field('replication_type', since='2.11'),
    Field('has_replicas', child('replicated', False), since='2.11'),
    Field('user_id', since='2.16'),
    Field('create_share_from_snapshot_support', since='2.24'),
    Field('revert_to_snapshot_support', since='2.27'),
    Field('share_group_id', since='2.31'),
    Field('source_share_group_snapshot_member_id', since='2.31'),
    Field('mount_snapshot_support', since='2.32'),
    Field('is_soft_deleted', since='2.69'),
    Field('scheduled_to_be_deleted_at', since='2.69'),
    Field('source_backup_id', since='2.80'),
    Field('encryption_key_ref', since='2.90'),
    Field('snapshot_inherit_share_access_support', since='2.99'),
    Field('share_server_id', admin_only=True),
    Field('host', admin_only=True),
)


def _exports(req: wsgi.Request) -> Exports:
    """Return which export paths the version shows to the caller."""
    if req.minor > EXPORT_PATHS_UNTIL:
        return Exports.NONE
    return Exports.ALL if req.ctx.is_admin else Exports.OPEN


def show_share(db: Database, req: wsgi.Request, share_id: str, policy: str) -> dict:
    """Return one share in detail if the policy allows it."""
    found = db.read(share_views.get, share_id, exports=_exports(req))
    return _shown(req, share_id, found, policy)


def _shown(req: wsgi.Request, share_id: str, found: pages.Listing, policy: str) -> dict:
    row = found.rows[0] if found.rows else None
    if row is None or not targets.is_share_visible(req.ctx, row):
        raise exception.ShareNotFound(share_id=share_id)
    if not row.is_public and not req.ctx.can(policy, row):
        raise exception.ShareNotFound(share_id=share_id)
    more = found.children | {'links': links.Links(req, 'shares')}
    view = DETAIL.function(req.minor, req.ctx.can(_HOST_ADMIN))
    return {'share': view(row, more)}


class SharesController(paging.ListController):
    target = targets.SHARE.loader

    path = 'shares'
    key = 'shares'
    has_count = True
    summary = SUMMARY
    details = DETAIL
    filters = FILTERS
    sort_keys = SORT_KEYS
    policies = dict.fromkeys(('index', 'detail'), 'share:get_all')

    def parse_page(self, req: wsgi.Request) -> paging.Page:
        factor = 1 if lists_all_projects(req) else _OWN_LIST_FACTOR
        return paging.parse(
            req.query,
            cap=self.max_limit * factor,
            sort_keys=SORT_KEYS,
            ignored_keys=ignored_sort_keys(req),
            empty_at_zero=True,
        )

    def read_page(
        self, req: wsgi.Request, page: paging.Page, *, detailed: bool
    ) -> pages.Listing:
        criteria = parse_filter(req)
        with_count = (detailed or req.minor >= 42) and paging.parse_flag(
            req.query, 'with_count'
        )
        return self.services.db.read(
            share_views.list_page,
            criteria,
            page,
            exports=_exports(req) if detailed else None,
            count=with_count,
        )

    def sees_admin_fields(self, req: wsgi.Request) -> bool:
        return req.ctx.can(_HOST_ADMIN)

    @wsgi.method(wsgi.IN_HANDLER, answer={'share': DETAIL})
    def show(self, req: wsgi.Request, share_id: str) -> dict:
        return self._response(req, share_id)

    def _response(
        self, req: wsgi.Request, share_id: str, policy: str = 'share:get'
    ) -> dict:
        return show_share(self.services.db, req, share_id, policy)

    @wsgi.method('share:create', body=CREATE, answer={'share': DETAIL})
    def create(self, req: wsgi.Request, args: dict) -> dict:
        """Accept a new share; responds before it is placed."""
        if args.get('is_public'):
            req.ctx.authorize('share:create_public_share')
        metadata.refuse_admin_only(
            req.ctx,
            args.get('metadata') or {},
            self.services.admin_only_metadata,
            'share:update_admin_only_metadata',
        )
        if args['size'] is None and not args.get('snapshot_id'):
            raise exception.InvalidInput(
                reason='size must be an integer from 1 to 2147483647'
            )
        new = self.services.shares.create(
            req.ctx,
            ShareRequest(
                share_proto=args['share_proto'],
                size=args['size'],
                name=args.get('name'),
                description=args.get('description'),
                share_type=args.get('share_type'),
                snapshot_id=self._snapshot_id(req, args.get('snapshot_id')),
                share_group_id=self._group_id(req, args.get('share_group_id')),
                share_network_id=targets.usable_network_id(
                    self.services.db, req.ctx, args.get('share_network_id')
                ),
                availability_zone=args.get('availability_zone'),
                metadata=args.get('metadata') or {},
                is_public=args.get('is_public', False),
                scheduler_hints=args.get('scheduler_hints') or {},
                mount_point_name=args.get('mount_point_name'),
                encryption_key_ref=args.get('encryption_key_ref'),
                apply_type_zones=req.minor >= 48,
                check_clone_support=req.minor >= 24,
            ),
        )
        return _shown(req, new.rows[0].id, new, 'share:create')

    def _group_id(self, req: wsgi.Request, group_id: str | None) -> str | None:
        """Return the id of a share group that the caller may use, or None."""
        if not group_id:
            return None
        return targets.GROUP.get(self.services.db, req.ctx, group_id).id

    def _snapshot_id(self, req: wsgi.Request, snapshot_id: str | None) -> str | None:
        """Return the id of a snapshot visible to the caller, or None."""
        if not snapshot_id:
            return None
        row = targets.SNAPSHOT.get(self.services.db, req.ctx, snapshot_id)
        if not req.ctx.can('share_snapshot:get_snapshot', row):
            raise exception.ShareSnapshotNotFound(snapshot_id=snapshot_id)
        return row.id

    @wsgi.method('share:update', target=True, body=UPDATE, answer={'share': DETAIL})
    def update(self, req: wsgi.Request, share: rows.ShareTarget, args: dict) -> dict:
        if args.get('is_public'):
            req.ctx.authorize('share:set_public_share', share)
        self.services.shares.update(req.ctx, share, args)
        return self._response(req, share.id, 'share:update')

    @wsgi.method(
        'share:delete',
        target=True,
        status=202,
        refused={exception.InvalidStatus: exception.ShareNotAllowed},
        query=(Filter('share_group_id'),),
    )
    def delete(self, req: wsgi.Request, share: rows.ShareTarget) -> None:
        if share.share_group_id and (
            req.query.get('share_group_id') != share.share_group_id
        ):
            raise exception.InvalidInput(
                reason='share_group_id must name the group of the share'
            )
        self.services.shares.delete(req.ctx, share)


_HOST_ADMIN = 'context_is_host_admin'


class ShareMetadataController(metadata.MetadataController):
    target = targets.SHARE.loader

    table = shares.METADATA
    policies = {
        'get': 'share:get_share_metadata',
        'update': 'share:update_share_metadata',
        'delete': 'share:delete_share_metadata',
        'update_admin_only': 'share:update_admin_only_metadata',
    }
    public_reads = ('share:get_share_metadata',)

    @property
    def admin_only(self) -> frozenset[str]:
        return self.services.admin_only_metadata

    def set_values(
        self,
        req: wsgi.Request,
        target: metadata.IdentifiedRow,
        parent: metadata.IdentifiedRow,
        values: dict[str, str],
        *,
        replace: bool,
    ) -> dict[str, str]:
        return self.services.share_metadata.set_values(
            req.ctx,
            typing.cast(ShareTarget, parent),
            values,
            replace=replace,
            keep=self.protected_keys(req, target) if replace else frozenset(),
        )
