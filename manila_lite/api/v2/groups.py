"""Share groups, their snapshots, and the actions on both."""

from collections.abc import Mapping
import typing

from manila_lite import exception
from manila_lite.api import links, paging, schema as s, wsgi
from manila_lite.api.fields import LINKS, Field, attr, child, extra, fields
from manila_lite.api.filters import Filter, exact, filters
from manila_lite.api.v2 import literals, targets
from manila_lite.db import rows
from manila_lite.db.queries import pages
from manila_lite.db.queries.groups import share_groups, snapshots
from manila_lite.db.session import Session
from manila_lite.share.operations.groups.share_groups import ShareGroupRequest
from manila_lite.share.operations.shares import placement

Values = dict[str, typing.Any]

_LIKE = filters(
    Filter('name~', 'name', since='2.36'),
    Filter('description~', 'description', since='2.36'),
    skip_empty=True,
)


class Criteria:
    """The keys that a list of resources of a project knows."""

    def __init__(self, *exact: Filter, all_projects: str | None = None):
        """`all_projects` is the rule for lists of all of them, not admin."""
        self._all_projects = all_projects
        self._exact = filters(*exact)
        self.query = (
            self._exact,
            _LIKE,
            Filter('all_tenants', parse=paging.parse_flag),
        )
        self._known = {
            *paging.KEYS,
            *(row.key for row in (*exact, *_LIKE.rows)),
            'all_tenants',
        }

    def parse(self, req: wsgi.Request) -> tuple[Values, Values]:
        """Return exact and partial values of columns.

        Raises InvalidInput for unknown keys (notes: Filters).
        """
        unknown = req.query.keys() - self._known
        if unknown:
            raise exception.InvalidInput(
                reason=f'unknown query keys: {", ".join(sorted(unknown))}'
            )
        values = self._exact.values(req)
        asks_for_all = paging.parse_flag(req.query, 'all_tenants')
        if not (asks_for_all and self._sees_all(req)):
            own = req.ctx.project_id
            if values.get('project_id', own) != own:
                values['id'] = ''  # those of others are not listed
            values['project_id'] = own
        return values, _LIKE.values(req)

    def _sees_all(self, req: wsgi.Request) -> bool:
        if self._all_projects is None:
            return bool(req.ctx.is_admin)
        return req.ctx.can(self._all_projects)


_NAME = s.string(255, nullable=True)

CREATE = s.schema(
    wrapper='share_group',
    missing=400,
    extra='refuse',
    name=_NAME,
    description=_NAME,
    share_types=s.array(s.uuid, max=100),
    share_group_type_id=s.optional_uuid,
    source_share_group_snapshot_id=s.optional_id(),
    share_network_id=s.optional_id(),
    availability_zone=s.optional_id(),
)

UPDATE = s.schema(wrapper='share_group', missing=400, name=_NAME, description=_NAME)


SUMMARY = fields(Field('id'), Field('name'), Field('links', LINKS))

DETAIL = fields(
    Field('id'),
    Field('name'),
    Field('created_at'),
    Field('status'),
    Field('description'),
    Field('project_id'),
    Field('host'),
    Field('share_group_type_id'),
    Field('source_share_group_snapshot_id'),
    Field('share_network_id'),
    Field('share_types', child('share_types', []), shape=list[str]),
    Field('links', LINKS),
    Field('share_server_id', admin_only=True),
    Field('availability_zone', since='2.34'),
    Field('consistent_snapshot_support', since='2.34'),
)

_ADMIN_KEYS = ('share_server_id',)

_CRITERIA = Criteria(
    Filter('group_type_id', 'share_group_type_id'),
    # As the command line client calls them.
    Filter('share_group_type', 'share_group_type_id'),
    Filter('snapshot', 'source_share_group_snapshot_id'),
    Filter('share_network', 'share_network_id'),
    # As notes and parameter texts call them.
    Filter('snapshot_id', 'source_share_group_snapshot_id'),
    Filter('share_group_snapshot_id', 'source_share_group_snapshot_id'),
    Filter('share_types', parse=literals.parse_ids),
    *exact(*share_groups.FILTERS, admin_only=_ADMIN_KEYS),
)

_REFUSED: wsgi.Refusals = {
    exception.InvalidStatus: exception.ShareGroupConflict,
    exception.InvalidShareGroup: exception.ShareGroupConflict,
}


