"""Export locations of snapshots and snapshot instances."""

from collections.abc import Sequence
import typing

from manila_lite import exception
from manila_lite.api import links, wsgi
from manila_lite.api.fields import LINKS, Field, fields
from manila_lite.api.v2.targets import (
    SnapshotInstanceTargetController,
    SnapshotTargetController,
)
from manila_lite.db import rows
from manila_lite.db.queries.snapshots import exports as snapshot_exports

SUMMARY = fields(
    Field('id'),
    Field('path'),
    Field('links', LINKS),
    Field('share_snapshot_instance_id', admin_only=True),
    Field('is_admin_only', admin_only=True),
)
DETAIL = fields(*SUMMARY.rows, Field('created_at'), Field('updated_at'))


def _response(req: wsgi.Request, rows: typing.Sequence, snapshot_id: str) -> dict:
    view = SUMMARY.many(req.minor, req.ctx.is_admin)
    return {'share_snapshot_export_locations': view(rows, _more(req, snapshot_id))}


def _one_response(req: wsgi.Request, row: typing.Any, snapshot_id: str) -> dict:
    view = DETAIL.function(req.minor, req.ctx.is_admin)
    return {'share_snapshot_export_location': view(row, _more(req, snapshot_id))}


def _more(req: wsgi.Request, snapshot_id: str) -> dict:
    """Return the links, which are the same for a snapshot's instance."""
    return {'links': links.Links(req, f'snapshots/{snapshot_id}/export-locations')}


class SnapshotExportLocationsController(SnapshotTargetController):
    @wsgi.method(
        'share_snapshot_export_location:index',
        target=True,
        answer={'share_snapshot_export_locations': [SUMMARY]},
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
        answer={'share_snapshot_export_location': DETAIL},
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


class SnapshotInstanceExportLocationsController(SnapshotInstanceTargetController):
    @wsgi.method(
        'share_snapshot_instance_export_location:index',
        target=True,
        answer={'share_snapshot_export_locations': [SUMMARY]},
    )
    def index(self, req: wsgi.Request, instance: rows.SnapshotInstanceViewRow) -> dict:
        return _response(req, self._listing(instance), instance.snapshot_id)

    @wsgi.method(
        'share_snapshot_instance_export_location:show',
        target=True,
        answer={'share_snapshot_export_location': DETAIL},
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
