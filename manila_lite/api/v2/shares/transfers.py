"""Share transfers: list, show, create, accept, delete."""

import typing

from manila_lite import exception
from manila_lite.api import links, paging, schema as s, wsgi
from manila_lite.api.fields import LINKS, Field, attr, const, fields
from manila_lite.api.filters import Filter, exact, filters
from manila_lite.api.v2 import targets
from manila_lite.db import rows
from manila_lite.db.queries import pages
from manila_lite.db.queries.shares import transfers

CREATE = s.schema(
    ['share_id'],
    wrapper='transfer',
    missing=400,
    share_id=s.uuid,
    name=s.string(255, nullable=True),
)

ACCEPT = s.schema(
    ['auth_key'],
    wrapper='accept',
    missing=400,
    auth_key=s.string(255, 1),
    clear_access_rules=s.boolean,
)

SUMMARY = fields(
    Field('id'),
    Field('name', attr('display_name')),
    Field('resource_type'),
    Field('resource_id'),
    Field('links', LINKS),
)

DETAIL = fields(
    Field('id'),
    Field('created_at'),
    Field('name', attr('display_name')),
    Field('resource_type'),
    Field('resource_id'),
    Field('source_project_id'),
    Field('destination_project_id'),
    # An accepted transfer is deleted as soon as it is carried out.
    Field('accepted', const(False)),
    Field('expires_at'),
    Field('links', LINKS),
)

CREATED = fields(*DETAIL.rows, Field('auth_key', shape=str))

_FILTERS = filters(Filter('name', 'display_name'), *exact(*transfers.FILTERS))
_LIKE = filters(
    Filter('name~', 'display_name'),
    Filter('display_name~', 'display_name'),
    skip_empty=True,
)

_REFUSED: wsgi.Refusals = {
    exception.InvalidStatus: exception.InvalidShare,
    exception.ShareHasReplicas: exception.InvalidShare,
}


class ShareTransfersController(paging.ListController):
    path = 'share-transfers'
    key = 'transfers'
    summary = SUMMARY
    details = DETAIL
    filters = (_FILTERS, _LIKE, Filter('all_tenants', parse=paging.parse_flag))
    sort_keys = {**{name: name for name in transfers.SORT_KEYS}, 'name': 'display_name'}
    policies = dict.fromkeys(('index', 'detail'), 'share_transfer:get_all')

    def target(self, req: wsgi.Request, transfer_id: str) -> rows.TransferRow:
        """Return a transfer that the own project offers."""
        row = self.services.db.read(transfers.get, transfer_id)
        if not targets.is_of_project(req.ctx, row):
            raise exception.ShareTransferNotFound(transfer_id=transfer_id)
        return row

    def read_page(
        self, req: wsgi.Request, page: paging.Page, *, detailed: bool
    ) -> pages.Listing:
        return pages.Listing(
            self.services.db.read(
                transfers.list_transfers,
                self._parse_filters(req),
                _LIKE.values(req),
                page,
            ),
            {},
        )

    def _parse_filters(self, req: wsgi.Request) -> dict[str, typing.Any]:
        wanted = _FILTERS.values(req)
        if paging.parse_flag(req.query, 'all_tenants') and req.ctx.can(
            'share_transfer:get_all_tenant'
        ):
            return wanted
        own = req.ctx.project_id
        if wanted.get('source_project_id', own) != own:
            wanted['id'] = ''  # those of others are not listed
        return wanted | {'source_project_id': own}

    @wsgi.method('share_transfer:get', target=True, answer={'transfer': DETAIL})
    def show(self, req: wsgi.Request, transfer: rows.TransferRow) -> dict:
        return {'transfer': DETAIL.function(req.minor)(transfer, _more(req))}

    @wsgi.method(
        'share_transfer:create',
        body=CREATE,
        status=202,
        refused=_REFUSED,
        answer={'transfer': CREATED},
    )
    def create(self, req: wsgi.Request, args: dict) -> dict:
        """Offer a share; the only response with the key."""
        share = targets.SHARE.get(self.services.db, req.ctx, args['share_id'])
        req.ctx.authorize('share_transfer:create', share)
        transfer = self.services.share_transfers.create(
            req.ctx, share, args.get('name')
        )
        return {'transfer': CREATED.function(req.minor)(transfer, _more(req))}

    @wsgi.method('share_transfer:accept', body=ACCEPT, status=202, refused=_REFUSED)
    def accept(self, req: wsgi.Request, args: dict, transfer_id: str) -> None:
        self.services.share_transfers.accept(
            req.ctx,
            transfer_id,
            args['auth_key'],
            clear_access_rules=args.get('clear_access_rules', False),
        )

    @wsgi.method('share_transfer:delete', target=True, refused=_REFUSED)
    def delete(self, req: wsgi.Request, transfer: rows.TransferRow) -> None:
        self.services.share_transfers.delete(req.ctx, transfer)


def _more(req: wsgi.Request) -> dict:
    return {'links': links.Links(req, 'share-transfers')}
