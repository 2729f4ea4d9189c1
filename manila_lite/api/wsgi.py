"""Requests, responses and controllers: the interface for handlers.

A controller is a class with one method per operation. `@method` and
`@action` declare what is checked before the method runs: version, target,
policy and body. The method itself deals only with HTTP.
"""

import enum
import functools
import http
import inspect
import re
import typing
import urllib.parse

import orjson
import webob

from manila_lite import context, exception
from manila_lite.api import answers, schema, versions
from manila_lite.api.services import ApiServices

# Keys of the WSGI environment.
CONTEXT = 'manila_lite.context'
TARGET = 'manila_lite.target'
VERSION_HEADERS = 'manila_lite.version_headers'
FAULT_KEY = 'manila_lite.fault_key'
ROUTE = 'manila_lite.route'
SIGN_IN_NAME = 'manila_lite.sign_in_name'

MAX_DEPTH = 32  # of nested objects and lists in a body
MAX_QUERY_KEYS = 200
_LARGEST = 2**63 - 1
_LONG_NUMBER = re.compile(rb'\d{19}')


class Request(webob.Request):
    """A request with the attributes that most handlers need.

    `minor` is the N of its version 2.N, `path_vars` the variables of the
    route, `url_project` the project id in the URL, `ctx` the caller, or None
    for URLs that need no authentication.
    """

    minor: int = versions.MIN
    experimental: bool = False
    url_project: str | None = None
    path_vars: typing.Mapping[str, str] = {}
    base_url: str | None = None
    ctx: context.RequestContext = None  # type: ignore[assignment]

    def __init__(self, environ: dict, **attributes: object):
        self.__dict__.update(attributes, environ=environ, ctx=environ.get(CONTEXT))

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
        if '%00' in text and any('\0' in name + value for name, value in query.items()):
            raise exception.MalformedRequestUrl()
        return query

    @functools.cached_property
    def json(self) -> typing.Any:
        """The parsed body; None if there is none or it is not JSON."""
        kind = self.environ.get('CONTENT_TYPE', '')
        if kind.partition(';')[0].strip().lower() != 'application/json':
            return None
        raw = self._read()
        return _parse(raw) if raw else None

    def _read(self) -> bytes:
        length = self.environ.get('CONTENT_LENGTH')
        stream = self.environ['wsgi.input']
        if is_chunked(self.environ):
            return stream.read(-1)
        if not length:
            return b''
        try:
            raw = stream.read(int(length))
        except TimeoutError:
            raise exception.MalformedRequestBody() from None
        if len(raw) != int(length):  # the client disconnected
            raise exception.MalformedRequestBody()
        return raw

    @functools.cached_property
    def public_url(self) -> str:
        """The URL of this service for clients, without a trailing slash."""
        return (self.base_url or self.host_url).rstrip('/') + self.environ.get(
            'SCRIPT_NAME', ''
        )


def is_chunked(environ: dict) -> bool:
    """Return whether the body is chunked, so its length is unknown."""
    return 'chunked' in environ.get('HTTP_TRANSFER_ENCODING', '').lower()


def _parse(raw: bytes) -> typing.Any:
    try:
        body = orjson.loads(raw)
    except orjson.JSONDecodeError:
        raise exception.MalformedRequestBody() from None
    # A cheap test shows that most bodies need no closer inspection.
    if (
        raw.count(b'{') + raw.count(b'[') > MAX_DEPTH
        or b'\\u0000' in raw
        or _LONG_NUMBER.search(raw)
    ):
        _refuse_hostile(body, MAX_DEPTH)
    return body


