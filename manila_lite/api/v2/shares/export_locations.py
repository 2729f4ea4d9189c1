"""Export locations of shares and share instances."""

import typing

from manila_lite import exception
from manila_lite.api import schema as s
from manila_lite.api import wsgi
from manila_lite.api.fields import Field
from manila_lite.api.fields import View
from manila_lite.api.fields import fields
from manila_lite.api.fields import fn2
from manila_lite.api.v2 import metadata
from manila_lite.api.v2.shares.filters import check_metadata
from manila_lite.api.v2.targets import ShareInstanceTargetController
from manila_lite.api.v2.targets import ShareTargetController
from manila_lite.db.queries.shares import export_locations
from manila_lite.db.queries.shares.export_locations import PREFERRED

ALL_REPLICAS_UNTIL = 46
"""The last minor version that shows the exports of all replicas."""

_IS_TRUE = s.boolean.at(0)


def _metadata(row, more):
    return {
        key: value
        for key, value in more['metadata'].get(row.id, {}).items()
        if key != PREFERRED
    }


def _preferred(row, more):
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
    req: wsgi.Request,
    found: export_locations.ExportLocationListing,
    view: View = SUMMARY,
) -> dict:
    """Return all export locations that the caller may see."""
    admin = req.ctx.is_admin
    rows = [row for row in found.rows if admin or not row.is_admin_only]
    many = view.many(req.minor, admin)
    return {'export_locations': many(rows, {'metadata': found.metadata})}


def show_export_location(
    req: wsgi.Request,
    found: export_locations.ExportLocationListing,
    row: typing.Any,
    view: View = DETAIL,
) -> dict:
    one = view.function(req.minor, req.ctx.is_admin)
    return {'export_location': one(row, {'metadata': found.metadata})}


def get_visible(
    req: wsgi.Request,
    found: export_locations.ExportLocationListing,
    export_location_id: str,
) -> typing.Any:
    """Return the row; Forbidden if it is for administrators only."""
    row = found.one(export_location_id)
    if row.is_admin_only and not req.ctx.is_admin:
        raise exception.Forbidden(
            'The export location is for administrators only.'
        )
    return row


class ShareExportLocationsController(ShareTargetController):
    @wsgi.method('share_export_location:index', target=True)
    def index(self, req: wsgi.Request, share: typing.Any) -> dict:
        return show_export_locations(req, self._listing(req, share))

    @wsgi.method('share_export_location:show', target=True)
    def show(
        self, req: wsgi.Request, share: typing.Any, export_location_id: str
    ) -> dict:
        found = self._listing(req, share)
        return show_export_location(
            req, found, get_visible(req, found, export_location_id)
        )

    def _listing(self, req, share):
        return self.services.db.read(
            export_locations.list_for_share,
            share.id,
            all_replicas=req.minor <= ALL_REPLICAS_UNTIL,
        )


class ShareExportLocationMetadataController(ShareExportLocationsController):
    @wsgi.method('share_export_location:get_metadata', target=True)
    def index(
        self, req: wsgi.Request, share: typing.Any, export_location_id: str
    ) -> dict:
        return metadata.show(self._read(req, share, export_location_id))

    @wsgi.method('share_export_location:get_metadata', target=True)
    def show(
        self,
        req: wsgi.Request,
        share: typing.Any,
        export_location_id: str,
        key: str,
    ) -> dict:
        return metadata.show_one(
            self._read(req, share, export_location_id), key
        )

    @wsgi.method(
        'share_export_location:update_metadata',
        target=True,
        body=metadata.VALUES,
    )
    def create(
        self,
        req: wsgi.Request,
        share: typing.Any,
        args: dict,
        export_location_id: str,
    ) -> dict:
        return self._merge(req, share, args['metadata'], export_location_id)

    @wsgi.method(
        'share_export_location:update_metadata',
        target=True,
        body=metadata.VALUES,
    )
    def create_one(
        self,
        req: wsgi.Request,
        share: typing.Any,
        args: dict,
        export_location_id: str,
        key: str,
    ) -> dict:
        return self._merge(
            req,
            share,
            metadata.require_single_key(args['metadata'], key),
            export_location_id,
        )

    @wsgi.method(
        'share_export_location:update_metadata',
        target=True,
        body=metadata.VALUES,
    )
    def replace(
        self,
        req: wsgi.Request,
        share: typing.Any,
        args: dict,
        export_location_id: str,
    ) -> dict:
        row = self._row(req, share, export_location_id)
        protected = (
            frozenset()
            if req.ctx.can(_ADMIN_ONLY, share)
            else self.services.admin_only_export_metadata
        )
        check_metadata(
            args['metadata'], protected, req.ctx, share, _ADMIN_ONLY
        )
        return metadata.show(
            self.services.db.write(
                export_locations.METADATA.replace,
                row.id,
                args['metadata'],
                protected,
            )
        )

    @wsgi.method('share_export_location:delete_metadata', target=True)
    def delete(
        self,
        req: wsgi.Request,
        share: typing.Any,
        export_location_id: str,
        key: str,
    ) -> None:
        row = self._row(req, share, export_location_id)
        self._check(req, share, {key: ''})
        if not self.services.db.write(
            export_locations.METADATA.remove, row.id, [key]
        ):
            raise exception.MetadataItemNotFound(key=key)

    def _merge(self, req, share, values, export_location_id):
        row = self._row(req, share, export_location_id)
        self._check(req, share, values)
        return metadata.show(
            self.services.db.write(
                export_locations.METADATA.merge, row.id, values
            )
        )

    def _check(self, req, share, values):
        check_metadata(
            values,
            self.services.admin_only_export_metadata,
            req.ctx,
            share,
            _ADMIN_ONLY,
        )

    def _read(self, req, share, export_location_id):
        row = self._row(req, share, export_location_id)
        return self.services.db.read(export_locations.METADATA.get, row.id)

    def _row(self, req, share, export_location_id):
        return get_visible(req, self._listing(req, share), export_location_id)


class ShareInstanceExportLocationsController(ShareInstanceTargetController):
    @wsgi.method('share_instance_export_location:index', target=True)
    def index(self, req: wsgi.Request, instance: typing.Any) -> dict:
        return show_export_locations(req, self._listing(instance))

    @wsgi.method('share_instance_export_location:show', target=True)
    def show(
        self, req: wsgi.Request, instance: typing.Any, export_location_id: str
    ) -> dict:
        found = self._listing(instance)
        return show_export_location(req, found, found.one(export_location_id))

    def _listing(self, instance):
        return self.services.db.read(
            export_locations.list_for_instance, instance.id
        )


_ADMIN_ONLY = 'share_export_location:update_admin_only_metadata'
