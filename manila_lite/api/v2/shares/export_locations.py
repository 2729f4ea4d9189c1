"""Export locations of shares and share instances."""

from collections.abc import Mapping
import typing

from manila_lite import exception
from manila_lite.api import paging, schema as s, wsgi
from manila_lite.api.fields import Field, View, fields, fn2
from manila_lite.api.v2 import targets
from manila_lite.api.v2.metadata import IdentifiedRow, MetadataController
from manila_lite.db import rows
from manila_lite.db.queries.shares import instance_views
from manila_lite.db.queries.shares.instance_views import PREFERRED
from manila_lite.db.session import Database

ALL_REPLICAS_UNTIL = 46
"""The last minor version that shows the exports of all replicas."""

_UPDATE_ADMIN_ONLY = 'share_export_location:update_admin_only_metadata'
_IS_TRUE = s.boolean.at(0)


def _metadata(row: typing.Any, more: Mapping[str, typing.Any]) -> dict[str, str]:
    return {
        key: value
        for key, value in more['metadata'].get(row.id, {}).items()
        if key != PREFERRED
    }


def _preferred(row: typing.Any, more: Mapping[str, typing.Any]) -> bool:
    text = more['metadata'].get(row.id, {}).get(PREFERRED)
    try:
        return text is not None and _IS_TRUE(text)
    except s.ValidationError:
        return False


SUMMARY = fields(
    Field('id'),
    Field('path'),
    Field('preferred', fn2(_preferred), since='2.14'),
    Field('metadata', fn2(_metadata), since='2.87'),
    Field('share_instance_id', admin_only=True),
    Field('is_admin_only', admin_only=True),
)
DETAIL = fields(*SUMMARY.rows, Field('created_at'), Field('updated_at'))


def show_export_locations(
    req: wsgi.Request, found: instance_views.ExportLocationListing, view: View = SUMMARY
) -> dict:
    """Return all export locations that the caller may see."""
    admin = req.ctx.is_admin
    rows = [row for row in found.rows if admin or not row.is_admin_only]
    many = view.many(req.minor, admin)
    items = many(rows, {'metadata': found.metadata})
    return {'export_locations': paging.behind_marker(req, items)}


def show_export_location(
    req: wsgi.Request,
    found: instance_views.ExportLocationListing,
    row: typing.Any,
    view: View = DETAIL,
) -> dict:
    one = view.function(req.minor, req.ctx.is_admin)
    return {'export_location': one(row, {'metadata': found.metadata})}


def get_visible(
    req: wsgi.Request,
    found: instance_views.ExportLocationListing,
    export_location_id: str,
) -> typing.Any:
    """Return the row; Forbidden if it is for administrators only."""
    row = found.get(export_location_id)
    if row.is_admin_only and not req.ctx.is_admin:
        raise exception.Forbidden('The export location is for administrators only.')
    return row


def list_for_share(
    db: Database, req: wsgi.Request, share_id: str
) -> instance_views.ExportLocationListing:
    """Return the export locations of a share that the version shows."""
    return db.read(
        instance_views.list_for_share,
        share_id,
        all_replicas=req.minor <= ALL_REPLICAS_UNTIL,
    )


class ShareExportLocationsController(wsgi.Controller):
    target = targets.SHARE.loader

    public_reads = ('share_export_location:index', 'share_export_location:show')

    @wsgi.method(
        'share_export_location:index',
        target=True,
        answer={'export_locations': [SUMMARY]},
        query=(paging.MARKER,),
    )
    def index(self, req: wsgi.Request, share: rows.ShareTarget) -> dict:
        return show_export_locations(
            req, list_for_share(self.services.db, req, share.id)
        )

    @wsgi.method(
        'share_export_location:show', target=True, answer={'export_location': DETAIL}
    )
    def show(
        self, req: wsgi.Request, share: rows.ShareTarget, export_location_id: str
    ) -> dict:
        found = list_for_share(self.services.db, req, share.id)
        return show_export_location(
            req, found, get_visible(req, found, export_location_id)
        )


class ShareExportLocationMetadataController(MetadataController):
    target = targets.SHARE.loader

    table = instance_views.METADATA
    policies = {
        'get': 'share_export_location:get_metadata',
        'update': 'share_export_location:update_metadata',
        'delete': 'share_export_location:delete_metadata',
        'update_admin_only': _UPDATE_ADMIN_ONLY,
    }
    public_reads = ('share_export_location:get_metadata',)

    @property
    def admin_only(self) -> frozenset[str]:
        return self.services.admin_only_export_metadata

    def parent(
        self, req: wsgi.Request, target: IdentifiedRow, path: Mapping[str, str]
    ) -> IdentifiedRow:
        return get_visible(
            req,
            list_for_share(self.services.db, req, target.id),
            path['export_location_id'],
        )


class ShareInstanceExportLocationsController(wsgi.Controller):
    target = targets.SHARE_INSTANCE.loader

    @wsgi.method(
        'share_instance_export_location:index',
        target=True,
        answer={'export_locations': [SUMMARY]},
        query=(paging.MARKER,),
    )
    def index(self, req: wsgi.Request, instance: rows.IdRow) -> dict:
        return show_export_locations(req, self._listing(instance))

    @wsgi.method(
        'share_instance_export_location:show',
        target=True,
        answer={'export_location': DETAIL},
    )
    def show(
        self, req: wsgi.Request, instance: rows.IdRow, export_location_id: str
    ) -> dict:
        found = self._listing(instance)
        return show_export_location(req, found, found.get(export_location_id))

    def _listing(self, instance: rows.IdRow) -> instance_views.ExportLocationListing:
        return self.services.db.read(instance_views.list_for_instance, instance.id)
