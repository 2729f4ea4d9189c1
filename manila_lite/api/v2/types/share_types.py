"""Share types: list, show, create, update, delete, and the default."""

from collections.abc import Mapping
import typing

from manila_lite import exception
from manila_lite.api import schema, wsgi
from manila_lite.api.fields import Field, attr, fields, fn2
from manila_lite.api.v2.types import extra_specs
from manila_lite.api.v2.types.access import IS_DEFAULT, TypesController
from manila_lite.context import RequestContext
from manila_lite.db.queries.types import types as share_types
from manila_lite.db.queries.types.types import ShareTypeRecord
from manila_lite.db.session import Session

_IS_PUBLIC = 'share_type_access:is_public'

_text = schema.string(255, nullable=True)

# Their names are not identifiers.
_NEW_IS_PUBLIC: dict[str, typing.Any] = {
    _IS_PUBLIC: schema.alias('os-share-type-access:is_public', schema.boolean)
}
_CHANGED_IS_PUBLIC: dict[str, typing.Any] = {_IS_PUBLIC: schema.boolean}

CREATE = schema.schema(
    ['share_type'],
    share_type=schema.alias(
        'volume_type',
        schema.obj(
            ['name', 'extra_specs'],
            name=schema.trimmed(255, 1),
            extra_specs=extra_specs.NEW_EXTRA_SPECS,
            description=schema.since('2.41', _text, below='refuse'),
            **_NEW_IS_PUBLIC,
        ),
    ),
)
UPDATE = schema.schema(
    ['share_type'],
    share_type=schema.alias(
        'volume_type',
        schema.obj(
            name=schema.trimmed(255, 1, nullable=True),
            description=_text,
            **_CHANGED_IS_PUBLIC,
        ),
    ),
)


def _shown_specs(row: ShareTypeRecord, more: Mapping) -> Mapping:
    return extra_specs.visible_specs(row.extra_specs, more['minor'], more['admin'])


ITEM = fields(
    Field('id'),
    Field('name'),
    Field('description', since='2.41'),
    Field('extra_specs', fn2(_shown_specs), shape=dict[str, str | bool]),
    Field(
        'required_extra_specs',
        lambda row: extra_specs.required_specs(row.extra_specs),
        shape=dict[str, str | bool],
    ),
    Field('os-share-type-access:is_public', attr('is_public'), until='2.6'),
    Field('share_type_access:is_public', attr('is_public'), since='2.7'),
    IS_DEFAULT,
)


class ShareTypesController(TypesController):
    records = share_types.RECORDS
    item = ITEM
    keys = ('share_type', 'volume_type')
    specs_key = 'extra_specs'
    filters_since = '2.43'
    default_option = 'default_share_type'
    no_default = exception.DefaultShareTypeNotFound
    policies = {
        'index': 'share_type:index',
        'default': 'share_type:default',
        'show': 'share_type:show',
    }

    @wsgi.method(
        'share_type:create',
        body=CREATE,
        answer={'share_type': ITEM, 'volume_type': ITEM},
    )
    def create(self, req: wsgi.Request, args: dict) -> dict:
        """Create a type with its extra specs."""
        requested = args['share_type']
        specs = requested['extra_specs']
        if req.minor in extra_specs.SNAPSHOT_SUPPORT_DEFAULT:
            specs.setdefault(extra_specs.SNAPSHOT_SUPPORT, 'True')
        extra_specs.check_consistency(specs)
        return self._written(
            req,
            self.services.db.write(
                _create,
                req.ctx,
                by=req.ctx,
                name=requested['name'],
                description=requested.get('description'),
                is_public=requested.get(_IS_PUBLIC, True),
                extra_specs=specs,
            ),
        )

    @wsgi.method(
        'share_type:update',
        body=UPDATE,
        answer={'share_type': ITEM, 'volume_type': ITEM},
    )
    def update(self, req: wsgi.Request, args: dict, type_id: str) -> dict:
        """Update a type; an empty description removes it."""
        values = _changes(args['share_type'])
        return self._written(
            req, self.services.db.write(_update, req.ctx, type_id, values, by=req.ctx)
        )

    @wsgi.method('share_type:delete', status=202)
    def delete(self, req: wsgi.Request, type_id: str) -> None:
        """Delete a type that no share uses."""
        self.services.db.write(share_types.delete, type_id, by=req.ctx)

    def matches(
        self, req: wsgi.Request, record: ShareTypeRecord, wanted: Mapping[str, str]
    ) -> bool:
        return extra_specs.matches(
            record.extra_specs, dict(wanted), bool(req.ctx.is_admin)
        )

    def _written(self, req: wsgi.Request, record: ShareTypeRecord) -> dict:
        """Return a type that was written, its required specs as booleans."""
        answer = self.response(req, record)
        items = answer['share_type']
        items['required_extra_specs'] = {
            key: share_types.is_true(value)
            for key, value in items['required_extra_specs'].items()
        }
        return answer


def _changes(requested: dict) -> dict[str, typing.Any]:
    """Return the columns to change; null means unchanged."""
    values = {
        key.rpartition(':')[2]: value
        for key, value in requested.items()
        if value is not None
    }
    if not values:
        raise exception.InvalidInput(
            reason='share_type must have at least one of name, description '
            f'and {_IS_PUBLIC}'
        )
    if values.get('description') == '':
        values['description'] = None
    return values


def _create(
    session: Session, ctx: RequestContext, **values: typing.Any
) -> ShareTypeRecord:
    return share_types.get(session, ctx, share_types.create(session, **values))


def _update(
    session: Session, ctx: RequestContext, id: str, values: dict
) -> ShareTypeRecord:
    share_types.update(session, id, values)
    return share_types.get(session, ctx, id)
