"""Requests, answers and controllers: what a handler is written against.

A controller is a class with one method per operation. `@method` and
`@action` declare what is checked before the method runs: version, target,
policy and body. The method itself speaks only HTTP.
"""

import functools
import http
import inspect
import re
import typing
import urllib.parse

import orjson
import webob
from webob import exc

from manila_lite import context
from manila_lite import exception
from manila_lite.api import schema
from manila_lite.api import versions

# Keys of the environment.
CONTEXT = 'manila_lite.context'
VERSION_HEADERS = 'manila_lite.version_headers'

MAX_DEPTH = 32  # of objects and lists inside each other in a body
MAX_QUERY_KEYS = 200
_LARGEST = 2**63 - 1
_LONG_NUMBER = re.compile(rb'\d{19}')


class Request(webob.Request):
    """One request, with what nearly every handler asks for at hand.

    `minor` is the N of its version 2.N, `path_vars` the variables of the
    route, `url_project` the project id that stood in the URL, `ctx` the
    caller, or None where nobody has to sign in.
    """

    minor: int = versions.MIN
    experimental: bool = False
    url_project: str | None = None
    path_vars: typing.Mapping[str, str] = {}
    base_url: str | None = None
    ctx: context.RequestContext = None  # type: ignore[assignment]

    def __init__(self, environ: dict, **known: typing.Any):
        self.__dict__.update(known, environ=environ, ctx=environ.get(CONTEXT))

    @functools.cached_property
    def query(self) -> dict[str, str]:
        """The last value of each key in the query string."""
        text = self.environ.get('QUERY_STRING')
        if not text:
            return {}
        try:
            if not text.isascii():
                text = text.encode('latin-1').decode('utf-8')
            query = dict(
                urllib.parse.parse_qsl(
                    text,
                    keep_blank_values=True,
                    errors='strict',
                    max_num_fields=MAX_QUERY_KEYS,
                )
            )
        except ValueError:
            raise exception.MalformedRequestUrl() from None
        if '%00' in text and any(
            '\0' in name + value for name, value in query.items()
        ):
            raise exception.MalformedRequestUrl()
        return query

    @functools.cached_property
    def json(self) -> typing.Any:
        """The parsed body; None when there is none or it is not JSON."""
        kind = self.environ.get('CONTENT_TYPE', '')
        if kind.partition(';')[0].strip().lower() != 'application/json':
            return None
        raw = self._read()
        return _parsed(raw) if raw else None

    def _read(self) -> bytes:
        length = self.environ.get('CONTENT_LENGTH')
        stream = self.environ['wsgi.input']
        if is_chunked(self.environ):
            return stream.read(-1)
        if not length:
            return b''
        raw = stream.read(int(length))
        if len(raw) != int(length):  # the client went away
            raise exception.MalformedRequestBody()
        return raw

    @functools.cached_property
    def public_url(self) -> str:
        """Where the client finds this service, without a last slash."""
        return (self.base_url or self.host_url).rstrip('/') + self.environ.get(
            'SCRIPT_NAME', ''
        )


def is_chunked(environ: dict) -> bool:
    """Tell whether the body comes in chunks, its length unknown."""
    return 'chunked' in environ.get('HTTP_TRANSFER_ENCODING', '').lower()


def _parsed(raw: bytes) -> typing.Any:
    try:
        body = orjson.loads(raw)
    except orjson.JSONDecodeError:
        raise exception.MalformedRequestBody() from None
    # Most bodies show at a glance that they hide nothing of the kind.
    if (
        raw.count(b'{') + raw.count(b'[') > MAX_DEPTH
        or b'\\u0000' in raw
        or _LONG_NUMBER.search(raw)
    ):
        _refuse_hostile(body, MAX_DEPTH)
    return body


def _refuse_hostile(value: typing.Any, depth: int) -> None:
    """Refuse what a database or a recursive reader would stumble over."""
    if type(value) is str:
        refused = '\0' in value
    elif type(value) in (int, float):
        # orjson reads an integer beyond 64 bits as a float.
        refused = not -_LARGEST <= value <= _LARGEST
    elif type(value) in (dict, list):
        refused = depth == 0
        if not refused:
            for item in value:
                _refuse_hostile(item, depth - 1)
            if type(value) is dict:
                for item in value.values():
                    _refuse_hostile(item, depth - 1)
    else:
        refused = False
    if refused:
        raise exception.MalformedRequestBody()


class Response:
    """An answer that differs from what the handler declared.

    The body is a dict or list to dump, bytes dumped already, or None.
    """

    __slots__ = ('body', 'headers', 'status')

    def __init__(
        self,
        body: dict | list | bytes | None = None,
        status: int | None = None,
        headers: typing.Iterable[tuple[str, str]] = (),
    ):
        self.body = body
        self.status = status
        self.headers = list(headers)


Result = dict | list | bytes | Response | None


class Declaration(typing.NamedTuple):
    """What is declared about a handler."""

    policy: str | None
    status: int
    body: schema.Schema | None
    target: str | None  # the controller's method that loads the target


class ActionDeclaration(typing.NamedTuple):
    """One name of an action in one window of versions."""

    name: str
    window: versions.Window
    experimental: versions.Window | None
    declared: Declaration


def _loader(target: bool | str | None) -> str | None:
    return 'target' if target is True else target or None


def method(
    policy: str | None = None,
    *,
    status: int = 200,
    body: schema.Schema | None = None,
    target: bool | str | None = None,
) -> typing.Callable:
    """Declare a handler that a route names.

    With `target=True` the controller's `target(req, ...)` loads the row
    that the policy is asked about; a string names another such method. It
    takes the path variables it is interested in. The handler is called as
    `handler(req[, target][, args], **other_path_variables)`: `args` are
    there when a body schema is. A policy without a target is asked about
    the caller's own project.
    """

    def declare(function: typing.Callable) -> typing.Callable:
        function.declared = Declaration(  # type: ignore[attr-defined]
            policy, status, body, _loader(target)
        )
        return function

    return declare


