"""Routing: from a URL to a handler.

`Route` rows are the declaration, and an index of them dispatches requests: the
mapper of the library Routes tries one pattern after the other. A test builds
such a mapper from the rows and verifies that both find the same routes.

Each path works below /v2 with and without a project id. If several routes
match, one without a project id wins, then one with `.json` removed, then the
one whose first differing segment is fixed.
"""

import dataclasses
import functools
import re
import typing

from webob import exc

from manila_lite import exception
from manila_lite.api import versions, wsgi
from manila_lite.db import write_limit

ACTION = 'ACTION'  # instead of a handler: the body names the action

_VERSION = 'HTTP_' + versions.HEADER.upper().replace('-', '_')
_EXPERIMENTAL = 'HTTP_' + versions.EXPERIMENTAL_HEADER.upper().replace('-', '_')
_READS = ('GET', 'HEAD')
_TRUE = frozenset(['1', 't', 'true', 'on', 'y', 'yes'])
_CONTROL = re.compile(r'[\x00-\x1f\x7f]')
_VARIABLE = re.compile(r'\{(\w+)\}')
_SUFFIX = '.json'
_KEY_OF_METADATA = '/metadata/{key}'
"""The end of a path whose variable is all of the rest, with slashes."""


@dataclasses.dataclass(frozen=True, eq=False)
class Route:
    """One operation: a method and path, with its handler in a window.

    `kind` says what may surround the path. 'collection' and 'member' accept
    a project id of the configured form and a suffix `.json`, 'free' accepts
    any project id, 'root' none. By default it follows from the path: `/x` and
    `/x/detail` are collections, `/x/{id}` and `/x/{id}/action` members.
    `template` is the path with what is before it in the URL.
    """

    method: str
    path: str
    controller: type[wsgi.Controller]
    handler: str
    since: str | None = None
    until: str | None = None
    experimental: str | None = None
    kind: str = ''
    template: str = dataclasses.field(init=False)

    def __post_init__(self) -> None:
        kind = self.kind or _default_kind(self.path)
        if kind not in ('collection', 'member', 'free', 'root'):
            raise ValueError(f'{kind} is not a kind of route')
        object.__setattr__(self, 'kind', kind)
        object.__setattr__(self, 'template', versions.PREFIX + self.path)

    @functools.cached_property
    def names(self) -> tuple[str, ...]:
        """The variables of the path, from left to right."""
        return tuple(_VARIABLE.findall(self.path))

    @functools.cached_property
    def shape(self) -> tuple[str, ...]:
        """The segments of the path, empty for each variable."""
        if self.path == '/':
            return ()
        return tuple(
            '' if _VARIABLE.fullmatch(segment) else segment
            for segment in self.path[1:].split('/')
        )

    @functools.cached_property
    def window(self) -> versions.Window:
        return versions.window(self.since, self.until)


@dataclasses.dataclass(frozen=True)
class Operation:
    """One operation of a controller; `path` is relative to its base."""

    method: str
    path: str
    handler: str
    since: str | None = None
    until: str | None = None
    experimental: str | None = None
    kind: str = ''


get = functools.partial(Operation, 'GET')
post = functools.partial(Operation, 'POST')
put = functools.partial(Operation, 'PUT')
delete = functools.partial(Operation, 'DELETE')


def action(path: str, **window: str) -> Operation:
    """Return the operation that the body's action names."""
    return Operation('POST', path, ACTION, **window)


_OF_RECORDS: dict[str, tuple[typing.Callable[..., Operation], str]] = {
    'index': (get, ''),
    'detail': (get, '/detail'),
    'create': (post, ''),
    'show': (get, '/{}'),
    'update': (put, '/{}'),
    'delete': (delete, '/{}'),
}


def records(id: str, handlers: str) -> list[Operation]:
    """Return the usual operations of records; `id` is a variable of the path."""
    return [
        verb(path.replace('{}', f'{{{id}}}'), handler)
        for handler in handlers.split()
        for verb, path in [_OF_RECORDS[handler]]
    ]


def serve(
    controller: type[wsgi.Controller], base: str, *operations: Operation, **window: str
) -> list[Route]:
    """Return the routes of a controller's operations below a path.

    `window` is that of operations that declare none.
    """
    return [
        Route(
            controller=controller,
            **{
                **vars(operation),
                **({} if operation.since or operation.until else window),
                'path': base + operation.path,
            },
        )
        for operation in operations
    ]


def _default_kind(path: str) -> str:
    if re.fullmatch(r'/[^/{]+(/detail)?', path):
        return 'collection'
    if re.fullmatch(r'/[^/{]+/\{\w+\}(/action)?', path):
        return 'member'
    return 'free'


def check_overlaps(routes: typing.Iterable[Route]) -> None:
    """Refuse two routes for one method and path in one version."""
    windows: dict[tuple, list[versions.Window]] = {}
    for route in routes:
        windows.setdefault((route.method, route.shape), []).append(route.window)
    for (method, shape), found in windows.items():
        if versions.overlapping(found):
            path = '/' + '/'.join(segment or '{}' for segment in shape)
            raise ValueError(f'{method} {path} has two routes in one version')