def _refuse_hostile(value: typing.Any, depth: int) -> None:
    """Refuse values that a database or a recursive reader cannot take."""
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
    """A response that differs from what the handler declared.

    The body is a dict or list to serialise, serialised bytes, or None.
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
Refusals = typing.Mapping[
    type[exception.ManilaLiteError], type[exception.ManilaLiteError]
]


class Unchecked(enum.Enum):
    """What a declaration has instead of a policy."""

    OPEN = 'every caller may use the operation'
    IN_HANDLER = 'the handler reads the target and checks the policy'


OPEN = Unchecked.OPEN
IN_HANDLER = Unchecked.IN_HANDLER


class Declaration(typing.NamedTuple):
    """The declaration of a handler."""

    policy: str | Unchecked
    status: int
    body: schema.Schema | None
    target: str | None  # the controller's method that loads the target
    refused: Refusals | None
    answer: answers.Shape = None  # of the body; None if there is none
    unchanged: int | None = None  # the status if there was nothing to do
    query: tuple = ()  # the filters whose keys the handler reads
    of_class: typing.Mapping[str, typing.Callable] = {}  # fields by function


class ActionDeclaration(typing.NamedTuple):
    """One name of an action in one window of versions."""

    name: str
    window: versions.Window
    experimental: versions.Window | None
    declared: Declaration


def _declare(
    policy: str | Unchecked,
    status: int,
    body: schema.Schema | None,
    target: bool | str | None,
    refused: Refusals | None,
    **described: typing.Any,
) -> Declaration:
    """Return the declaration; refuse one that forgets the policy."""
    if not policy or not isinstance(policy, str | Unchecked):
        raise TypeError(f'{policy!r} is neither a policy nor OPEN')
    return Declaration(policy, status, body, _loader(target), refused, **described)


def _loader(target: bool | str | None) -> str | None:
    return 'target' if target is True else target or None


def method(
    policy: str | Unchecked,
    *,
    status: int = 200,
    body: schema.Schema | typing.Callable[[typing.Any], schema.Schema] | None = None,
    target: bool | str | None = None,
    refused: Refusals | None = None,
    answer: answers.Shape = None,
    query: tuple | typing.Callable[[typing.Any], tuple] = (),
) -> typing.Callable:
    """Declare a handler that a route names.

    With `target=True` the controller's `target(req, ...)` loads the row that
    the policy is checked against; a string names another such method. Its
    parameters name the path variables it needs. The handler is called as
    `handler(req[, target][, args], **other_path_variables)`; `args` is
    passed if there is a body schema. A policy without a target is checked
    against the caller's own project, and so is that of a target that is not
    found: a role that never allows the operation gets 403 for every id.
    `OPEN` and `IN_HANDLER` say why none is checked here. Errors of the
    handler that are listed in `refused` are raised as the published error of
    the operation instead. `answer` and `query`, the shape of the body and
    the filters whose keys are read, are what the API description says;
    requests do not use them. A function for `body` or `query` is called with
    the class of the controller that has or inherits the handler.
    """
    given = {'body': body, 'query': query}
    declared = _declare(
        policy,
        status,
        None if callable(body) else body,
        target,
        refused,
        answer=answer,
        query=() if callable(query) else query,
        of_class={name: of for name, of in given.items() if callable(of)},
    )

    def declare(function: typing.Callable) -> typing.Callable:
        function.declared = declared  # type: ignore[attr-defined]
        return function

    return declare


def action(
    name: str,
    policy: str | Unchecked,
    *,
    since: str | None = None,
    until: str | None = None,
    renamed: str | None = None,
    experimental: str | None = None,
    status: int = 202,
    body: schema.Schema | None = None,
    target: bool | str | None = True,
    refused: Refusals | None = None,
    answer: answers.Shape = None,
    unchanged: int | None = None,
) -> typing.Callable:
    """Declare one name of an action; these decorators can be stacked.

    `experimental` is a span of versions such as '2.29-2.95' or '2.57-'. The
    handler is called like that of `method`; `args` is the value under the
    action's name. Without a schema the value is ignored. `unchanged` is the
    status of its answer without a body if there was nothing to do. Before the
    version `renamed` the name began with "os-".
    """
    windows = {name: versions.window(since or renamed, until)}
    if renamed:
        windows[f'os-{name}'] = versions.before(renamed)
    declared = _declare(
        policy, status, body, target, refused, answer=answer, unchanged=unchanged
    )
    rows = tuple(
        ActionDeclaration(each, window, versions.span(experimental), declared)
        for each, window in windows.items()
    )

    def declare(function: typing.Callable) -> typing.Callable:
        known = getattr(function, 'actions', ())
        function.actions = (*known, *rows)  # type: ignore[attr-defined]
        return function

    return declare


class Controller:
    """The operations of one resource.

    `services` is the object with the operations and the database that
    `build_app` was given. One instance serves all requests. `policies` has
    the rules of this class for the names that inherited handlers declare.
    Those in `public_reads` are checked against the caller's own project if
    the target is public: everybody who sees it may read all of it. With
    `checks_body_first`, an invalid body for an unknown target is 400.
    """

    policies: typing.Mapping[str, str] = {}
    public_reads: typing.Container[str] = ()
    checks_body_first = False

    def __init__(self, services: ApiServices):
        self.services = services

    @functools.cached_property
    def max_limit(self) -> int:
        """The most items that a page of a list has."""
        return self.services.conf.osapi_max_limit


class BoundHandler(typing.NamedTuple):
    """A handler with its checks, for the versions it serves."""

    window: versions.Window
    experimental: versions.Window | None
    run: typing.Callable[..., tuple[int, Result]]

    def serves(self, req: Request) -> bool:
        """Return whether the version and the header select this handler."""
        return req.minor in self.window and (
            req.experimental
            or self.experimental is None
            or req.minor not in self.experimental
        )


def declaration(controller: type[Controller], name: str) -> Declaration:
    """Return the declaration of a method, with the policy of the class."""
    return with_policy(controller, getattr(controller, name).declared)


def with_policy(controller: type[Controller], declared: Declaration) -> Declaration:
    """Return an inherited declaration with what the class says of it."""
    declared = declared._replace(
        **{name: of(controller) for name, of in declared.of_class.items()}
    )
    if isinstance(declared.policy, Unchecked):
        return declared
    return declared._replace(
        policy=controller.policies.get(declared.policy, declared.policy)
    )


def bind_method(controller: Controller, name: str) -> typing.Callable:
    """Return the function (req) -> (status, result) of a method."""
    handler = getattr(controller, name)
    return _with_checks(
        controller,
        handler,
        declaration(type(controller), name),
        lambda req, body: body.arguments(req.json, req.minor),
    )


def bind_actions(controller: Controller) -> typing.Callable:
    """Return the function (req) -> (status, result) of all actions."""
    found: dict[str, list[BoundHandler]] = {}
    for method in action_methods(type(controller)):
        handler = getattr(controller, method)
        for row in handler.actions:
            found.setdefault(row.name, []).append(
                BoundHandler(
                    row.window,
                    row.experimental,
                    _with_checks(
                        controller,
                        handler,
                        with_policy(type(controller), row.declared),
                        functools.partial(_action_arguments, row.name),
                    ),
                )
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
        raise exception.VersionNotFoundForMethod(version=versions.text(req.minor))

    return run


def check_actions(controller: type[Controller]) -> None:
    """Check what `bind_actions` relies on; raise ValueError."""
    windows: dict[str, list[versions.Window]] = {}
    for method in action_methods(controller):
        for row in getattr(controller, method).actions:
            windows.setdefault(row.name, []).append(row.window)
    if not windows:
        raise ValueError(f'{controller.__name__} has no action')
    for name, served in windows.items():
        if versions.overlapping(served):
            raise ValueError(f'action {name} is declared twice for one version')


def action_methods(controller: type[Controller]) -> tuple[str, ...]:
    """Return the names of the methods that are actions."""
    kind: type = controller
    return _action_methods(kind)


@functools.cache
def _action_methods(controller: type) -> tuple[str, ...]:
    """Return the names of the methods that are actions."""
    return tuple(
        name
        for name, method in inspect.getmembers(controller, inspect.isfunction)
        if hasattr(method, 'actions')
    )


def _action_arguments(name: str, req: Request, body: schema.Schema) -> typing.Any:
    return body.check(req.json[name], req.minor, name)


def _with_checks(
    controller: Controller,
    handler: typing.Callable,
    declared: Declaration,
    arguments: typing.Callable,
) -> typing.Callable[[Request], tuple[int, Result]]:
    """Wrap the handler in its checks: target, policy, then body."""
    policy, status, body, loader, refused, *_ = declared
    rule = None if isinstance(policy, Unchecked) else policy
    reads_public = rule in controller.public_reads
    call = _refusing(handler, refused) if refused else handler
    load = getattr(controller, loader) if loader else None
    kind: type = type(controller)
    loader_params = _path_variables(kind, loader) if loader else ()

    def run(req: Request) -> tuple[int, Result]:
        variables = dict(req.path_vars)
        args: list = []
        if load:
            ids = [variables.pop(name) for name in loader_params]
            try:
                args.append(load(req, *ids))
            except (exception.NotFound, exception.InvalidInput):
                # A caller whose role never allows the operation gets 403
                # for every id: absent, of another project, or malformed.
                _authorize(req, rule)
                if body and controller.checks_body_first:
                    arguments(req, body)
                raise
            req.environ[TARGET] = args[0]
        is_public = reads_public and args[0].is_public
        _authorize(req, rule, *([] if is_public else args))
        if body:
            args.append(arguments(req, body))
        return status, call(req, *args, **variables)

    return run


def _authorize(req: Request, rule: str | None, *target: object) -> None:
    """Refuse the request unless the policy allows it.

    Without a target the caller's own project is used.
    """
    if rule and not req.ctx.can(rule, *target):
        raise exception.AccessDenied(rule=rule)


def _refusing(handler: typing.Callable, refused: Refusals) -> typing.Callable:
    """Wrap the handler so that it raises the published errors."""

    def call(*args: object, **variables: str) -> Result:
        try:
            return handler(*args, **variables)
        except tuple(refused) as error:
            published = next(
                refused[kind] for kind in refused if isinstance(error, kind)
            )
            text = error.public_message
            if '{reason}' in published.message:
                raise published(reason=text) from error
            raise published(text) from error

    return call


@functools.cache
def _path_variables(controller: type, loader: str) -> tuple[str, ...]:
    """Return the parameters of a loader after self and the request."""
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
    """Start the response and return its body, as WSGI requires."""
    lines = [*headers]
    if status != 204:  # which must not even have a length
        body = body or b''
        lines += [('Content-Type', kind), ('Content-Length', str(len(body)))]
    start_response(_STATUS_LINES[status], lines)
    return [body] if body else []


def send_json(
    start_response: typing.Callable,
    status: int,
    content: object,
    headers: typing.Iterable[tuple[str, str]] = (),
) -> list[bytes]:
    """Start the response and return its body as JSON unless it is bytes."""
    if content is not None and type(content) is not bytes:
        content = orjson.dumps(content)
    return send(start_response, status, content, headers)
