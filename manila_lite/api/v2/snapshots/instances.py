"""Instances of snapshots and their export locations."""

from collections.abc import Sequence
import typing

from manila_lite import exception
from manila_lite.api import links, paging, wsgi
from manila_lite.api.fields import LINKS, Field, fields
from manila_lite.api.filters import Filter
from manila_lite.api.v2 import targets
from manila_lite.api.v2.shares.actions import STATUS
from manila_lite.db import rows
from manila_lite.db.queries import pages
from manila_lite.db.queries.snapshots import exports as snapshot_exports, views

_OF_ALL = (Field('id'), Field('snapshot_id'), Field('status'))

SUMMARY = fields(*_OF_ALL)

DETAIL = fields(
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
    summary = SUMMARY
    details = DETAIL
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
                views.list_instances, req.query.get('snapshot_id'), page
            ),
            {},
        )

    @wsgi.method(
        'share_snapshot_instance:show',
        target=True,
        answer={'snapshot_instance': DETAIL},
    )
    def show(self, req: wsgi.Request, instance: rows.IdRow) -> dict:
        view = DETAIL.function(req.minor, True)
        return {'snapshot_instance': view(instance)}


class SnapshotInstanceActionsController(wsgi.Controller):
    target = targets.SNAPSHOT_INSTANCE.loader

    @wsgi.action(
        'reset_status',
        'share_snapshot_instance:reset_status',
        since='2.19',
        body=STATUS,
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


def _response(req: wsgi.Request, rows: typing.Sequence, snapshot_id: str) -> dict:
    view = LOCATIONS.many(req.minor, req.ctx.is_admin)
    items = view(rows, _more(req, snapshot_id))
    return {'share_snapshot_export_locations': paging.behind_marker(req, items)}


def _one_response(req: wsgi.Request, row: typing.Any, snapshot_id: str) -> dict:
    view = LOCATION.function(req.minor, req.ctx.is_admin)
    return {'share_snapshot_export_location': view(row, _more(req, snapshot_id))}


def _more(req: wsgi.Request, snapshot_id: str) -> dict:
    """Return the links, which are the same for a snapshot's instance."""
    return {'links': links.Links(req, f'snapshots/{snapshot_id}/export-locations')}


class SnapshotExportLocationsController(wsgi.Controller):
    target = targets.SNAPSHOT.loader

    @wsgi.method(
        'share_snapshot_export_location:index',
        target=True,
        answer={'share_snapshot_export_locations': [LOCATIONS]},
        query=(paging.MARKER,),
    )
    def index(self, req: wsgi.Request, snapshot: rows.SnapshotTarget) -> dict:
        rows = [
            row
            for row in self._listing(req, snapshot)
            if req.ctx.is_admin or not row.is_admin_only
        ]
        return _response(req, rows, snapshot.id)

    @wsgi.method(
        'share_snapshot_export_location:show',
        target=True,
        answer={'share_snapshot_export_location': LOCATION},
    )
    def show(
        self, req: wsgi.Request, snapshot: rows.SnapshotTarget, export_location_id: str
    ) -> dict:
        row = snapshot_exports.get_by_id(
            self._listing(req, snapshot), export_location_id
        )
        if row.is_admin_only and not req.ctx.is_admin:
            raise exception.Forbidden('The export location is for administrators only.')
        return _one_response(req, row, snapshot.id)

    def _listing(
        self, req: wsgi.Request, snapshot: rows.SnapshotTarget
    ) -> Sequence[rows.SnapshotExportLocationRow]:
        return self.services.db.read(
            snapshot_exports.list_for_snapshot,
            snapshot.id,
            every_instance=req.ctx.is_admin,
        )


class SnapshotInstanceExportLocationsController(wsgi.Controller):
    target = targets.SNAPSHOT_INSTANCE.loader

    @wsgi.method(
        'share_snapshot_instance_export_location:index',
        target=True,
        answer={'share_snapshot_export_locations': [LOCATIONS]},
        query=(paging.MARKER,),
    )
    def index(self, req: wsgi.Request, instance: rows.SnapshotInstanceViewRow) -> dict:
        return _response(req, self._listing(instance), instance.snapshot_id)

    @wsgi.method(
        'share_snapshot_instance_export_location:show',
        target=True,
        answer={'share_snapshot_export_location': LOCATION},
    )
    def show(
        self,
        req: wsgi.Request,
        instance: rows.SnapshotInstanceViewRow,
        export_location_id: str,
    ) -> dict:
        row = snapshot_exports.get_by_id(self._listing(instance), export_location_id)
        return _one_response(req, row, instance.snapshot_id)

    def _listing(
        self, instance: rows.IdRow
    ) -> Sequence[rows.SnapshotExportLocationRow]:
        return self.services.db.read(snapshot_exports.list_for_instance, instance.id)
