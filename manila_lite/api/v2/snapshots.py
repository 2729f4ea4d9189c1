"""Snapshots and their instances."""

from collections.abc import Mapping, Sequence
import types
import typing

from manila_lite import exception
from manila_lite.api import links, paging, schema as s, wsgi
from manila_lite.api.fields import LINKS, Field, attr, child, fields, fn
from manila_lite.api.filters import Filter, filters, non_empty, number
from manila_lite.api.v2 import literals, targets
from manila_lite.api.v2.access.rules import SnapshotAccessActionsController
from manila_lite.api.v2.metadata import MetadataController
from manila_lite.api.v2.shares.actions import SHARE_SERVERS_SINCE
from manila_lite.api.v2.shares.export_locations import ExportLocationsController
from manila_lite.db import rows
from manila_lite.db.queries import pages
from manila_lite.db.queries.snapshots import (
    exports as snapshot_exports,
    snapshots,
    views as snapshot_views,
)
from manila_lite.db.session import Database
from manila_lite.share.operations.managing import ManageSnapshotRequest
from manila_lite.states.snapshot_instance import SnapshotStatus

SORT_KEYS: dict[str, str] = {
    **{
        name: name
        for name in snapshot_views.SNAPSHOT_COLUMNS | snapshot_views.INSTANCE_SORT_KEYS
    },
    'name': 'display_name',
    'description': 'display_description',
}

_USAGE = {'any': None, 'used': True, 'unused': False}


def _parse_size(query: Mapping[str, str], key: str) -> int:
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
    Filter('size', parse=_parse_size),
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


FILTERS = (
    _ON_SNAPSHOT,
    _LIKE,
    _OTHERS,
    Filter('all_tenants', parse=paging.parse_flag),
    Filter('project_id'),
    Filter('with_count', parse=paging.parse_flag),
)


def parse_filter(req: wsgi.Request) -> snapshot_views.SnapshotFilter:
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


_NAME = s.string(255, nullable=True)

CREATE = s.schema(
    ['share_id'],
    wrapper='snapshot',
    share_id=s.trimmed(255, 1),
    name=s.alias('display_name', _NAME),
    description=s.alias('display_description', _NAME),
    metadata=s.since('2.73', s.mapping(s.string(1023, 1), nullable=True)),
    force=s.boolean,
)

UPDATE = s.schema(wrapper='snapshot', display_name=_NAME, display_description=_NAME)


def _size(row: typing.Any) -> int:
    """Return the size, or that of the share until it is reported."""
    return row.size or row.share_size


SUMMARY = fields(Field('id'), Field('name'), Field('links', LINKS))

DETAIL = fields(
    Field('id'),
    Field('share_id'),
    Field('share_size'),
    Field('created_at'),
    Field('status'),
    Field('name', attr('display_name')),
    Field('description', attr('display_description')),
    Field('size', fn(_size)),
    Field('share_proto'),
    Field('links', LINKS),
    Field('provider_location', since='2.12', admin_only=True),
    Field('user_id', since='2.17'),
    Field('project_id', since='2.17'),
    Field('metadata', child('metadata'), since='2.73', shape=dict[str, str]),
)


def show_snapshot(
    db: Database, req: wsgi.Request, snapshot_id: str, policy: str | None = None
) -> dict:
    """Return one snapshot in detail if the policy allows it."""
    listing = db.read(snapshot_views.get, snapshot_id)
    row = listing.rows[0] if listing.rows else None
    # 404 instead of 403: the response must not reveal that it exists.
    if (
        row is None
        or not targets.is_snapshot_visible(req.ctx, row)
        or (policy and not req.ctx.can(policy, row))
    ):
        raise exception.ShareSnapshotNotFound(snapshot_id=snapshot_id)
    return _detail(req, listing)


def _detail(req: wsgi.Request, listing: pages.Listing) -> dict:
    view = DETAIL.function(req.minor, req.ctx.is_admin)
    more = listing.children | {'links': links.Links(req, 'snapshots')}
    return {'snapshot': view(listing.rows[0], more)}


