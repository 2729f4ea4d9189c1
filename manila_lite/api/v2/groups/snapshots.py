"""Snapshots of share groups, their members, and their actions."""

from collections.abc import Mapping, Sequence
import typing

from manila_lite import exception
from manila_lite.api import answers, links, paging, schema as s, wsgi
from manila_lite.api.fields import LINKS, Field, attr, child, extra, fields
from manila_lite.api.filters import exact
from manila_lite.api.v2 import targets
from manila_lite.api.v2.groups.share_groups import Criteria
from manila_lite.db import rows
from manila_lite.db.queries.groups import snapshots
from manila_lite.db.session import Session

_NAME = s.string(255, nullable=True)

CREATE = s.schema(
    ['share_group_id'],
    wrapper='share_group_snapshot',
    missing=400,
    share_group_id=s.uuid,
    name=_NAME,
    description=_NAME,
)

UPDATE = s.schema(
    wrapper='share_group_snapshot', missing=400, name=_NAME, description=_NAME
)

STATUS = s.schema(['status'], status=s.string(255, 1))

SUMMARY = fields(Field('id'), Field('name'), Field('links', LINKS))

_NESTED_MEMBER = fields(Field('id'), Field('size'), Field('share_id'))

DETAIL = fields(
    Field('id'),
    Field('name'),
    Field('created_at'),
    Field('status'),
    Field('description'),
    Field('project_id'),
    Field('share_group_id'),
    Field('members', child('members', []), shape=[_NESTED_MEMBER]),
    Field('links', LINKS),
)

MEMBER = fields(
    Field('id'),
    Field('created_at'),
    Field('size'),
    Field('share_protocol', attr('share_proto')),
    Field('project_id', extra('project_id'), shape=str),
    Field('share_group_snapshot_id'),
    Field('share_id'),
)

_CRITERIA = Criteria(*exact(*snapshots.FILTERS))
_SORT_KEYS = {name: name for name in snapshots.SORT_KEYS}

_QUERY = (*paging.query_keys(_SORT_KEYS), *_CRITERIA.query)

_REFUSED: wsgi.Refusals = {
    exception.InvalidStatus: exception.InvalidShareGroupSnapshot,
    exception.InvalidShareGroup: exception.ShareGroupConflict,
}


class _Listing(typing.NamedTuple):
    """Snapshots to show, and their members by snapshot."""

    rows: Sequence[rows.ShareGroupSnapshotRow]
    members: Mapping[str, list[rows.GroupSnapshotMemberRow]]


