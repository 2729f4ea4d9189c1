"""JSON Schemas of answers: of their shapes, and of the fields of views."""

import inspect
import re
import typing

from manila_lite.api import answers, fields
from manila_lite.api.description import types

_ATTRIBUTE = re.compile(r'\.(?!get\b)(\w+)')
_ONE_ATTRIBUTE = re.compile(r'row\.\w+')
_CHILD = re.compile(r"more\['\w+'\]\.get\(row\.\w+, \$\)")
_ADMIN_ONLY = 'Only administrators see this.'


class Shapes:
    """The schemas of answers at one version.

    A view becomes a component, named after the first operation that shows
    it; `components` has the schemas by name.
    """

    def __init__(self, minor: int):
        self._minor = minor
        self._names: dict[fields.View, str] = {}
        self.components: dict[str, dict] = {}

    def schema(self, shape: answers.Shape, name: str) -> dict:
        """Return the schema of a shape; `name` is for its views."""
        if isinstance(shape, fields.View):
            return self._reference(shape, name)
        if isinstance(shape, dict):
            return {
                'type': 'object',
                'properties': {
                    str(key): self.schema(inner, f'{name}.{key}')
                    for key, inner in shape.items()
                },
                'required': [
                    key for key in shape if not isinstance(key, answers.MayLack)
                ],
                'additionalProperties': False,
            }
        if isinstance(shape, list):
            return {'type': 'array', 'items': self.schema(shape[0], name)}
        found = types.schema_of(shape)
        if found is None:
            raise TypeError(f'{name}: {shape!r} is not the shape of an answer')
        return found

    def _reference(self, view: fields.View, name: str) -> dict:
        known = self._names.get(view)
        if known is None:
            known = self._names[view] = name
            self.components[name] = self._object(view, name)
        return {'$ref': f'#/components/schemas/{known}'}

    def _object(self, view: fields.View, name: str) -> dict:
        shown = view.visible_fields(self._minor, admin=True)
        return {
            'type': 'object',
            'properties': {
                field.name: self._field(field, f'{name}.{field.name}')
                for field in shown
            },
            'required': [field.name for field in shown if not field.admin_only],
            'additionalProperties': False,
        }

    def _field(self, field: fields.Field, name: str) -> dict:
        if field.shape is not None:
            schema = self.schema(field.shape, name)
        else:
            schema = value_schema(field.value) or {}
        if field.admin_only:
            return schema | {'description': _ADMIN_ONLY}
        return schema


def value_schema(value: fields.FieldValue) -> dict | None:
    """Return the schema of a value that says its type, or None."""
    if value is fields.LINKS:
        return types.LINKS
    if value.constant is fields.timestamp:
        return types.nullable(types.TIME)
    if callable(value.constant):
        return _returned(value.constant)
    if value.expression == '$':
        return types.schema_of(type(value.constant))
    if _CHILD.fullmatch(value.expression):
        return types.schema_of(type(value.constant))
    named = _ATTRIBUTE.findall(value.expression)
    found = types.column_schema(named[-1]) if named else None
    if found and not _ONE_ATTRIBUTE.fullmatch(value.expression):
        return types.nullable(found)  # the expression may give another value
    return found


def _returned(function: typing.Callable) -> dict | None:
    """Return the schema of what a function is annotated to return."""
    try:
        hints = typing.get_type_hints(function)
    except (TypeError, NameError):
        hints = {}
    if 'return' in hints:
        return types.schema_of(hints['return'])
    if inspect.isclass(function):
        return types.schema_of(function)
    return None
