"""The description of a version: all operations, and each of them."""

import collections
from collections.abc import Iterable, Iterator, Mapping
import functools
import http
import inspect
import re
import typing

import orjson
from oslo_config import cfg

from manila_lite import policies
from manila_lite.api import answers, faults, router, routes, versions, wsgi
from manila_lite.api.description import parameters
from manila_lite.api.description.shapes import Shapes

_WORDS = re.compile('[A-Z][a-z]+')


class Handler(typing.NamedTuple):
    """A handler of an operation; its name is that of its action, if any."""

    name: str
    window: versions.Window
    declared: wsgi.Declaration
    experimental: bool
    text: str


def describe(
    route: router.Route, minor: int, shapes: Shapes, names: set[str]
) -> dict[str, typing.Any]:
    """Return the operation of a route, which serves the version.

    Its name is added to `names` and differs from those in it.
    """
    controller, method = route.controller, route.method
    noun = controller.__name__.removesuffix('Controller')
    is_action = route.handler == router.ACTION
    handlers = list(_handlers(route, minor))
    name = f'{noun}.{"action" if is_action else route.handler}'
    while name in names:
        name += '.alias'
    names.add(name)
    operation: dict[str, typing.Any] = {
        'operationId': name,
        'tags': [' '.join(_WORDS.findall(noun)).lower()],
        'summary': _summary(route, handlers),
        'parameters': _parameters(route, minor, handlers),
        **_served(route.window),
    }
    if is_action:
        operation['requestBody'] = _actions(handlers, minor)
        operation['x-openstack-actions'] = {
            one.name: {
                'description': one.text,
                'experimental': one.experimental,
                'status': one.declared.status,
                **_served(one.window),
                **of(one.declared.policy),
            }
            for one in handlers
        }
    else:
        declared = handlers[0].declared
        operation['description'] = handlers[0].text
        operation |= of(declared.policy)
        if declared.body:
            schema = declared.body.json_schema(minor)
            operation['requestBody'] = _body(schema)
    operation['responses'] = {
        **_successes(controller, handlers, shapes, name),
        **error_references(error_codes(method, [one.declared for one in handlers])),
    }
    return operation


def _handlers(route: router.Route, minor: int) -> Iterator[Handler]:
    """Yield the handlers of a route that serve the version."""
    controller = route.controller
    if route.handler != router.ACTION:
        yield Handler(
            route.handler,
            route.window,
            wsgi.declaration(controller, route.handler),
            _is_experimental(versions.span(route.experimental), minor),
            _text(getattr(controller, route.handler)),
        )
        return
    for name in wsgi.action_methods(controller):
        handler = getattr(controller, name)
        for row in handler.actions:
            if minor in row.window:
                yield Handler(
                    row.name,
                    row.window,
                    wsgi.with_policy(controller, row.declared),
                    _is_experimental(row.experimental, minor),
                    _text(handler),
                )


def _served(window: versions.Window) -> dict[str, dict]:
    """Return the first and the last version of an operation or an action.

    The names are those of other descriptions of OpenStack's services.
    """
    return {
        'x-openstack': {
            'min-ver': versions.text(window.since),
            'max-ver': versions.text(window.until),
        }
    }


def serves(route: router.Route, minor: int) -> bool:
    """Return whether the route, and an action of it, serve the version."""
    return minor in route.window and any(True for _ in _handlers(route, minor))


def _is_experimental(window: versions.Window | None, minor: int) -> bool:
    return window is not None and minor in window


def _text(handler: typing.Callable) -> str:
    return inspect.getdoc(handler) or ''


def _summary(route: router.Route, handlers: list[Handler]) -> str:
    if route.handler == router.ACTION:
        return 'Act on the resource.'
    text = handlers[0].text
    return text.partition('\n')[0] or f'{route.method} {route.path}'


def _parameters(route: router.Route, minor: int, handlers: list[Handler]) -> list[dict]:
    found = [{'$ref': '#/components/parameters/version'}]
    if _is_experimental(versions.span(route.experimental), minor):
        found.append({'$ref': '#/components/parameters/experimental'})
    found += [parameters.path_variable(name) for name in route.names]
    for one in handlers:
        found += parameters.query_keys(one.declared.query, minor)
    return found


def _body(schema: dict) -> dict:
    return {'required': True, 'content': {JSON: {'schema': schema}}}


