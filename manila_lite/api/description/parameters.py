"""The parameters of operations: headers, path variables and query keys."""

from collections.abc import Callable, Iterable, Iterator
import datetime
import typing

from manila_lite.api import schema, versions
from manila_lite.api.filters import Filter, Filters
from manila_lite.api.schema import LARGEST_INTEGER

_FLAG = {'anyOf': [{'type': 'boolean'}, schema.BOOLEAN_WORD]}
_BY_RESULT: tuple[tuple[type, dict], ...] = (
    (dict, {'type': 'string', 'description': "Such as {'key': 'value'}"}),
    (datetime.datetime, {'type': 'string', 'description': 'ISO 8601, UTC'}),
    (str, {'type': 'string'}),
    (bool, _FLAG),
    (int, {'type': 'integer', 'minimum': 0, 'maximum': LARGEST_INTEGER}),
)


def version_header(minor: int) -> dict:
    return {
        'name': versions.HEADER,
        'in': 'header',
        'required': minor != versions.MIN,
        'description': f'Without it the version is {versions.text(0)}.',
        'schema': {'type': 'string', 'enum': [versions.text(minor)]},
    }


EXPERIMENTAL = {
    'name': versions.EXPERIMENTAL_HEADER,
    'in': 'header',
    'required': True,
    'description': 'The operation is experimental in this version.',
    'schema': {'type': 'string', 'enum': ['true']},
}


def path_variable(name: str) -> dict:
    return {
        'name': name,
        'in': 'path',
        'required': True,
        'schema': {'type': 'string', 'minLength': 1},
    }


def query_keys(declared: Iterable[Filter | Filters], minor: int) -> list[dict]:
    """Return the parameters of the keys that a version knows."""
    found = {row.key: _query_key(row) for row in rows(declared) if minor in row.window}
    parts = {key: found.pop(key)['schema'] for key in [*found] if key[-1] == '~'}
    return [*found.values(), *([_keys_of_parts(parts)] if parts else [])]


def _keys_of_parts(schemas: dict[str, dict]) -> dict:
    """Return the keys that ask for a part of a value, as one parameter.

    Each is a key of the query. Generated clients name them like the keys
    without a tilde, and cannot have both.
    """
    return {
        'name': 'parts',
        'in': 'query',
        'required': False,
        'style': 'form',
        'explode': True,
        'description': 'Values contain these texts.',
        'schema': {
            'type': 'object',
            'properties': schemas,
            'additionalProperties': False,
        },
    }


def rows(declared: Iterable[Filter | Filters]) -> Iterator[Filter]:
    """Yield the filters that are declared, one by one or together."""
    for entry in declared:
        if isinstance(entry, Filter):
            yield entry
        else:
            yield from entry.rows


def _query_key(row: Filter) -> dict:
    parameter: dict[str, typing.Any] = {
        'name': row.key,
        'in': 'query',
        'required': row.required,
        'schema': _values(row),
    }
    if row.policy:
        parameter['x-openstack-policy'] = row.policy
    if row.admin_only:
        parameter['description'] = 'Ignored unless administrators send it.'
    return parameter


def _values(row: Filter) -> dict:
    """Return the schema of the texts that a key may have."""
    if row.form is None and not row.words:
        return _parsed(row.parse)
    words = {'type': 'string', 'enum': list(row.words)}
    if row.form is None:
        return words
    return {'anyOf': [row.form, words]} if row.words else row.form


def _parsed(parse: Callable) -> dict:
    """Return the schema of the texts that a parser accepts."""
    result = typing.get_type_hints(parse)['return']
    kinds = {typing.get_origin(kind) or kind for kind in _alternatives(result)}
    return next(found for kind, found in _BY_RESULT if kind in kinds)


def _alternatives(result: object) -> tuple:
    if typing.get_origin(result) in (None, dict):
        return (result,)
    return typing.get_args(result)