class RouteMatch(typing.NamedTuple):
    """The match of a path: routes that differ only in their windows."""

    routes: list[Route]
    values: list[str]
    project: str | None


class _Node:
    """The possible continuations after some segments of a path."""

    __slots__ = ('fixed', 'of_rest', 'routes', 'variable')

    def __init__(self) -> None:
        self.fixed: dict[str, _Node] = {}
        self.variable: _Node | None = None
        self.routes: list[Route] = []
        self.of_rest: list[Route] = []  # whose last variable is the rest

    def add(self, route: Route) -> None:
        node = self
        for segment in route.shape:
            if segment:
                node = node.fixed.setdefault(segment, _Node())
            else:
                if route.path.endswith(_KEY_OF_METADATA):
                    of_rest = node.of_rest
                node.variable = node = node.variable or _Node()
        node.routes.append(route)
        if route.path.endswith(_KEY_OF_METADATA):
            of_rest.append(route)

    def walk(self, segments: list[str], at: int, values: list[str]) -> list[Route]:
        """Return the routes at the end of the segments; append to `values`."""
        if at == len(segments):
            return self.routes
        segment = segments[at]
        node = self.fixed.get(segment)
        if node is not None:
            routes = node.walk(segments, at + 1, values)
            if routes:
                return routes
        if self.variable is not None and segment:
            values.append(segment)
            routes = self.variable.walk(segments, at + 1, values)
            if routes:
                return routes
            values.pop()
        rest = '/'.join(segments[at:])
        if not (rest and self.of_rest):
            return []
        values.append(rest)
        return self.of_rest


class RouteIndex:
    """Finds the routes of a path, in the order of the mapper."""

    def __init__(self, routes: typing.Iterable[Route], project_id_regex: str):
        self._is_project = re.compile(project_id_regex).fullmatch
        self._all: dict[str, _Node] = {}
        self._free: dict[str, _Node] = {}
        self._with_suffix: dict[str, _Node] = {}
        for route in routes:
            trees = [self._all]
            if route.kind == 'free':
                trees.append(self._free)
            elif route.kind != 'root':
                trees.append(self._with_suffix)
            for tree in trees:
                tree.setdefault(route.method, _Node()).add(route)

    def find(self, method: str, path: str) -> RouteMatch | None:
        """Return the match of a path below /v2, or None."""
        segments = path[1:].split('/') if path != '/' else []
        found = self._find(method, segments, None)
        if found is not None or not segments:
            return found
        project, *segments = segments
        if not project:
            return None
        if self._is_project(project):
            return self._find(method, segments, project)
        return self._walk(self._free, method, segments, project)

    def find_all(self, path: str) -> dict[str, RouteMatch]:
        """Return the matches of a path below /v2, by method."""
        found = {method: self.find(method, path) for method in self._all}
        return {method: match for method, match in found.items() if match}

    def _find(
        self, method: str, segments: list[str], project: str | None
    ) -> RouteMatch | None:
        if segments and segments[-1].endswith(_SUFFIX):
            bare = [*segments[:-1], segments[-1].removesuffix(_SUFFIX)]
            found = self._walk(self._with_suffix, method, bare, project)
            if found:
                return found
        return self._walk(self._all, method, segments, project)

    @staticmethod
    def _walk(
        tree: dict[str, _Node], method: str, segments: list[str], project: str | None
    ) -> RouteMatch | None:
        root = tree.get(method)
        if root is None:
            return None
        values: list[str] = []
        routes = root.walk(segments, 0, values)
        if not routes or (project is not None and routes[0].kind == 'root'):
            return None
        return RouteMatch(routes, values, project)


@functools.lru_cache(maxsize=8)
def _index(routes: tuple[Route, ...], project_id_regex: str) -> RouteIndex:
    """Return the index of routes; applications with the same ones share it."""
    check_overlaps(routes)
    for route in routes:
        if route.handler == ACTION:
            wsgi.check_actions(route.controller)
        else:
            wsgi.declaration(route.controller, route.handler)
    return RouteIndex(routes, project_id_regex)


