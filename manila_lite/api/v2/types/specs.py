"""Extra specs of types and group types."""

from collections.abc import Mapping
import re
import typing

from manila_lite import exception
from manila_lite.api import answers, schema, versions, wsgi
from manila_lite.api.schema import ValidationError
from manila_lite.context import RequestContext
from manila_lite.db.queries.types import group_types
from manila_lite.db.queries.types.tables import SpecTables
from manila_lite.db.session import Session

SENT = dict[str, str | bool | int | float]
"""The shape of specs as they were sent."""


def _all(controller: type['TypeSpecsController']) -> answers.Shape:
    return {controller.specs_key: dict[str, str]}


def _sent(controller: type['TypeSpecsController']) -> answers.Shape:
    return {controller.specs_key: SENT}


def _some(controller: type['TypeSpecsController']) -> schema.Schema:
    fields: dict[str, typing.Any] = {controller.specs_key: controller.accepted}
    return schema.schema(list(fields), **fields)


def _one(controller: type['TypeSpecsController']) -> schema.Schema:
    return schema.body_of(controller.accepted)


def policies_of(resource: str) -> dict[str, str]:
    """Return the policies of the specs of a kind of types."""
    names = ('index', 'show', 'create', 'update', 'delete')
    return {name: f'{resource}:{name}' for name in names}


class TypeSpecsController(wsgi.Controller):
    """Base of controllers for the specs of types.

    Subclasses name the tables, the function that reads a type the caller
    may see, the attribute of a type and key of bodies that has the specs,
    the specs that are accepted, and the policies.
    """

    tables: SpecTables
    get_type: typing.Callable[[Session, RequestContext, str], typing.Any]
    specs_key: str
    accepted: schema.Type

    @wsgi.method('index', answer=_all)
    def index(self, req: wsgi.Request, type_id: str) -> dict:
        """List all specs of the type."""
        return {self.specs_key: self._specs(req, type_id)}

    @wsgi.method('show', answer=dict[str, str])
    def show(self, req: wsgi.Request, type_id: str, key: str) -> dict:
        """Show one spec of the type."""
        specs = self._specs(req, type_id)
        if key not in specs:
            raise self.tables.error(self.tables.errors.spec_not_found, type_id, key=key)
        return {key: specs[key]}

    def _specs(self, req: wsgi.Request, type_id: str) -> dict[str, str]:
        record = self.services.db.read(self.get_type, req.ctx, type_id)
        return getattr(record, self.specs_key)

    @wsgi.method('create', body=_some, answer=_sent)
    def create(self, req: wsgi.Request, args: dict, type_id: str) -> dict:
        """Set some specs; responds with them as they were sent."""
        specs = args[self.specs_key]
        self.services.db.write(self._merge, type_id, specs, by=req.ctx)
        return {self.specs_key: req.json[self.specs_key]}

    @wsgi.method('update', body=_one, answer=SENT)
    def update(self, req: wsgi.Request, args: dict, type_id: str, key: str) -> dict:
        """Set the spec that the URL names."""
        if list(args) != [key]:
            raise exception.InvalidInput(
                reason=f'the body must contain {key} and nothing else'
            )
        self.services.db.write(self._merge, type_id, args, by=req.ctx)
        return req.json

    @wsgi.method('delete', status=204)
    def delete(self, req: wsgi.Request, type_id: str, key: str) -> None:
        """Delete one spec."""
        self.services.db.write(self.tables.delete_spec, type_id, key, by=req.ctx)

    def _merge(self, session: Session, id: str, specs: Mapping[str, str]) -> None:
        self.tables.lock(session, id)
        self.check_merge(session, id, specs)
        self.tables.set_specs(session, id, specs)

    def check_merge(self, session: Session, id: str, specs: Mapping[str, str]) -> None:
        """Raise if a locked type may not get these specs."""


TEXT = schema.string(255, 1)
"""The value of a spec, as it is stored."""

KEY = re.compile(r'[\w.:-]{1,255}')
_check_text = TEXT.at(versions.MAX)

_JSON_TYPES = {bool: 'boolean', int: 'integer', float: 'number'}


def checked_value(key: str, value: typing.Any, kinds: tuple[type, ...]) -> str:
    """Return the value of a spec, a text or one of these kinds, as text."""
    try:
        if not KEY.fullmatch(key):
            raise ValidationError(
                'must be a key of 1 to 255 letters, digits, and _ . : -'
            )
        return _check_text(str(value) if type(value) in kinds else value)
    except ValidationError as error:
        raise error.inside(key[:40]) from None


class Specs(schema.Type):
    """An object of specs: texts and values of some types, kept as text."""

    def __init__(self, *kinds: type):
        self._kinds = kinds

    def at(self, minor: int) -> schema.Check:
        def check(specs: typing.Any) -> dict[str, str]:
            if type(specs) is not dict:
                raise ValidationError('must be an object')
            return {
                key: checked_value(key, value, self._kinds)
                for key, value in specs.items()
            }

        return check

    def json_schema(self, minor: int) -> dict:
        return {
            'type': 'object',
            'propertyNames': {'pattern': f'^{KEY.pattern}$'},
            'additionalProperties': {
                'anyOf': [
                    TEXT.json_schema(minor),
                    *({'type': _JSON_TYPES[kind]} for kind in self._kinds),
                ]
            },
        }


GROUP_SPECS = Specs(bool)


class ShareGroupTypeSpecsController(TypeSpecsController):
    tables = group_types.TABLES
    get_type = staticmethod(group_types.get)
    specs_key = 'group_specs'
    accepted = GROUP_SPECS
    policies = policies_of('share_group_types_spec')
