"""Resource locks: list, show, create, update, delete."""

import typing

from manila_lite import exception
from manila_lite.api import answers, links, paging, schema as s, wsgi
from manila_lite.api.fields import LINKS, Field, fields
from manila_lite.api.filters import Filter, exact
from manila_lite.db import rows
from manila_lite.db.queries.access import locks
from manila_lite.share.operations.access.locks import LockRequest
from manila_lite.states.locks import ResourceAction, ResourceType

_RULES_SINCE = 82
"""The minor version since which access rules can be locked."""

_SORT_KEYS = {name: name for name in locks.SORT_KEYS}
_REASON = s.string(1023, nullable=True)
_ACTION = s.one_of(ResourceAction.DELETE, ResourceAction.SHOW)

CREATE = s.schema(
    ['resource_id', 'resource_type'],
    wrapper='resource_lock',
    missing=400,
    resource_id=s.uuid,
    resource_type=s.one_of(ResourceType.SHARE, ResourceType.ACCESS_RULE),
    resource_action=_ACTION,
    lock_reason=_REASON,
)

UPDATE = s.schema(
    wrapper='resource_lock',
    missing=400,
    extra='refuse',
    resource_action=_ACTION,
    lock_reason=_REASON,
)

ITEM = fields(
    Field('id'),
    Field('user_id'),
    Field('project_id'),
    Field('lock_context'),
    Field('resource_type'),
    Field('resource_id'),
    Field('resource_action'),
    Field('lock_reason'),
    Field('created_at'),
    Field('updated_at'),
    Field('links', LINKS),
)


_QUERY = (
    *paging.query_keys(_SORT_KEYS),
    *exact(*locks.FILTERS, 'lock_reason~'),
    Filter('created_since', parse=paging.parse_time),
    Filter('created_before', parse=paging.parse_time),
    Filter('all_projects', parse=paging.parse_flag),
    Filter('with_count', parse=paging.parse_flag),
)


class VisibleLock(typing.NamedTuple):
    """A lock, and the project whose users may see it."""

    project_id: str
    user_id: str
    share_id: str
    lock: rows.ResourceLockRow


class ResourceLocksController(wsgi.Controller):
    def target(self, req: wsgi.Request, lock_id: str) -> rows.ResourceLockRow:
        """Return a lock of the own project, or of all with the policy."""
        return self.visible(req, lock_id).lock

    def visible(self, req: wsgi.Request, lock_id: str) -> VisibleLock:
        """Return a lock, which the owner of the locked resource sees as its own."""
        row = self.services.db.read(locks.get, lock_id)
        project_id = req.ctx.project_id
        if row.project_id != project_id:
            owner = self.services.db.read(locks.find_share_owner, lock_id)
            if owner is not None and owner == project_id:
                return VisibleLock(owner, row.user_id, row.share_id, row)
            if not req.ctx.can('resource_lock:get_all_projects'):
                raise exception.ResourceLockNotFound(lock_id=lock_id)
        return VisibleLock(row.project_id, row.user_id, row.share_id, row)

    @wsgi.method(
        'resource_lock:get_all',
        answer=answers.page('resource_locks', ITEM, count=True),
        query=_QUERY,
    )
    def index(self, req: wsgi.Request) -> dict:
        """List a page of the locks of a project and its shares, or of all."""
        page = paging.parse(req.query, cap=self.max_limit, sort_keys=_SORT_KEYS)
        with_count = paging.parse_flag(req.query, 'with_count')
        rows, total = self.services.db.read(
            locks.list_locks, self._parse_filters(req), page, with_count
        )
        items = ITEM.many(req.minor)(rows, _more(req))
        return paging.answer(
            req,
            page,
            'resource-locks',
            'resource_locks',
            items,
            rows,
            count=total or None,  # as published, zero is left out
        )

    def _parse_filters(self, req: wsgi.Request) -> locks.ResourceLockFilter:
        query = req.query
        exact: dict[str, typing.Any] = {
            name: query[name] for name in locks.FILTERS if name in query
        }
        visible_to = None
        if not (
            paging.parse_flag(query, 'all_projects')
            and req.ctx.can('resource_lock:get_all_projects')
        ):
            exact.pop('project_id', None)
            visible_to = req.ctx.project_id
        return locks.ResourceLockFilter(
            exact,
            visible_to,
            query.get('lock_reason~'),
            paging.parse_time(query, 'created_since'),
            paging.parse_time(query, 'created_before'),
        )

    @wsgi.method('resource_lock:get', target='visible', answer={'resource_lock': ITEM})
    def show(self, req: wsgi.Request, visible: VisibleLock) -> dict:
        return _response(req, visible.lock)

    @wsgi.method('resource_lock:create', body=CREATE, answer={'resource_lock': ITEM})
    def create(self, req: wsgi.Request, args: dict) -> dict:
        kind = args['resource_type']
        if kind == ResourceType.ACCESS_RULE and req.minor < _RULES_SINCE:
            raise exception.InvalidInput(
                reason=f'resource_type must be share before version 2.{_RULES_SINCE}'
            )
        return _response(
            req,
            self.services.locks.create(
                req.ctx,
                LockRequest(
                    args['resource_id'],
                    kind,
                    args.get('resource_action', ResourceAction.DELETE),
                    args.get('lock_reason'),
                ),
            ),
        )

    @wsgi.method(
        'resource_lock:update', target=True, body=UPDATE, answer={'resource_lock': ITEM}
    )
    def update(self, req: wsgi.Request, lock: rows.ResourceLockRow, args: dict) -> dict:
        return _response(req, self.services.locks.update(req.ctx, lock, args))

    @wsgi.method('resource_lock:delete', target=True, status=204)
    def delete(self, req: wsgi.Request, lock: rows.ResourceLockRow) -> None:
        self.services.locks.delete(req.ctx, lock)


def _response(req: wsgi.Request, lock: rows.ResourceLockRow) -> dict:
    return {'resource_lock': ITEM.function(req.minor)(lock, _more(req))}


def _more(req: wsgi.Request) -> dict:
    return {'links': links.Links(req, 'resource-locks')}