class SnapshotsController(paging.ListController):
    target = targets.SNAPSHOT.loader

    path = 'snapshots'
    key = 'snapshots'
    links_key = 'share_snapshots_links'
    has_count = True
    summary = SUMMARY
    details = DETAIL
    filters = FILTERS
    sort_keys = SORT_KEYS
    admin_sort_keys = ('provider_location',)
    policies = dict.fromkeys(('index', 'detail'), 'share_snapshot:get_all_snapshots')

    def read_page(
        self, req: wsgi.Request, page: paging.Page, *, detailed: bool
    ) -> pages.Listing:
        criteria = parse_filter(req)
        with_count = (detailed or req.minor >= 79) and paging.parse_flag(
            req.query, 'with_count'
        )
        return self.services.db.read(
            snapshot_views.list_page,
            criteria,
            page,
            detailed=detailed,
            count=with_count,
        )

    @wsgi.method(wsgi.IN_HANDLER, answer={'snapshot': DETAIL})
    def show(self, req: wsgi.Request, snapshot_id: str) -> dict:
        return self._response(req, snapshot_id, 'share_snapshot:get_snapshot')

    def _response(
        self, req: wsgi.Request, snapshot_id: str, policy: str | None = None
    ) -> dict:
        return show_snapshot(self.services.db, req, snapshot_id, policy)

    @wsgi.method(
        'share:create_snapshot',
        body=CREATE,
        status=202,
        refused={exception.InvalidStatus: exception.InvalidShare},
        answer={'snapshot': DETAIL},
    )
    def create(self, req: wsgi.Request, args: dict) -> dict:
        """Accept a new snapshot; responds before it is taken."""
        share = self._share(req, args['share_id'])
        metadata = args.get('metadata') or {}
        values = self.services.snapshots.create(
            req.ctx,
            share,
            name=args.get('name'),
            description=args.get('description'),
            metadata=metadata,
            force=args.get('force', False),
        )
        row = types.SimpleNamespace(
            **values, status=SnapshotStatus.CREATING, provider_location=None
        )
        return _detail(req, pages.Listing([row], {'metadata': {row.id: metadata}}))

    def _share(self, req: wsgi.Request, share_id: str) -> rows.ShareTarget:
        row = targets.SHARE.get(self.services.db, req.ctx, share_id)
        req.ctx.authorize('share:create_snapshot', row)
        return row

    @wsgi.method(
        'share:snapshot_update', target=True, body=UPDATE, answer={'snapshot': DETAIL}
    )
    def update(
        self, req: wsgi.Request, snapshot: rows.SnapshotTarget, args: dict
    ) -> dict:
        self.services.snapshots.update(req.ctx, snapshot, args)
        return self._response(req, snapshot.id)

    @wsgi.method(
        'share:delete_snapshot',
        target=True,
        status=202,
        refused={exception.InvalidStatus: exception.InvalidShareSnapshot},
    )
    def delete(self, req: wsgi.Request, snapshot: rows.SnapshotTarget) -> None:
        self.services.snapshots.delete(req.ctx, snapshot)


class SnapshotActionsController(SnapshotAccessActionsController):
    @wsgi.action(
        'reset_status', 'share_snapshot:reset_status', renamed='2.7', body=s.STATUS
    )
    def reset_status(
        self, req: wsgi.Request, snapshot: rows.SnapshotTarget, args: dict
    ) -> None:
        """Set the status of all instances of the snapshot."""
        self.services.snapshots.reset_status(req.ctx, snapshot, args['status'])

    @wsgi.action(
        'force_delete',
        'share_snapshot:force_delete',
        renamed='2.7',
        refused={exception.InvalidStatus: exception.Forbidden},
    )
    def force_delete(self, req: wsgi.Request, snapshot: rows.SnapshotTarget) -> None:
        self.services.snapshots.force_delete(req.ctx, snapshot)

    @wsgi.action(
        'unmanage',
        'share_snapshot:unmanage_snapshot',
        since='2.12',
        refused={
            exception.InvalidStatus: exception.Forbidden,
            exception.InvalidShareSnapshot: exception.Forbidden,
        },
    )
    def unmanage(self, req: wsgi.Request, snapshot: rows.SnapshotTarget) -> None:
        """Request that a snapshot is unmanaged; it stays on the back end."""
        refuse_servers(req, snapshot)
        self.services.managing.unmanage_snapshot(req.ctx, snapshot)


MANAGE = s.schema(
    ['share_id', 'provider_location'],
    wrapper='snapshot',
    share_id=s.trimmed(255, 1),
    provider_location=s.string(255, 1),
    name=s.alias('display_name', _NAME),
    description=s.alias('display_description', _NAME),
    driver_options=s.obj(extra='allow', nullable=True),
    metadata=s.since('2.73', s.mapping(s.string(1023, 1), nullable=True)),
)


class SnapshotManageController(wsgi.Controller):
    @wsgi.method(
        'share_snapshot:manage_snapshot',
        body=MANAGE,
        status=202,
        answer={'snapshot': DETAIL},
    )
    def create(self, req: wsgi.Request, args: dict) -> dict:
        """Accept a snapshot; responds before the back end is asked."""
        share = targets.SHARE.get(self.services.db, req.ctx, args['share_id'])
        refuse_servers(req, share)
        snapshot_id = self.services.managing.manage_snapshot(
            req.ctx,
            share,
            ManageSnapshotRequest(
                provider_location=args['provider_location'],
                name=args.get('name'),
                description=args.get('description'),
                metadata=args.get('metadata') or {},
                driver_options=args.get('driver_options') or {},
            ),
        )
        return show_snapshot(self.services.db, req, snapshot_id)


