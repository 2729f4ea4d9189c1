"""Share group types: list, show, create, delete, and the default."""

from collections.abc import Mapping
import typing

from manila_lite import exception
from manila_lite.api import schema, versions, wsgi
from manila_lite.api.fields import Field, fields, fn2
from manila_lite.api.filters import Filter
from manila_lite.api.services import ApiServices
from manila_lite.api.v2 import literals
from manila_lite.api.v2.types import share_types, specs
from manila_lite.api.v2.types.access import TypeAccessController
from manila_lite.context import RequestContext
from manila_lite.db.queries.types import group_types
from manila_lite.db.queries.types.group_types import ShareGroupTypeRecord
from manila_lite.db.session import Session

_FILTER_BY_SPECS = versions.window(since='2.66')

CREATE = schema.schema(
    ['share_group_type'],
    share_group_type=schema.obj(
        ['name', 'share_types'],
        name=schema.trimmed(255, 1),
        share_types=schema.array(schema.trimmed(255, 1)),
        group_specs=specs.GROUP_SPECS,
        is_public=schema.boolean,
    ),
)


def _is_default(row: ShareGroupTypeRecord, more: Mapping) -> bool:
    return more['default'] in (row.id, row.name)


ITEM = fields(
    Field('id'),
    Field('name'),
    Field('is_public'),
    Field('group_specs', shape=dict[str, str]),
    Field('share_types', shape=list[str]),
    Field('is_default', fn2(_is_default), since='2.46'),
)


class ShareGroupTypesController(wsgi.Controller):
    def __init__(self, services: ApiServices):
        super().__init__(services)
        self._default = services.conf.default_share_group_type

    @wsgi.method(
        'share_group_type:index',
        answer={'share_group_types': [ITEM]},
        query=(
            share_types.WHICH_PUBLIC,
            Filter('group_specs', since='2.66', parse=literals.parse),
        ),
    )
    def index(self, req: wsgi.Request) -> dict:
        """List the types of the project; administrators may see others."""
        wanted = _wanted_specs(req)
        found = self.services.db.read(_list, req.ctx, share_types.public_filter(req))
        return {
            'share_group_types': ITEM.many(req.minor)(
                [
                    record
                    for record in found
                    if wanted.items() <= record.group_specs.items()
                ],
                self._more(),
            )
        }

    @wsgi.method('share_group_type:default', answer={'share_group_type': ITEM})
    def default(self, req: wsgi.Request) -> dict:
        """Show the default type."""
        record = self._default and self.services.db.read(
            group_types.find, req.ctx, self._default
        )
        if not record:
            raise exception.DefaultShareGroupTypeNotFound()
        return self._type_response(req, record)

    @wsgi.method('share_group_type:show', answer={'share_group_type': ITEM})
    def show(self, req: wsgi.Request, type_id: str) -> dict:
        """Show one type."""
        return self._type_response(
            req, self.services.db.read(group_types.get, req.ctx, type_id)
        )

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
        return self._type_response(
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

    def _type_response(self, req: wsgi.Request, record: ShareGroupTypeRecord) -> dict:
        return {'share_group_type': ITEM.function(req.minor)(record, self._more())}

    def _more(self) -> dict:
        return {'default': self._default}


def _wanted_specs(req: wsgi.Request) -> dict[str, str]:
    if 'group_specs' in req.query and req.minor not in _FILTER_BY_SPECS:
        raise exception.InvalidInput(
            reason='group_specs is a filter since version 2.66'
        )
    return literals.parse(req.query, 'group_specs')


def _list(
    session: Session, ctx: RequestContext, is_public: bool | None
) -> list[ShareGroupTypeRecord]:
    if is_public is False:
        return group_types.list_private(session)
    return group_types.list_accessible(session, ctx, all_projects=is_public is None)


def _create(
    session: Session, ctx: RequestContext, **values: typing.Any
) -> ShareGroupTypeRecord:
    return group_types.get(session, ctx, group_types.create(session, **values))


class ShareGroupTypeAccessController(TypeAccessController):
    tables = group_types.TABLES
    get_type = staticmethod(group_types.get)
    response_key = 'share_group_type_access'
    kind = 'Share group type'
    policies = {
        'list': 'share_group_type:list_project_access',
        'add': 'share_group_type:add_project_access',
        'remove': 'share_group_type:remove_project_access',
    }
