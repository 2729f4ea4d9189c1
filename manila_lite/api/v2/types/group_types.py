"""Share group types: list, show, create, delete, and the default."""

import typing

from manila_lite import exception
from manila_lite.api import schema, wsgi
from manila_lite.api.fields import Field, fields
from manila_lite.api.v2.types import access, extra_specs
from manila_lite.context import RequestContext
from manila_lite.db.queries.types import group_types
from manila_lite.db.queries.types.group_types import ShareGroupTypeRecord
from manila_lite.db.session import Session

CREATE = schema.schema(
    ['share_group_type'],
    share_group_type=schema.obj(
        ['name', 'share_types'],
        name=schema.trimmed(255, 1),
        share_types=schema.array(schema.trimmed(255, 1)),
        group_specs=extra_specs.GROUP_SPECS,
        is_public=schema.boolean,
    ),
)


ITEM = fields(
    Field('id'),
    Field('name'),
    Field('is_public'),
    Field('group_specs', shape=dict[str, str]),
    Field('share_types', shape=list[str]),
    access.IS_DEFAULT,
)


class ShareGroupTypesController(access.TypesController):
    records = group_types.RECORDS
    item = ITEM
    keys = ('share_group_type',)
    specs_key = 'group_specs'
    filters_since = '2.66'
    default_option = 'default_share_group_type'
    no_default = exception.DefaultShareGroupTypeNotFound
    policies = {
        'index': 'share_group_type:index',
        'default': 'share_group_type:default',
        'show': 'share_group_type:show',
    }

    @wsgi.method(
        'share_group_type:create', body=CREATE, answer={'share_group_type': ITEM}
    )
    def create(self, req: wsgi.Request, args: dict) -> dict:
        """Create a type with its group specs."""
        requested = args['share_group_type']
        if not requested['share_types']:
            raise exception.InvalidInput(
                reason='share_types must name at least one share type'
            )
        return self.response(
            req,
            self.services.db.write(
                _create,
                req.ctx,
                by=req.ctx,
                name=requested['name'],
                is_public=requested.get('is_public', True),
                group_specs=requested.get('group_specs', {}),
                share_types=requested['share_types'],
            ),
        )

    @wsgi.method('share_group_type:delete', status=204)
    def delete(self, req: wsgi.Request, type_id: str) -> None:
        """Delete a type that no share group uses."""
        self.services.db.write(group_types.delete, type_id, by=req.ctx)


def _create(
    session: Session, ctx: RequestContext, **values: typing.Any
) -> ShareGroupTypeRecord:
    return group_types.get(session, ctx, group_types.create(session, **values))


class ShareGroupTypeAccessController(access.TypeAccessController):
    tables = group_types.TABLES
    get_type = staticmethod(group_types.get)
    response_key = 'share_group_type_access'
    kind = 'Share group type'
    policies = {
        'list': 'share_group_type:list_project_access',
        'add': 'share_group_type:add_project_access',
        'remove': 'share_group_type:remove_project_access',
    }
