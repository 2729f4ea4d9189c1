"""Export locations of shares and their instances, and a base of such controllers."""

from collections.abc import Mapping
import typing

from manila_lite import exception
from manila_lite.api import answers, paging, schema as s, wsgi
from manila_lite.api.fields import Field, fields, fn2
from manila_lite.api.v2 import targets
from manila_lite.api.v2.metadata import IdentifiedRow, MetadataController
from manila_lite.db import rows
from manila_lite.db.queries import pages
from manila_lite.db.queries.shares import instance_views
from manila_lite.db.queries.shares.instance_views import PREFERRED
from manila_lite.db.session import Database

ALL_REPLICAS_UNTIL = 46
"""The last minor version that shows the exports of all replicas."""

_UPDATE_ADMIN_ONLY = 'share_export_location:update_admin_only_metadata'
_IS_TRUE = s.boolean.at(0)


def _metadata(row: rows.IdRow, more: Mapping[str, typing.Any]) -> dict[str, str]:
    return {
        key: value
        for key, value in more['metadata'].get(row.id, {}).items()
        if key != PREFERRED
    }


def _preferred(row: rows.IdRow, more: Mapping[str, typing.Any]) -> bool:
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


def _all_of(controller: type['ExportLocationsController']) -> answers.Shape:
    return {f'{controller.key}s': [controller.summary]}


def _one_of(controller: type['ExportLocationsController']) -> answers.Shape:
    return {controller.key: controller.details}


class ExportLocationsController(wsgi.Controller):
    """Base of controllers for the export locations of a target.

    Those that are for administrators only are hidden from others, unless the
    controller `lists_all` or `shows_all`. Subclasses name the policies to `index`
    and `show`.
    """

    key = 'export_location'
    summary = SUMMARY
    details = DETAIL
    lists_all = False
    shows_all = False

    @wsgi.method('index', target=True, answer=_all_of, query=(paging.MARKER,))
    def index(self, req: wsgi.Request, target: object) -> dict:
        found = self.read(req, target)
        admin = req.ctx.is_admin
        rows = [
            row
            for row in found.rows
            if admin or self.lists_all or not row.is_admin_only
        ]
        items = self.summary.many(req.minor, admin)(rows, found.children)
        return {f'{self.key}s': paging.behind_marker(req, items)}

    @wsgi.method('show', target=True, answer=_one_of)
    def show(self, req: wsgi.Request, target: object, export_location_id: str) -> dict:
        found = self.read(req, target)
        row = _get(found, export_location_id)
        if not self.shows_all:
            _refuse_admin_only(req, row)
        view = self.details.function(req.minor, req.ctx.is_admin)
        return {self.key: view(row, found.children)}

    def read(self, req: wsgi.Request, target: typing.Any) -> pages.Listing:
        """Return the export locations, and what views read in addition."""
        raise NotImplementedError


def _get(found: pages.Listing, export_location_id: str) -> typing.Any:
    for row in found.rows:
        if row.id == export_location_id:
            return row
    raise exception.ExportLocationNotFound(export_location_id=export_location_id)


def _refuse_admin_only(req: wsgi.Request, row: typing.Any) -> None:
    if row.is_admin_only and not req.ctx.is_admin:
        raise exception.Forbidden('The export location is for administrators only.')


def list_for_share(db: Database, req: wsgi.Request, share_id: str) -> pages.Listing:
    """Return the export locations of a share that the version shows."""
    return db.read(
        instance_views.list_for_share,
        share_id,
        all_replicas=req.minor <= ALL_REPLICAS_UNTIL,
    )


class ShareExportLocationsController(ExportLocationsController):
    target = targets.SHARE.loader

    policies = {
        'index': 'share_export_location:index',
        'show': 'share_export_location:show',
    }
    public_reads = ('share_export_location:index', 'share_export_location:show')

    def read(self, req: wsgi.Request, target: rows.ShareTarget) -> pages.Listing:
        return list_for_share(self.services.db, req, target.id)


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
        found = list_for_share(self.services.db, req, target.id)
        row = _get(found, path['export_location_id'])
        _refuse_admin_only(req, row)
        return row


class ShareInstanceExportLocationsController(ExportLocationsController):
    target = targets.SHARE_INSTANCE.loader

    shows_all = True
    policies = {
        'index': 'share_instance_export_location:index',
        'show': 'share_instance_export_location:show',
    }

    def read(self, req: wsgi.Request, target: rows.IdRow) -> pages.Listing:
        return self.services.db.read(instance_views.list_for_instance, target.id)