def _actions(handlers: list[Handler], minor: int) -> dict:
    """Return the body that has one action by its name."""
    return _body(
        {
            'oneOf': [
                {
                    'type': 'object',
                    'properties': {
                        one.name: one.declared.body.json_schema(minor)
                        if one.declared.body
                        else {}
                    },
                    'required': [one.name],
                    'additionalProperties': False,
                }
                for one in handlers
            ]
        }
    )


def _successes(
    controller: type[wsgi.Controller],
    handlers: list[Handler],
    shapes: Shapes,
    name: str,
) -> dict[str, dict]:
    by_status: dict[int, dict[str, dict | None]] = {}
    for one in handlers:
        declared = one.declared
        shape = _shape(controller, declared.answer)
        by_status.setdefault(declared.status, {})[one.name] = (
            None if shape is None else shapes.schema(shape, f'{name}.{one.name}')
        )
        if declared.unchanged:
            by_status.setdefault(declared.unchanged, {})[one.name] = None
    return {
        str(status): success(status, bodies)
        for status, bodies in sorted(by_status.items())
    }


def _shape(controller: type[wsgi.Controller], answer: answers.Shape) -> answers.Shape:
    """Return the shape of an answer of the controller."""
    return answer(controller) if inspect.isfunction(answer) else answer


_PART = re.compile(r'\b(role|rule):([\w:-]+)')


def of(policy: str | wsgi.Unchecked) -> dict[str, typing.Any]:
    """Return what the description of an operation says about its policy."""
    if isinstance(policy, wsgi.Unchecked):
        return {'x-openstack-policy': None, 'x-openstack-check': policy.value}
    found: dict[str, typing.Any] = {'x-openstack-policy': policy}
    default = _defaults().get(policy)
    if default is not None:
        found['x-openstack-default-check'] = default
        found['x-openstack-default-roles'] = sorted(_roles(default, set()))
    return found


@functools.cache
def _defaults() -> dict[str, str]:
    return {rule.name: rule.check_str for rule in policies.list_rules()}


def _roles(check: str, seen: set[str]) -> set[str]:
    """Return the roles that a check mentions, also in other rules."""
    roles: set[str] = set()
    for kind, name in _PART.findall(check):
        if kind == 'role':
            roles.add(name)
        elif name not in seen:
            seen.add(name)
            roles |= _roles(_defaults().get(name, ''), seen)
    return roles


_ABOUT = """\
Wire compatible with the Manila v2 API of OpenStack. Every path below /v2 also
works with the id of the caller's project after /v2, and requests of that form
may name no other project."""

_TOKEN = {'type': 'apiKey', 'in': 'header', 'name': 'X-Auth-Token'}
_BASIC = {'type': 'http', 'scheme': 'basic'}


def encoded(conf: cfg.ConfigOpts, minor: int) -> bytes:
    """Return the description of a version as JSON."""
    return _encoded(tuple(sign_in(conf)), minor)


# A client reads one version; a description takes about half a megabyte.
@functools.lru_cache(maxsize=4)
def _encoded(schemes: tuple[str, ...], minor: int) -> bytes:
    return orjson.dumps(describe_version(schemes, minor))


def sign_in(conf: cfg.ConfigOpts) -> list[str]:
    """Return the names of the security schemes that are configured."""
    if conf.auth_strategy.startswith('noauth'):
        return []  # callers without credentials are administrators
    if conf.auth_strategy != 'http_basic':
        return ['token']
    return ['basic', 'token'] if conf.http_basic.identity_api else ['basic']


def describe_version(
    schemes: typing.Iterable[str], minor: int
) -> dict[str, typing.Any]:
    """Return the description of a version."""
    shapes = Shapes(minor)
    names: set[str] = set()
    paths: dict[str, dict] = collections.defaultdict(dict)
    for route in routes.ROUTES:
        if serves(route, minor):
            paths[route.template][route.method.lower()] = describe(
                route, minor, shapes, names
            )
    known = {'token': _TOKEN, 'basic': _BASIC}
    return {
        'openapi': '3.1.0',
        'info': {
            'title': 'Shared file systems',
            'version': versions.text(minor),
            'description': _ABOUT,
        },
        'servers': [{'url': '/'}],
        'security': [{scheme: []} for scheme in schemes],
        'paths': paths,
        'components': {
            'securitySchemes': {scheme: known[scheme] for scheme in schemes},
            'parameters': {
                'version': parameters.version_header(minor),
                'experimental': parameters.EXPERIMENTAL,
            },
            'responses': error_components(),
            'schemas': {**shapes.components, **error_schemas()},
        },
    }


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
