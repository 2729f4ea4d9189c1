"""JSON Schemas of Python types, as answers and functions are annotated."""

import collections.abc
import datetime
import functools
import operator
import types
import typing

from manila_lite.db.queries import columns

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


def schema_of(annotation: typing.Any) -> dict | None:
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


def _inner(annotation: typing.Any) -> dict:
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