class ShareGroupsController(paging.ListController):
    target = targets.GROUP.loader

    path = 'share-groups'
    key = 'share_groups'
    summary = SUMMARY
    details = DETAIL
    filters = _CRITERIA.query
    sort_keys = {name: name for name in share_groups.SORT_KEYS}
    admin_sort_keys = _ADMIN_KEYS
    policies = dict.fromkeys(('index', 'detail'), 'share_group:get_all')

    def read_page(
        self, req: wsgi.Request, page: paging.Page, *, detailed: bool
    ) -> pages.Listing:
        return self.services.db.read(
            _list_page, *_CRITERIA.parse(req), page, detailed=detailed
        )

    @wsgi.method('share_group:get', target=True, answer={'share_group': DETAIL})
    def show(self, req: wsgi.Request, group: rows.ShareGroupRow) -> dict:
        return self._response(req, group)

    @wsgi.method(
        'share_group:create',
        body=CREATE,
        status=202,
        refused={
            **_REFUSED,
            # Deleted after it was found below.
            exception.ShareNetworkNotFound: exception.InvalidInput,
        },
        answer={'share_group': DETAIL},
    )
    def create(self, req: wsgi.Request, args: dict) -> dict:
        """Request a group: an empty one, or one from a snapshot."""
        zone = args.get('availability_zone')
        if zone and args.get('share_network_id'):
            # In the published order: 404 for the zone, then the network.
            self.services.db.read(placement.get_zone, zone)
        with targets.named_in_body('share_network_id'):
            network_id = targets.usable_network_id(
                self.services.db, req.ctx, args.get('share_network_id')
            )
        request = ShareGroupRequest(
            name=args.get('name'),
            description=args.get('description'),
            share_types=args.get('share_types') or (),
            share_group_type_id=args.get('share_group_type_id'),
            share_network_id=network_id,
            availability_zone=zone,
            apply_type_zones=req.minor >= 48,
        )
        snapshot_id = args.get('source_share_group_snapshot_id')
        if snapshot_id:
            with targets.named_in_body('source_share_group_snapshot_id'):
                snapshot = targets.GROUP_SNAPSHOT.get(
                    self.services.db, req.ctx, snapshot_id
                )
            group_id = self.services.share_group_copies.create(
                req.ctx, snapshot, request
            )
        else:
            group_id = self.services.share_groups.create(req.ctx, request)
        return self._response(req, self.services.db.read(share_groups.get, group_id))

    @wsgi.method(
        'share_group:update', target=True, body=UPDATE, answer={'share_group': DETAIL}
    )
    def update(self, req: wsgi.Request, group: rows.ShareGroupRow, args: dict) -> dict:
        self.services.share_groups.update(req.ctx, group.id, args)
        return self._response(
            req, targets.GROUP.get(self.services.db, req.ctx, group.id)
        )

    @wsgi.method('share_group:delete', target=True, status=202, refused=_REFUSED)
    def delete(self, req: wsgi.Request, group: rows.ShareGroupRow) -> None:
        self.services.share_groups.delete(req.ctx, group.id)

    def _response(self, req: wsgi.Request, group: rows.ShareGroupRow) -> dict:
        types = self.services.db.read(share_groups.list_share_types, [group.id])
        more = {'share_types': types, 'links': links.Links(req, self.path)}
        view = DETAIL.function(req.minor, req.ctx.is_admin)
        return {'share_group': view(group, more)}


class ShareGroupActionsController(wsgi.Controller):
    target = targets.GROUP.loader

    @wsgi.action('reset_status', 'share_group:reset_status', body=s.STATUS)
    def reset_status(
        self, req: wsgi.Request, group: rows.ShareGroupRow, args: dict
    ) -> None:
        self.services.share_groups.reset_status(req.ctx, group.id, args['status'])

    @wsgi.action('force_delete', 'share_group:force_delete', refused=_REFUSED)
    def force_delete(self, req: wsgi.Request, group: rows.ShareGroupRow) -> None:
        self.services.share_groups.force_delete(req.ctx, group.id)


