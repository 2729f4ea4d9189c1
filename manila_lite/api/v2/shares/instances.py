"""Share instances, for administrators."""

from manila_lite import exception
from manila_lite.api import answers, paging, schema as s, wsgi
from manila_lite.api.fields import Field, fields
from manila_lite.api.filters import Filter, exact, filters
from manila_lite.api.services import ApiServices
from manila_lite.api.v2 import targets
from manila_lite.api.v2.replicas import replica_state_field
from manila_lite.api.v2.shares.shares import (
    EXPORT_PATHS_UNTIL,
    STATUS_AND_EXPORT_FIELDS,
)
from manila_lite.db import rows
from manila_lite.db.queries.shares import instance_views

DETAIL = fields(
    *STATUS_AND_EXPORT_FIELDS,
    Field('id'),
    Field('share_id'),
    Field('availability_zone'),
    Field('created_at'),
    Field('host'),
    Field('share_network_id'),
    Field('share_server_id'),
    Field('access_rules_status', since='2.10'),
    replica_state_field(since='2.11'),
    Field('share_type_id', since='2.22'),
    Field('cast_rules_to_readonly', since='2.30'),
    Field('updated_at', since='2.71'),
)

_EXACT = filters(
    *exact('host', 'share_server_id', 'status', 'share_network_id', 'share_type_id')
)
_OTHERS = filters(
    Filter('export_location_id', 'export_id', since='2.35'),
    Filter('export_location_path', 'export_path', since='2.35'),
    Filter('is_soft_deleted', 'soft_deleted', since='2.69', parse=paging.parse_flag),
)


class ShareInstancesController(wsgi.Controller):
    target = targets.SHARE_INSTANCE.loader

    @wsgi.method(
        'share_instance:index',
        answer=answers.page('share_instances', DETAIL),
        query=(*paging.query_keys(), _EXACT, _OTHERS),
    )
    def index(self, req: wsgi.Request) -> dict:
        return _response(
            self.services,
            req,
            instance_views.ShareInstanceFilter(
                exact=_EXACT.values(req), **_OTHERS.values(req)
            ),
            'share_instances',
        )

    @wsgi.method('share_instance:show', target=True, answer={'share_instance': DETAIL})
    def show(self, req: wsgi.Request, instance: rows.IdRow) -> dict:
        found = self.services.db.read(
            instance_views.list_instances,
            instance_views.ShareInstanceFilter(id=instance.id),
            paging.parse({}),
            exports=req.minor <= EXPORT_PATHS_UNTIL,
        )
        if not found.rows:
            raise exception.ShareInstanceNotFound(share_instance_id=instance.id)
        view = DETAIL.function(req.minor, True)
        return {'share_instance': view(found.rows[0], found.children)}


class InstancesOfShareController(wsgi.Controller):
    target = targets.SHARE.loader

    @wsgi.method(
        'share_instance:index',
        target=True,
        answer=answers.page('share_instances', DETAIL),
        query=paging.query_keys(),
    )
    def index(self, req: wsgi.Request, share: rows.ShareTarget) -> dict:
        return _response(
            self.services,
            req,
            instance_views.ShareInstanceFilter(share_id=share.id),
            f'shares/{share.id}/instances',
        )


def _response(
    services: ApiServices,
    req: wsgi.Request,
    criteria: instance_views.ShareInstanceFilter,
    path: str,
) -> dict:
    """Return the response with a page of the instances that match."""
    page = paging.parse(req.query, cap=services.conf.osapi_max_limit)
    found = services.db.read(
        instance_views.list_instances,
        criteria,
        page,
        exports=req.minor <= EXPORT_PATHS_UNTIL,
    )
    items = DETAIL.many(req.minor, True)(found.rows, found.children)
    return paging.answer(req, page, path, 'share_instances', items, found.rows)


class ShareInstanceActionsController(wsgi.Controller):
    target = targets.SHARE_INSTANCE.loader

    @wsgi.action(
        'reset_status', 'share_instance:reset_status', renamed='2.7', body=s.STATUS
    )
    def reset_status(self, req: wsgi.Request, instance: rows.IdRow, args: dict) -> None:
        self.services.shares.reset_status(req.ctx, instance.id, args['status'])

    @wsgi.action('force_delete', 'share_instance:force_delete', renamed='2.7')
    def force_delete(self, req: wsgi.Request, instance: rows.IdRow) -> None:
        self.services.shares.force_delete_instance(req.ctx, instance.id)
