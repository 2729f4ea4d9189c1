"""JSON Schemas of answers: of types, of shapes, and of the fields of views."""

import collections.abc
import datetime
import functools
import inspect
import operator
import re
import types
import typing

from manila_lite.api import answers, fields
from manila_lite.db.queries import columns

_ATTRIBUTE = re.compile(r'\.(?!get\b)(\w+)')
_ONE_ATTRIBUTE = re.compile(r'row\.\w+')
_CHILD = re.compile(r"more\['\w+'\]\.get\(row\.\w+, \$\)")
_ADMIN_ONLY = 'Only administrators see this.'

TIME = {
    'type': 'string',
    'pattern': r'^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}$',
    'description': 'UTC',
}
LINKS = {
    'type': 'array',
    'items': {
        'type': 'object',
        'properties': {'rel': {'type': 'string'}, 'href': {'type': 'string'}},
        'required': ['rel', 'href'],
        'additionalProperties': False,
    },
}

_SIMPLE: dict[typing.Any, dict] = {
    str: {'type': 'string'},
    int: {'type': 'integer'},
    float: {'type': 'number'},
    bool: {'type': 'boolean'},
    type(None): {'type': 'null'},
    dict: {'type': 'object'},
    list: {'type': 'array', 'items': {}},
    datetime.datetime: TIME,
    typing.Any: {},
    object: {},
}
_ARRAYS = (list, collections.abc.Sequence, collections.abc.Collection)
_OBJECTS = (dict, collections.abc.Mapping)


def schema_of(annotation: object) -> dict | None:
    """Return the JSON Schema of a type, or None if it is not a type."""
    if annotation is None:
        return {'type': 'null'}
    try:
        if annotation in _SIMPLE:
            return _SIMPLE[annotation]
    except TypeError:  # a dict or list describes a body
        return None
    if typing.is_typeddict(annotation):
        return _object(typing.get_type_hints(annotation))
    origin, args = typing.get_origin(annotation), typing.get_args(annotation)
    if origin in (typing.Union, types.UnionType):
        return _union([_inner(arg) for arg in args])
    if origin in _ARRAYS:
        return {'type': 'array', 'items': _inner(args[0])}
    if origin in _OBJECTS:
        return {'type': 'object', 'additionalProperties': _inner(args[1])}
    if annotation in _OBJECTS:
        return {'type': 'object'}
    return None


def _inner(annotation: object) -> dict:
    return schema_of(annotation) or {}


def _object(hints: dict[str, typing.Any]) -> dict:
    return {
        'type': 'object',
        'properties': {name: _inner(hint) for name, hint in hints.items()},
        'required': list(hints),
        'additionalProperties': False,
    }


def nullable(schema: dict) -> dict:
    """Return the schema that also allows null."""
    return _union([schema, {'type': 'null'}])


def _union(schemas: list[dict]) -> dict:
    names: list[str] = []
    united: dict = {}
    for schema in schemas:
        kinds = schema.get('type')
        if kinds is None:
            return {} if {} in schemas else {'anyOf': schemas}
        rest = {key: value for key, value in schema.items() if key != 'type'}
        if rest and united:
            return {'anyOf': schemas}
        united |= rest
        names += [kinds] if isinstance(kinds, str) else kinds
    # Keywords other than `type` say nothing about null.
    if united and set(names) - {'null'} != {names[0]}:
        return {'anyOf': schemas}
    kinds = list(dict.fromkeys(names))
    return {'type': kinds if len(kinds) > 1 else kinds[0], **united}


_TEXT = nullable({'type': 'string'})
LABELS: dict[str, dict] = {
    # Those of services and of the log of recovery are numbers, as their views
    # say; work and migrations, which no view shows, have numbers, too.
    'id': {'type': 'string'},
    'progress': _TEXT,
    # The zone, share type and network of a row are read with it.
    'availability_zone': _TEXT,
    'share_type_name': _TEXT,
    'share_network_name': _TEXT,
    'zone': _TEXT,
    # Of the share of a snapshot.
    'share_size': {'type': 'integer'},
}
"""What queries label, and names that mean different things."""


def column_schema(name: str) -> dict | None:
    """Return the JSON Schema of the columns with a name, or None.

    It allows null if the column is nullable in any table.
    """
    if name in LABELS:
        return LABELS[name]
    kinds = columns.kinds_by_name().get(name)
    if kinds is None:
        return None
    ordered = sorted(kinds, key=lambda kind: (kind is type(None), str(kind)))
    return schema_of(functools.reduce(operator.or_, ordered))


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
        found = schema_of(shape)
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
        return LINKS
    if value.constant is fields.timestamp:
        return nullable(TIME)
    if callable(value.constant):
        return _returned(value.constant)
    if value.expression == '$':
        return schema_of(type(value.constant))
    if _CHILD.fullmatch(value.expression):
        return schema_of(type(value.constant))
    named = _ATTRIBUTE.findall(value.expression)
    found = column_schema(named[-1]) if named else None
    if found and not _ONE_ATTRIBUTE.fullmatch(value.expression):
        return nullable(found)  # the expression may give another value
    return found


def _returned(function: typing.Callable) -> dict | None:
    """Return the schema of what a function is annotated to return."""
    try:
        hints = typing.get_type_hints(function)
    except (TypeError, NameError):
        hints = {}
    if 'return' in hints:
        return schema_of(hints['return'])
    if inspect.isclass(function):
        return schema_of(function)
    return None