def _list_page(
    session: Session,
    exact: Mapping[str, str],
    like: Mapping[str, str],
    page: paging.Page,
    *,
    detailed: bool,
) -> pages.Listing:
    found = share_groups.list_groups(session, exact, like, page)
    ids = [row.id for row in found] if detailed else []
    types = share_groups.list_share_types(session, ids)
    return pages.Listing(found, {'share_types': types})


_NAME = s.string(255, nullable=True)

SNAPSHOT_CREATE = s.schema(
    ['share_group_id'],
    wrapper='share_group_snapshot',
    missing=400,
    share_group_id=s.uuid,
    name=_NAME,
    description=_NAME,
)

SNAPSHOT_UPDATE = s.schema(
    wrapper='share_group_snapshot', missing=400, name=_NAME, description=_NAME
)


SNAPSHOT_SUMMARY = fields(Field('id'), Field('name'), Field('links', LINKS))

_NESTED_MEMBER = fields(Field('id'), Field('size'), Field('share_id'))

SNAPSHOT_DETAIL = fields(
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

_SNAPSHOT_CRITERIA = Criteria(*exact(*snapshots.FILTERS))

_SNAPSHOT_REFUSED: wsgi.Refusals = {
    exception.InvalidStatus: exception.InvalidShareGroupSnapshot,
    exception.InvalidShareGroup: exception.ShareGroupConflict,
}


class ShareGroupSnapshotsController(paging.ListController):
    target = targets.GROUP_SNAPSHOT.loader

    path = 'share-group-snapshots'
    key = 'share_group_snapshots'
    links_key = 'share_group_snapshot_links'
    summary = SNAPSHOT_SUMMARY
    details = SNAPSHOT_DETAIL
    filters = _SNAPSHOT_CRITERIA.query
    sort_keys = {name: name for name in snapshots.SORT_KEYS}
    policies = dict.fromkeys(('index', 'detail'), 'share_group_snapshot:get_all')

    def read_page(
        self, req: wsgi.Request, page: paging.Page, *, detailed: bool
    ) -> pages.Listing:
        return self.services.db.read(
            _list_page_of_snapshots,
            *_SNAPSHOT_CRITERIA.parse(req),
            page,
            detailed=detailed,
        )

    def more(self, req: wsgi.Request, found: pages.Listing) -> dict:
        nested = _NESTED_MEMBER.many(req.minor)
        members = found.children['members'].items()
        return super().more(req, found) | {
            'members': {id: nested(of_one) for id, of_one in members}
        }

    @wsgi.method(
        'share_group_snapshot:get',
        target=True,
        answer={'share_group_snapshot': SNAPSHOT_DETAIL},
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
        body=SNAPSHOT_CREATE,
        status=202,
        refused=_SNAPSHOT_REFUSED,
        answer={'share_group_snapshot': SNAPSHOT_DETAIL},
    )
    def create(self, req: wsgi.Request, args: dict) -> dict:
        """Request a snapshot of all shares of a group."""
        with targets.named_in_body():
            group = targets.GROUP.get(self.services.db, req.ctx, args['share_group_id'])
        snapshot_id = self.services.share_group_snapshots.create(
            req.ctx, group, name=args.get('name'), description=args.get('description')
        )
        return self._response(req, self.services.db.read(snapshots.get, snapshot_id))

    @wsgi.method(
        'share_group_snapshot:update',
        target=True,
        body=SNAPSHOT_UPDATE,
        answer={'share_group_snapshot': SNAPSHOT_DETAIL},
    )
    def update(
        self, req: wsgi.Request, snapshot: rows.ShareGroupSnapshotRow, args: dict
    ) -> dict:
        self.services.share_group_snapshots.update(req.ctx, snapshot.id, args)
        return self._response(req, self.services.db.read(snapshots.get, snapshot.id))

    @wsgi.method(
        'share_group_snapshot:delete',
        target=True,
        status=202,
        refused=_SNAPSHOT_REFUSED,
    )
    def delete(self, req: wsgi.Request, snapshot: rows.ShareGroupSnapshotRow) -> None:
        self.services.share_group_snapshots.delete(req.ctx, snapshot.id)

    def _response(
        self, req: wsgi.Request, snapshot: rows.ShareGroupSnapshotRow
    ) -> dict:
        found = pages.Listing([snapshot], {'members': self._members(snapshot.id)})
        view = SNAPSHOT_DETAIL.function(req.minor)
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


def _list_page_of_snapshots(
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
