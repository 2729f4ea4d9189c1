"""The responses of operations, and the errors that all of them share."""

from collections.abc import Iterable, Mapping
import http
import typing

from manila_lite.api import faults, wsgi

JSON = 'application/json'

_READS = ('GET',)
_OF_ALL = (400, 401, 404, 406, 503)
_OF_WRITES = (409, 413)
CODES = (*_OF_ALL, *_OF_WRITES, 403, 422)


def error_codes(method: str, declared: Iterable[wsgi.Declaration]) -> list[int]:
    """Return the codes of errors that an operation may answer."""
    codes = {*_OF_ALL}
    if method not in _READS:
        codes.update(_OF_WRITES)
    for one in declared:
        if one.policy is not wsgi.OPEN:
            codes.add(403)
        if one.body:
            codes |= one.body.codes
        for published in (one.refused or {}).values():
            codes.add(published.code)
    return sorted(codes)


def error_references(codes: Iterable[int]) -> dict[str, dict]:
    return {str(code): {'$ref': f'#/components/responses/{code}'} for code in codes} | {
        'default': {'$ref': '#/components/responses/fault'}
    }


def error_components() -> dict[str, dict]:
    """Return the responses with errors, by code, and that with any code."""
    return {str(code): _error(code) for code in CODES} | {
        'fault': {
            'description': 'Any other error.',
            'content': {JSON: {'schema': _reference('Error')}},
        }
    }


def error_schemas() -> dict[str, dict]:
    """Return the schemas of the bodies of errors, by their names."""
    return {f'Error{code}': _fault(code) for code in CODES} | {'Error': _fault(None)}


def _reference(name: str) -> dict:
    return {'$ref': f'#/components/schemas/{name}'}


def _error(code: int) -> dict:
    error: dict[str, typing.Any] = {
        'description': http.HTTPStatus(code).phrase,
        'content': {JSON: {'schema': _reference(f'Error{code}')}},
    }
    if code in (413, 503):
        error['headers'] = {
            'Retry-After': {'schema': {'type': 'string', 'pattern': r'^\d+$'}}
        }
    return error


def _fault(code: int | None) -> dict:
    """Return the schema of the body of an error."""
    content: dict[str, typing.Any] = {
        'type': 'object',
        'properties': {
            'code': {'type': 'integer'}
            if code is None
            else {'type': 'integer', 'enum': [code]},
            'message': {'type': 'string'},
        },
        'required': ['code', 'message'],
    }
    if code == 413:
        content['properties']['retryAfter'] = {'type': 'string'}
    if code is None:
        names: dict[str, typing.Any] = {
            'additionalProperties': content,
            'minProperties': 1,
            'maxProperties': 1,
        }
    else:
        key = faults.fault_key(code)
        names = {
            'properties': {key: content},
            'required': [key],
            'additionalProperties': False,
        }
    return {'type': 'object', **names}


def success(status: int, bodies: Mapping[str, dict | None]) -> dict:
    """Return the response with a status; None says that it has no body.

    The bodies are by the name of their action, or of their operation.
    """
    schemas: list[dict] = []
    for schema in bodies.values():
        if schema is not None and schema not in schemas:
            schemas.append(schema)
    empty = [name for name, schema in bodies.items() if schema is None]
    response: dict[str, typing.Any] = {'description': http.HTTPStatus(status).phrase}
    if schemas:
        response['content'] = {
            JSON: {'schema': schemas[0] if len(schemas) == 1 else {'anyOf': schemas}}
        }
        if empty:
            response['description'] += '; no body for ' + ', '.join(empty)
            response['x-openstack-without-body'] = empty
    return response
