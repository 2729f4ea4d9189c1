"""Instances of snapshots and their export locations."""

from collections.abc import Sequence

from manila_lite.api import links, paging, schema as s, wsgi
from manila_lite.api.fields import LINKS, Field, fields
from manila_lite.api.filters import Filter
from manila_lite.api.v2 import targets
from manila_lite.api.v2.shares.export_locations import ExportLocationsController
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
