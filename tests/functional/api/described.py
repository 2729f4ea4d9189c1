"""The API description of a version, as a client reads it."""

import functools
import re
import typing

import jsonschema
import jsonschema.protocols
import orjson
import webob

from manila_lite import conf as configuration, exception
from manila_lite.api import versions
from manila_lite.api.description import operations

JSON = 'application/json'
_PROJECT = re.compile('^/v2/[0-9a-f]{32}/')


@functools.cache
def description(minor: int) -> 'Description':
    conf = configuration.new([])
    return Description(orjson.loads(operations.encoded(conf, minor)))


class Operation(typing.NamedTuple):
    """An operation of the description."""

    method: str
    path: str
    content: dict

    @property
    def actions(self) -> dict[str, dict]:
        return self.content.get('x-openstack-actions', {})


class Description:
    """A document, and whether answers fit it."""

    def __init__(self, content: dict):
        self.content = content
        self.operations = [
            Operation(method.upper(), path, operation)
            for path, methods in content['paths'].items()
            for method, operation in methods.items()
        ]
        self._validators: dict[int, jsonschema.protocols.Validator] = {}

    def find(self, method: str, path: str) -> Operation | None:
        """Return the operation of a request, without its query, or None."""
        return min(
            (
                operation
                for operation in self.operations
                if operation.method == method and _matches(operation.path, path)
            ),
            key=lambda operation: operation.path.count('{'),
            default=None,
        )

    def check(
        self, operation: Operation, status: int, body: bytes, action: str | None = None
    ) -> None:
        """Fail if the operation does not describe this answer."""
        where = f'{operation.method} {operation.path} {action} {status}'
        responses = operation.content['responses']
        if status < 400:
            assert str(status) in responses, f'{where} is not described'
        found = responses.get(str(status), responses['default'])
        if '$ref' in found:
            found = self._resolve(found['$ref'])
        schema = found.get('content', {}).get(JSON, {}).get('schema')
        if not body:
            assert schema is None or action in found.get(
                'x-openstack-without-body', ()
            ), f'{where} has no body'
            return
        assert schema is not None, f'{where} has a body: {body!r}'
        errors = [
            f'{"/".join(map(str, error.absolute_path))}: {error.message}'
            for error in self._validator(schema).iter_errors(orjson.loads(body))
        ]
        assert not errors, f'{where}: {errors[:3]}'

    def accepts(self, operation: Operation, body: object) -> bool:
        """Tell whether a request body fits the schema."""
        schema = operation.content['requestBody']['content'][JSON]['schema']
        return self._validator(schema).is_valid(body)

    def _resolve(self, reference: str) -> dict:
        found = self.content
        for name in reference.removeprefix('#/').split('/'):
            found = found[name]
        return found

    def _validator(self, schema: dict) -> jsonschema.protocols.Validator:
        key = id(schema)  # a part of the content, which stays
        if key not in self._validators:
            self._validators[key] = jsonschema.Draft202012Validator(
                {'allOf': [schema], 'components': self.content['components']}
            )
        return self._validators[key]


def _matches(template: str, path: str) -> bool:
    return _pattern(template).fullmatch(path) is not None


@functools.cache
def _pattern(template: str) -> re.Pattern:
    return re.compile(re.sub(r'\\\{\w+\\\}', '[^/]+', re.escape(template)))


def check_answer(request: webob.Request, answer: webob.Response) -> None:
    """Fail if an answer is not as its version describes.

    Answers of paths and versions that are not served are not described.
    """
    try:
        minor = versions.parse(request.headers.get(versions.HEADER, '2.0'))
    except exception.ManilaLiteError:
        return
    found = description(minor)
    path = _PROJECT.sub('/v2/', request.environ['PATH_INFO'], 1)
    operation = found.find(request.method, path)
    if operation is not None:
        found.check(
            operation,
            answer.status_int,
            answer.body,
            _action(request) if operation.actions else None,
        )


def _action(request: webob.Request) -> str | None:
    """Return the action that a body names."""
    try:
        body = orjson.loads(request.body)
    except orjson.JSONDecodeError:
        return None
    return next(iter(body), None) if isinstance(body, dict) else None