def action(
    name: str,
    since: str | None = None,
    until: str | None = None,
    *,
    experimental: str | None = None,
    policy: str | None = None,
    status: int = 202,
    body: schema.Schema | None = None,
    target: bool | str | None = True,
) -> typing.Callable:
    """Declare one name of an action; decorators of this kind stack.

    `experimental` is a span of versions such as '2.29-2.95' or '2.57-'.
    The handler is called as that of a `method`; the arguments are the value
    below the action's name. Without a schema the value is ignored.
    """
    row = ActionDeclaration(
        name,
        versions.window(since, until),
        versions.span(experimental),
        Declaration(policy, status, body, _loader(target)),
    )

    def declare(function: typing.Callable) -> typing.Callable:
        rows = getattr(function, 'actions', ())
        function.actions = (*rows, row)  # type: ignore[attr-defined]
        return function

    return declare


class Controller:
    """The operations of one resource.

    `services` is what `build_app` was given: the object that holds the
    operations and the database. One instance serves all requests.
    """

    def __init__(self, services: typing.Any):
        self.services = services


class BoundHandler(typing.NamedTuple):
    """A handler with its checks, for the versions it serves."""

    window: versions.Window
    experimental: versions.Window | None
    run: typing.Callable[..., tuple[int, Result]]

    def serves(self, req: Request) -> bool:
        """Tell whether the version, and the header, select this one."""
        return req.minor in self.window and (
            req.experimental
            or self.experimental is None
            or req.minor not in self.experimental
        )


def bind_method(controller: Controller, name: str) -> typing.Callable:
    """The function (req) -> (status, result) of one declared method."""
    handler = getattr(controller, name)
    return _checked(
        controller,
        handler,
        handler.declared,
        lambda req, body: body.arguments(req.json, req.minor),
    )


def bind_actions(controller: Controller) -> typing.Callable:
    """The function (req) -> (status, result) of all declared actions."""
    found: dict[str, list[BoundHandler]] = {}
    for _, handler in inspect.getmembers(controller, inspect.ismethod):
        for row in getattr(handler, 'actions', ()):
            found.setdefault(row.name, []).append(
                BoundHandler(
                    row.window,
                    row.experimental,
                    _checked(
                        controller,
                        handler,
                        row.declared,
                        functools.partial(_action_arguments, row.name),
                    ),
                )
            )
    if not found:
        raise ValueError(f'{type(controller).__name__} has no action')
    for name, windows in found.items():
        if versions.overlapping(bound.window for bound in windows):
            raise ValueError(
                f'action {name} is declared twice for one version'
            )

    def run(req: Request) -> tuple[int, Result]:
        body = req.json
        if type(body) is not dict or len(body) != 1:
            raise exception.MalformedRequestBody()
        (name,) = body
        if name not in found:
            raise exception.NoSuchAction(action=name[:100])
        for bound in found[name]:
            if bound.serves(req):
                return bound.run(req)
        raise exception.VersionNotFoundForMethod(
            version=versions.text(req.minor)
        )

    return run


def _action_arguments(
    name: str, req: Request, body: schema.Schema
) -> typing.Any:
    return body.check(req.json[name], req.minor, name)


def _checked(
    controller: Controller,
    handler: typing.Callable,
    declared: Declaration,
    arguments: typing.Callable,
) -> typing.Callable[[Request], tuple[int, Result]]:
    """The handler behind its checks: target, policy, then body."""
    policy, status, body, loader = declared
    load = getattr(controller, loader) if loader else None
    wanted = _path_variables(type(controller), loader) if loader else ()

    def run(req: Request) -> tuple[int, Result]:
        variables = dict(req.path_vars)
        given: list = []
        if load:
            given.append(load(req, *[variables.pop(name) for name in wanted]))
        if policy and not req.ctx.can(policy, *given):
            raise exception.Forbidden('Access was denied to this resource.')
        if body:
            given.append(arguments(req, body))
        return status, handler(req, *given, **variables)

    return run


@functools.cache
def _path_variables(controller: type, loader: str) -> tuple[str, ...]:
    """What a loader wants besides itself and the request."""
    return tuple(inspect.signature(getattr(controller, loader)).parameters)[2:]


_STATUS_LINES = {
    int(status): f'{int(status)} {status.phrase}' for status in http.HTTPStatus
}


def send(
    start_response: typing.Callable,
    status: int,
    body: bytes | None,
    headers: typing.Iterable[tuple[str, str]] = (),
    kind: str = 'application/json',
) -> list[bytes]:
    """Start the answer and give its body, as WSGI wants it."""
    lines = [*headers]
    if status != 204:  # which may not even have a length
        body = body or b''
        lines += [('Content-Type', kind), ('Content-Length', str(len(body)))]
    start_response(_STATUS_LINES[status], lines)
    return [body] if body else []


def send_json(
    start_response: typing.Callable,
    status: int,
    content: typing.Any,
    headers: typing.Iterable[tuple[str, str]] = (),
) -> list[bytes]:
    """Start the answer and give its body, dumped unless it is bytes."""
    if content is not None and type(content) is not bytes:
        content = orjson.dumps(content)
    return send(start_response, status, content, headers)


def send_not_found(
    environ: dict, start_response: typing.Callable
) -> typing.Iterable[bytes]:
    """Answer an unknown URL: no JSON fault but text, or as Accept says."""
    return exc.HTTPNotFound()(environ, start_response)