def refuse_servers(req: wsgi.Request, row: typing.Any) -> None:
    """Refuse snapshots on share servers before version 2.49."""
    if row.share_server_id and req.minor < SHARE_SERVERS_SINCE:
        raise exception.ShareNotAllowed(
            reason='snapshots on a share server can be managed and '
            'unmanaged from version 2.49 on'
        )


class SnapshotMetadataController(MetadataController):
    target = targets.SNAPSHOT.loader

    table = snapshots.METADATA
    policies = {
        'get': 'share_snapshot:get_metadata',
        'update': 'share_snapshot:update_metadata',
        'delete': 'share_snapshot:delete_metadata',
    }


_OF_ALL = (Field('id'), Field('snapshot_id'), Field('status'))

INSTANCE_SUMMARY = fields(*_OF_ALL)

INSTANCE_DETAIL = fields(
    *_OF_ALL,
    Field('created_at'),
    Field('updated_at'),
    Field('share_id'),
    Field('share_instance_id'),
    Field('progress'),
    Field('provider_location'),
)


class SnapshotInstancesController(paging.ListController):
    target = targets.SNAPSHOT_INSTANCE.loader

    path = 'snapshot-instances'
    key = 'snapshot_instances'
    summary = INSTANCE_SUMMARY
    details = INSTANCE_DETAIL
    filters = (Filter('snapshot_id'),)
    policies = {
        'index': 'share_snapshot_instance:index',
        'detail': 'share_snapshot_instance:detail',
    }

    def read_page(
        self, req: wsgi.Request, page: paging.Page, *, detailed: bool
    ) -> pages.Listing:
        return pages.Listing(
            self.services.db.read(
                snapshot_views.list_instances, req.query.get('snapshot_id'), page
            ),
            {},
        )

    @wsgi.method(
        'share_snapshot_instance:show',
        target=True,
        answer={'snapshot_instance': INSTANCE_DETAIL},
    )
    def show(self, req: wsgi.Request, instance: rows.IdRow) -> dict:
        view = INSTANCE_DETAIL.function(req.minor, True)
        return {'snapshot_instance': view(instance)}


class SnapshotInstanceActionsController(wsgi.Controller):
    target = targets.SNAPSHOT_INSTANCE.loader

    @wsgi.action(
        'reset_status',
        'share_snapshot_instance:reset_status',
        since='2.19',
        body=s.STATUS,
    )
    def reset_status(self, req: wsgi.Request, instance: rows.IdRow, args: dict) -> None:
        self.services.snapshots.reset_instance_status(
            req.ctx, instance.id, args['status']
        )


LOCATIONS = fields(
    Field('id'),
    Field('path'),
    Field('links', LINKS),
    Field('share_snapshot_instance_id', admin_only=True),
    Field('is_admin_only', admin_only=True),
)
LOCATION = fields(*LOCATIONS.rows, Field('created_at'), Field('updated_at'))


class SnapshotExportLocationsController(ExportLocationsController):
    target = targets.SNAPSHOT.loader

    key = 'share_snapshot_export_location'
    summary = LOCATIONS
    details = LOCATION
    policies = {
        'index': 'share_snapshot_export_location:index',
        'show': 'share_snapshot_export_location:show',
    }

    def read(self, req: wsgi.Request, target: rows.SnapshotTarget) -> pages.Listing:
        found = self.services.db.read(
            snapshot_exports.list_for_snapshot,
            target.id,
            every_instance=req.ctx.is_admin,
        )
        return _with_links(req, found, target.id)


class SnapshotInstanceExportLocationsController(ExportLocationsController):
    target = targets.SNAPSHOT_INSTANCE.loader

    key = 'share_snapshot_export_location'
    summary = LOCATIONS
    details = LOCATION
    lists_all = True
    shows_all = True
    policies = {
        'index': 'share_snapshot_instance_export_location:index',
        'show': 'share_snapshot_instance_export_location:show',
    }

    def read(
        self, req: wsgi.Request, target: rows.SnapshotInstanceViewRow
    ) -> pages.Listing:
        found = self.services.db.read(snapshot_exports.list_for_instance, target.id)
        return _with_links(req, found, target.snapshot_id)


def _with_links(
    req: wsgi.Request, found: Sequence[rows.SnapshotExportLocationRow], snapshot_id: str
) -> pages.Listing:
    """Return the rows with links, which are the same for a snapshot's instance."""
    path = f'snapshots/{snapshot_id}/export-locations'
    return pages.Listing(found, {'links': links.Links(req, path)})