class Router:
    """The WSGI application below /v2.

    It finds the route, negotiates the version, refuses the project id of
    another project and sends the result of the handler. It limits how many
    changes wait for the database. Errors propagate to the fault middleware.
    """

    def __init__(
        self,
        routes: typing.Sequence[Route],
        controllers: typing.Mapping[type[wsgi.Controller], wsgi.Controller],
        *,
        project_id_regex: str,
        base_url: str | None = None,
    ):
        self._base_url = base_url
        self._writes = write_limit.WriteLimit()
        self._index = _index(tuple(routes), project_id_regex)
        # Not at the start: few processes serve all of the routes.
        self._bound = functools.cache(
            lambda route: _bind(route, controllers[route.controller])
        )

    def __call__(
        self, environ: dict, start_response: typing.Callable
    ) -> typing.Iterable[bytes]:
        path = _decode(environ['PATH_INFO'].removeprefix(versions.PREFIX))
        if path == '':
            req = wsgi.Request(environ, base_url=self._base_url)
            return wsgi.send(
                start_response,
                302,
                None,
                [('Location', req.public_url + versions.PREFIX + '/')],
            )
        method = environ['REQUEST_METHOD']
        found = (
            None
            if path is None
            else self._index.find('GET' if method == 'HEAD' else method, path)
        )
        if found is None:
            raise self._not_found(environ, path)
        environ[wsgi.ROUTE] = found.routes[0].template
        req = self._request(environ, found.project)
        status, result = self._handle(req, found)
        headers = environ[wsgi.VERSION_HEADERS]
        if isinstance(result, wsgi.Response):
            status = result.status or status
            headers = headers + result.headers
            result = result.body
        return wsgi.send_json(start_response, status, result, headers)

    def _request(self, environ: dict, project: str | None) -> wsgi.Request:
        minor, experimental = _negotiate(environ)
        return wsgi.Request(
            environ,
            minor=minor,
            experimental=experimental,
            url_project=project,
            base_url=self._base_url,
        )

    def _not_found(self, environ: dict, path: str | None) -> exc.HTTPClientError:
        """Return 404, or 405 if the path has other methods in the version."""
        matches = {} if path is None else self._index.find_all(path)
        if not matches:
            return exc.HTTPNotFound()
        req = self._request(environ, None)
        methods = [
            method
            for method, found in matches.items()
            if any(self._bound(route).serves(req) for route in found.routes)
        ]
        return method_not_allowed(methods) if methods else exc.HTTPNotFound()

    def _handle(self, req: wsgi.Request, found: RouteMatch) -> tuple[int, wsgi.Result]:
        if (
            found.project is not None
            and req.ctx is not None
            and found.project != req.ctx.project_id
        ):
            raise exception.MalformedRequestUrl()
        if any(value != value.strip() for value in found.values):
            # Nothing has such an id or key; MariaDB would find another one.
            raise exc.HTTPNotFound()
        for route in found.routes:
            bound = self._bound(route)
            if bound.serves(req):
                req.path_vars = dict(zip(route.names, found.values, strict=True))
                if req.environ['REQUEST_METHOD'] in _READS:
                    return bound.run(req)
                with write_limit.limit_writes(self._change(req, found)):
                    return bound.run(req)
        raise exception.VersionNotFoundForMethod(version=versions.text(req.minor))

    def _change(self, req: wsgi.Request, found: RouteMatch) -> write_limit.Change:
        """Return the change of the resource that the path names first."""
        return self._writes.change(
            None if req.ctx is None else req.ctx.project_id,
            found.values[0] if found.values else None,
        )


def serve_page(
    pages: typing.Mapping[str, typing.Callable],
    environ: dict,
    start_response: typing.Callable,
) -> typing.Iterable[bytes]:
    """Run the application of the page that is asked for; all are read only."""
    path = environ['PATH_INFO']
    page = pages.get(path)
    if page is None:
        raise exc.HTTPNotFound()
    if environ['REQUEST_METHOD'] not in ('GET', 'HEAD'):
        raise method_not_allowed(['GET'])
    environ[wsgi.ROUTE] = path or '/'
    return page(environ, start_response)


def method_not_allowed(methods: typing.Iterable[str]) -> exc.HTTPMethodNotAllowed:
    """Return the error for a path that has only these methods."""
    allowed = set(methods)
    if 'GET' in allowed:
        allowed.add('HEAD')
    return exc.HTTPMethodNotAllowed(
        'The method is not allowed for this URL.',
        headers={'Allow': ', '.join(sorted(allowed))},
    )


def _bind(route: Route, controller: wsgi.Controller) -> wsgi.BoundHandler:
    if route.handler == ACTION:
        run = wsgi.bind_actions(controller)
    else:
        run = wsgi.bind_method(controller, route.handler)
    return wsgi.BoundHandler(route.window, versions.span(route.experimental), run)


def _decode(path: str) -> str | None:
    """Decode the path; None if no route can match it."""
    if not path.isascii():
        try:
            path = path.encode('latin-1').decode('utf-8')
        except UnicodeError:
            return None
    return None if _CONTROL.search(path) else path


def _negotiate(environ: dict) -> tuple[int, bool]:
    """Return the version to use, and whether experimental APIs are on.

    Stores the headers that the response echoes in the environment, where the
    fault middleware finds them too.
    """
    requested = environ.get(_VERSION, versions.text(versions.MIN))
    experimental = environ.get(_EXPERIMENTAL, '').strip().lower() in _TRUE
    headers = [(versions.HEADER, requested), ('Vary', versions.HEADER)]
    if experimental:
        headers.append((versions.EXPERIMENTAL_HEADER, 'True'))
    try:
        minor = versions.parse(requested)
    except exception.VersionNotServed:
        environ[wsgi.VERSION_HEADERS] = headers
        raise
    environ[wsgi.VERSION_HEADERS] = headers
    return minor, experimental