class ShareGroupSnapshotsController(wsgi.Controller):
    target = targets.GROUP_SNAPSHOT.loader

    @wsgi.method(
        'share_group_snapshot:get_all',
        answer=answers.page(
            'share_group_snapshots', SUMMARY, links_key='share_group_snapshot_links'
        ),
        query=_QUERY,
    )
    def index(self, req: wsgi.Request) -> dict:
        page = self._page(req)
        found = self.services.db.read(
            snapshots.list_snapshots, *_CRITERIA.parse(req), page
        )
        items = SUMMARY.many(req.minor)(found, _more(req))
        return _answer(req, page, 'share-group-snapshots', items, found)

    @wsgi.method(
        'share_group_snapshot:get_all',
        answer=answers.page(
            'share_group_snapshots', DETAIL, links_key='share_group_snapshot_links'
        ),
        query=_QUERY,
    )
    def detail(self, req: wsgi.Request) -> dict:
        page = self._page(req)
        found = self.services.db.read(_list_details, *_CRITERIA.parse(req), page)
        return _answer(
            req, page, 'share-group-snapshots/detail', _show(req, found), found.rows
        )

    def _page(self, req: wsgi.Request) -> paging.Page:
        return paging.parse(req.query, cap=self.max_limit, sort_keys=_SORT_KEYS)

    @wsgi.method(
        'share_group_snapshot:get', target=True, answer={'share_group_snapshot': DETAIL}
    )
    def show(self, req: wsgi.Request, snapshot: rows.ShareGroupSnapshotRow) -> dict:
        return self._response(req, snapshot)

    @wsgi.method(
        'share_group_snapshot:get',
        target=True,
        answer={'share_group_snapshot_members': [MEMBER]},
        query=paging.query_keys(),
    )
    def members(self, req: wsgi.Request, snapshot: rows.ShareGroupSnapshotRow) -> dict:
        """List the members, with as much as users may know of them."""
        page = paging.parse(req.query, cap=self.max_limit)
        found = page.slice_rows(self._members(snapshot.id)[snapshot.id])
        more = {'project_id': snapshot.project_id}
        return {'share_group_snapshot_members': MEMBER.many(req.minor)(found, more)}

    @wsgi.method(
        'share_group_snapshot:create',
        body=CREATE,
        status=202,
        refused=_REFUSED,
        answer={'share_group_snapshot': DETAIL},
    )
    def create(self, req: wsgi.Request, args: dict) -> dict:
        """Request a snapshot of all shares of a group."""
        group = self._group(req, args['share_group_id'])
        snapshot_id = self.services.share_group_snapshots.create(
            req.ctx, group, name=args.get('name'), description=args.get('description')
        )
        return self._response(req, self.services.db.read(snapshots.get, snapshot_id))

    def _group(self, req: wsgi.Request, group_id: str) -> rows.ShareGroupRow:
        try:
            return targets.GROUP.get(self.services.db, req.ctx, group_id)
        except exception.ShareGroupNotFound as error:
            # The published code of this error is 400 here.
            raise exception.InvalidInput(reason=error.msg) from error

    @wsgi.method(
        'share_group_snapshot:update',
        target=True,
        body=UPDATE,
        answer={'share_group_snapshot': DETAIL},
    )
    def update(
        self, req: wsgi.Request, snapshot: rows.ShareGroupSnapshotRow, args: dict
    ) -> dict:
        self.services.share_group_snapshots.update(req.ctx, snapshot.id, args)
        return self._response(req, self.services.db.read(snapshots.get, snapshot.id))

    @wsgi.method(
        'share_group_snapshot:delete', target=True, status=202, refused=_REFUSED
    )
    def delete(self, req: wsgi.Request, snapshot: rows.ShareGroupSnapshotRow) -> None:
        self.services.share_group_snapshots.delete(req.ctx, snapshot.id)

    def _response(
        self, req: wsgi.Request, snapshot: rows.ShareGroupSnapshotRow
    ) -> dict:
        found = _Listing([snapshot], self._members(snapshot.id))
        return {'share_group_snapshot': _show(req, found)[0]}

    def _members(
        self, snapshot_id: str
    ) -> Mapping[str, list[rows.GroupSnapshotMemberRow]]:
        return self.services.db.read(snapshots.list_members, [snapshot_id])


class ShareGroupSnapshotActionsController(wsgi.Controller):
    target = targets.GROUP_SNAPSHOT.loader

    @wsgi.action('reset_status', 'share_group_snapshot:reset_status', body=STATUS)
    def reset_status(
        self, req: wsgi.Request, snapshot: rows.ShareGroupSnapshotRow, args: dict
    ) -> None:
        self.services.share_group_snapshots.reset_status(
            req.ctx, snapshot.id, args['status']
        )

    @wsgi.action('force_delete', 'share_group_snapshot:force_delete')
    def force_delete(
        self, req: wsgi.Request, snapshot: rows.ShareGroupSnapshotRow
    ) -> None:
        self.services.share_group_snapshots.force_delete(req.ctx, snapshot.id)


def _answer(
    req: wsgi.Request,
    page: paging.Page,
    path: str,
    items: list[dict],
    found: Sequence[rows.ShareGroupSnapshotRow],
) -> dict:
    return paging.answer(
        req,
        page,
        path,
        'share_group_snapshots',
        items,
        found,
        links_key='share_group_snapshot_links',
    )


def _list_details(
    session: Session,
    exact: Mapping[str, str],
    like: Mapping[str, str],
    page: paging.Page,
) -> _Listing:
    found = snapshots.list_snapshots(session, exact, like, page)
    return _Listing(found, snapshots.list_members(session, [row.id for row in found]))


def _show(req: wsgi.Request, found: _Listing) -> list[dict]:
    nested = _NESTED_MEMBER.many(req.minor)
    more = _more(req) | {
        'members': {id: nested(of_one) for id, of_one in found.members.items()}
    }
    return DETAIL.many(req.minor)(found.rows, more)


def _more(req: wsgi.Request) -> dict[str, typing.Any]:
    return {'links': links.Links(req, 'share-group-snapshots')}
