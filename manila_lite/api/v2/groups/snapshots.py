"""Snapshots of share groups, their members, and their actions."""

from collections.abc import Mapping

from manila_lite import exception
from manila_lite.api import paging, schema as s, wsgi
from manila_lite.api.fields import LINKS, Field, attr, child, extra, fields
from manila_lite.api.filters import exact
from manila_lite.api.v2 import targets
from manila_lite.api.v2.groups.share_groups import Criteria
from manila_lite.db import rows
from manila_lite.db.queries import pages
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

_REFUSED: wsgi.Refusals = {
    exception.InvalidStatus: exception.InvalidShareGroupSnapshot,
    exception.InvalidShareGroup: exception.ShareGroupConflict,
}


class ShareGroupSnapshotsController(paging.ListController):
    target = targets.GROUP_SNAPSHOT.loader

    path = 'share-group-snapshots'
    key = 'share_group_snapshots'
    links_key = 'share_group_snapshot_links'
    summary = SUMMARY
    details = DETAIL
    filters = _CRITERIA.query
    sort_keys = {name: name for name in snapshots.SORT_KEYS}
    policies = dict.fromkeys(('index', 'detail'), 'share_group_snapshot:get_all')

    def read_page(
        self, req: wsgi.Request, page: paging.Page, *, detailed: bool
    ) -> pages.Listing:
        return self.services.db.read(
            _list_page, *_CRITERIA.parse(req), page, detailed=detailed
        )

    def more(self, req: wsgi.Request, found: pages.Listing) -> dict:
        nested = _NESTED_MEMBER.many(req.minor)
        members = found.children['members'].items()
        return super().more(req, found) | {
            'members': {id: nested(of_one) for id, of_one in members}
        }

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
        found = pages.Listing([snapshot], {'members': self._members(snapshot.id)})
        view = DETAIL.function(req.minor)
        return {'share_group_snapshot': view(snapshot, self.more(req, found))}

    def _members(
        self, snapshot_id: str
    ) -> dict[str, list[rows.GroupSnapshotMemberRow]]:
        return self.services.db.read(snapshots.list_members, [snapshot_id])


class ShareGroupSnapshotActionsController(wsgi.Controller):
    target = targets.GROUP_SNAPSHOT.loader

    @wsgi.action('reset_status', 'share_group_snapshot:reset_status', body=s.STATUS)
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


def _list_page(
    session: Session,
    exact: Mapping[str, str],
    like: Mapping[str, str],
    page: paging.Page,
    *,
    detailed: bool,
) -> pages.Listing:
    found = snapshots.list_snapshots(session, exact, like, page)
    ids = [row.id for row in found] if detailed else []
    return pages.Listing(found, {'members': snapshots.list_members(session, ids)})
