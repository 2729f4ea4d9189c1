"""Snapshot instances, for administrators."""

from manila_lite.api import answers, paging, wsgi
from manila_lite.api.fields import Field, View, fields
from manila_lite.api.filters import Filter
from manila_lite.api.services import ApiServices
from manila_lite.api.v2.shares.actions import STATUS
from manila_lite.api.v2.targets import SnapshotInstanceTargetController
from manila_lite.db import rows
from manila_lite.db.queries.snapshots import instance_views

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


_QUERY = (*paging.query_keys(), Filter('snapshot_id'))


class SnapshotInstancesController(SnapshotInstanceTargetController):
    def __init__(self, services: ApiServices):
        super().__init__(services)
        self._max_limit = services.conf.osapi_max_limit

    @wsgi.method(
        'share_snapshot_instance:index',
        answer=answers.page('snapshot_instances', SUMMARY),
        query=_QUERY,
    )
    def index(self, req: wsgi.Request) -> dict:
        return self._list(req, SUMMARY, 'snapshot-instances')

    @wsgi.method(
        'share_snapshot_instance:detail',
        answer=answers.page('snapshot_instances', DETAIL),
        query=_QUERY,
    )
    def detail(self, req: wsgi.Request) -> dict:
        return self._list(req, DETAIL, 'snapshot-instances/detail')

    def _list(self, req: wsgi.Request, view: View, path: str) -> dict:
        page = paging.parse(req.query, cap=self._max_limit)
        rows = self.services.db.read(
            instance_views.list_instances, req.query.get('snapshot_id'), page
        )
        items = view.many(req.minor, True)(rows)
        return paging.answer(req, page, path, 'snapshot_instances', items, rows)

    @wsgi.method(
        'share_snapshot_instance:show',
        target=True,
        answer={'snapshot_instance': DETAIL},
    )
    def show(self, req: wsgi.Request, instance: rows.IdRow) -> dict:
        view = DETAIL.function(req.minor, True)
        return {'snapshot_instance': view(instance)}


class SnapshotInstanceActionsController(SnapshotInstanceTargetController):
    @wsgi.action(
        'reset_status',
        since='2.19',
        policy='share_snapshot_instance:reset_status',
        body=STATUS,
    )
    def reset_status(self, req: wsgi.Request, instance: rows.IdRow, args: dict) -> None:
        self.services.snapshots.reset_instance_status(
            req.ctx, instance.id, args['status']
        )
