"""Shares: list, show, create, update, delete."""

from collections.abc import Mapping
import typing

from manila_lite import exception
from manila_lite.api import answers, links, paging, schema as s, wsgi
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
from manila_lite.api.filters import Filter
from manila_lite.api.services import ApiServices
from manila_lite.api.v2 import targets
from manila_lite.api.v2.metadata import refuse_admin_only
from manila_lite.api.v2.shares import filters as share_filters
from manila_lite.db import rows
from manila_lite.db.queries.shares import views as share_views
from manila_lite.db.queries.shares.views import Exports
from manila_lite.share.operations.shares.share_request import ShareRequest
from manila_lite.states.access_rule import RulesStatus
from manila_lite.states.share_instance import InstanceStatus

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


def _status_before_progress(row: typing.Any) -> str:
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


def _first_path(row: typing.Any, more: Mapping[str, typing.Any]) -> str | None:
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


def show_share(db: typing.Any, req: wsgi.Request, share_id: str, policy: str) -> dict:
    """Return one share in detail if the policy allows it."""
    found = db.read(share_views.get, share_id, exports=_exports(req))
    row = found.rows[0] if found.rows else None
    if row is None or not targets.is_share_visible(req.ctx, row):
        raise exception.ShareNotFound(share_id=share_id)
    if not row.is_public and not req.ctx.can(policy, row):
        raise exception.ShareNotFound(share_id=share_id)
    more = found.children | {'links': links.Links(req, 'shares')}
    view = DETAIL.function(req.minor, req.ctx.can(_HOST_ADMIN))
    return {'share': view(row, more)}


class SharesController(targets.ShareTargetController):
    def __init__(self, services: ApiServices):
        super().__init__(services)
        self._max_limit = services.conf.osapi_max_limit

    @wsgi.method(
        'share:get_all',
        answer=answers.page('shares', SUMMARY, count=True),
        query=share_filters.QUERY,
    )
    def index(self, req: wsgi.Request) -> dict:
        return self._list(req, detailed=False)

    @wsgi.method(
        'share:get_all',
        answer=answers.page('shares', DETAIL, count=True),
        query=share_filters.QUERY,
    )
    def detail(self, req: wsgi.Request) -> dict:
        return self._list(req, detailed=True)

    def _list(self, req: wsgi.Request, *, detailed: bool) -> dict:
        filters = share_filters.parse(req)
        page = paging.parse(
            req.query,
            cap=self._max_limit
            if share_filters.lists_all_projects(req)
            else self._max_limit * _OWN_LIST_FACTOR,
            sort_keys=share_filters.SORT_KEYS,
            ignored_keys=share_filters.ignored_sort_keys(req),
            empty_at_zero=True,
        )
        with_count = (detailed or req.minor >= 42) and paging.parse_flag(
            req.query, 'with_count'
        )
        if detailed:
            found = self.services.db.read(
                share_views.list_details,
                filters,
                page,
                count=with_count,
                exports=_exports(req),
            )
        else:
            found = self.services.db.read(
                share_views.list_summaries, filters, page, count=with_count
            )
        view = DETAIL if detailed else SUMMARY
        more = found.children | {'links': links.Links(req, 'shares')}
        items = view.many(req.minor, req.ctx.can(_HOST_ADMIN))(found.rows, more)
        path = 'shares/detail' if detailed else 'shares'
        return paging.answer(
            req, page, path, 'shares', items, found.rows, count=found.total
        )

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
        refuse_admin_only(
            req.ctx,
            args.get('metadata') or {},
            self.services.admin_only_metadata,
            'share:update_admin_only_metadata',
        )
        if args['size'] is None and not args.get('snapshot_id'):
            raise exception.InvalidInput(
                reason='size must be an integer from 1 to 2147483647'
            )
        share_id = self.services.shares.create(
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
        return self._response(req, share_id, 'share:create')

    def _group_id(self, req: wsgi.Request, group_id: str | None) -> str | None:
        """Return the id of a share group that the caller may use, or None."""
        if not group_id:
            return None
        return targets.get_group(self.services.db, req.ctx, group_id).id

    def _snapshot_id(self, req: wsgi.Request, snapshot_id: str | None) -> str | None:
        """Return the id of a snapshot visible to the caller, or None."""
        if not snapshot_id:
            return None
        row = targets.get_snapshot(self.services.db, req.ctx, snapshot_id)
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
