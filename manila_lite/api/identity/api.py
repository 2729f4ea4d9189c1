"""The WSGI application of the identity API, at /v3 and /identity/v3.

The second is for clients that are given /identity: they read the versions
there, and some extend it by `v3` themselves.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
import typing

import routes

from manila_lite import exception
from manila_lite.api import router, wsgi
from manila_lite.api.auth import caller
from manila_lite.api.auth.tokens import Token
from manila_lite.api.auth.users import ROLES, User
from manila_lite.api.identity import PREFIX, documents
from manila_lite.api.identity.sign_in import TokenIssuer, TokenRequests
from manila_lite.context import RequestContext

_Document = dict[str, typing.Any]
_Handler = Callable[..., wsgi.Response]
_Items = Callable[[wsgi.Request, str | None], Iterable[_Document]]


class SignIn(typing.Protocol):
    """The interface of `manila_lite.api.auth.http_basic.SignIn`."""

    def context(self, environ: dict) -> RequestContext: ...

    def context_of(self, user: User, environ: dict) -> RequestContext: ...


class Directory(typing.Protocol):
    """The interface of `manila_lite.api.auth.users.CurrentUsers`."""

    def users_like(self, ctx: RequestContext, wanted: str | None) -> Iterable[User]: ...


class IdentityApi:
    """Serves versions, tokens, the catalog, projects, users and roles.

    A caller sees the projects and users that the policies allow; others
    answer 404.
    """

    def __init__(
        self,
        sign_in: SignIn,
        directory: Directory,
        tokens: TokenIssuer,
        requests: TokenRequests,
        *,
        base_url: str | None,
        region: str,
    ):
        self._sign_in = sign_in
        self._directory = directory
        self._tokens = tokens
        self._requests = requests
        self._base_url = base_url
        self._region = region
        self._mapper = routes.Mapper(controller_scan=None, explicit=True)
        self._mapper.minimization = False
        self._handlers = self._resources()
        for path in self._handlers:
            self._mapper.connect(None, path or '/', path=path)
        self._mapper.create_regs([])

    def _resources(self) -> dict[str, dict[str, _Handler]]:
        """Return the handlers of each path by method."""
        return {
            '': {'GET': self._versions},
            '/v3': {'GET': self._version},
            '/v3/auth/tokens': {
                'GET': self._validate,
                'POST': self._issue,
                'DELETE': self._revoke,
            },
            '/v3/auth/catalog': {'GET': self._catalog},
            '/v3/auth/projects': {'GET': self._own_projects},
            '/v3/users/{id}/projects': {'GET': self._projects_of_user},
            '/v3/role_assignments': {'GET': self._list_role_assignments},
            **self._collection('domain', self._domains),
            **self._collection('project', self._projects),
            **self._collection('user', self._visible_users),
            **self._collection('role', self._roles),
            **self._collection('region', self._regions),
            **self._collection('service', self._services),
            **self._collection('endpoint', self._endpoints),
        }

    def _collection(self, name: str, items: _Items) -> dict[str, dict]:
        """Return the handlers of a list and of its items."""

        def show(req: wsgi.Request, id: str) -> wsgi.Response:
            return _show(name, id, items(req, id))

        def index(req: wsgi.Request) -> wsgi.Response:
            found = items(req, req.query.get('name'))
            return self._list(req, f'{name}s', found)

        return {f'/v3/{name}s': {'GET': index}, f'/v3/{name}s/{{id}}': {'GET': show}}

    def __call__(self, environ: dict, start_response: Callable) -> Iterable[bytes]:
        environ[wsgi.FAULT_KEY] = 'error'
        path = environ['PATH_INFO'].removeprefix(PREFIX).rstrip('/')
        found = self._mapper.match(path or '/')
        if not found:
            raise exception.NotFound()
        template = found.pop('path')
        handlers = self._handlers[template]
        method = environ['REQUEST_METHOD']
        handler = handlers.get('GET' if method == 'HEAD' else method)
        if not handler:
            raise router.method_not_allowed(handlers)
        environ[wsgi.ROUTE] = template or PREFIX
        req = wsgi.Request(environ, base_url=self._base_url)
        answer = handler(req, **found)
        return wsgi.send_json(
            start_response, answer.status or 200, answer.body, answer.headers
        )

    def _authenticate(self, req: wsgi.Request) -> RequestContext:
        ctx = self._sign_in.context(req.environ)
        caller.set_caller(ctx, req.environ)
        return ctx

    # Versions

    def _versions(self, req: wsgi.Request) -> wsgi.Response:
        version = documents.version(_base(req))
        return wsgi.Response({'versions': {'values': [version]}}, 300)

    def _version(self, req: wsgi.Request) -> wsgi.Response:
        return wsgi.Response({'version': documents.version(_base(req))})

    # Tokens

    def _issue(self, req: wsgi.Request) -> wsgi.Response:
        token = self._requests.issue(req.json, req.environ)
        ctx = self._sign_in.context_of(token.user, req.environ)
        caller.set_caller(ctx, req.environ)
        return self._describe(req, token, 201)

    def _validate(self, req: wsgi.Request) -> wsgi.Response:
        """Describe another token to its user or a service."""
        ctx = self._authenticate(req)
        token = self._tokens.find(req.headers.get('X-Subject-Token', ''))
        if not token or not ctx.can('identity:validate_token', token.user):
            raise exception.NotFound('The token could not be found.')
        return self._describe(req, token, 200)

    def _revoke(self, req: wsgi.Request) -> wsgi.Response:
        """End a token before it expires, for its user or a service."""
        ctx = self._authenticate(req)
        token = self._tokens.find(req.headers.get('X-Subject-Token', ''))
        if not token or not ctx.can('identity:revoke_token', token.user):
            raise exception.NotFound('The token could not be found.')
        self._tokens.revoke(token)
        return wsgi.Response(None, 204)

    def _describe(self, req: wsgi.Request, token: Token, status: int) -> wsgi.Response:
        described = documents.token(token)
        if 'nocatalog' not in req.query:
            described['catalog'] = self._catalog_of(req)
        return wsgi.Response(
            {'token': described},
            status,
            [
                ('X-Subject-Token', token.text),
                ('Vary', 'X-Auth-Token'),
                ('Cache-Control', 'no-store'),
            ],
        )

    def _catalog_of(self, req: wsgi.Request) -> list[_Document]:
        return documents.catalog(req.public_url, self._region)

    def _catalog(self, req: wsgi.Request) -> wsgi.Response:
        self._authenticate(req)
        url = req.public_url
        return wsgi.Response(
            {
                'catalog': self._catalog_of(req),
                'links': {'self': f'{url}/v3/auth/catalog'},
            }
        )

    # Services and endpoints

    def _services(self, req: wsgi.Request, wanted: str | None) -> Iterator[_Document]:
        self._authenticate(req)
        yield from documents.services(req.public_url)

    def _endpoints(self, req: wsgi.Request, wanted: str | None) -> Iterator[_Document]:
        self._authenticate(req)
        yield from documents.endpoints(req.public_url, self._region)

    def _regions(self, req: wsgi.Request, wanted: str | None) -> Iterator[_Document]:
        self._authenticate(req)
        yield documents.region(self._region, req.public_url)

    # The domain, projects, users and their roles

    def _domains(self, req: wsgi.Request, wanted: str | None) -> Iterator[_Document]:
        self._authenticate(req)
        yield documents.domain(req.public_url)

    def _own_projects(self, req: wsgi.Request) -> wsgi.Response:
        ctx = self._authenticate(req)
        project = documents.project(str(ctx.project_id), req.public_url)
        return self._list(req, 'projects', [project])

    def _projects_of_user(self, req: wsgi.Request, id: str) -> wsgi.Response:
        """List the projects of a person, who has a name for each."""
        found = {
            user.project_id
            for user in self._visible_names(req, id)
            if user.user_id == id
        }
        if not found:
            raise exception.ResourceNotFound(resource='User', id=id)
        return self._list(
            req,
            'projects',
            (documents.project(one, req.public_url) for one in sorted(found)),
        )

    def _projects(self, req: wsgi.Request, wanted: str | None) -> Iterator[_Document]:
        """Yield the projects of all users that the caller may see."""
        ctx = self._authenticate(req)
        users = self._directory.users_like(ctx, wanted)
        for project_id in sorted({user.project_id for user in users}):
            if ctx.can('identity:get_project', {'project_id': project_id}):
                yield documents.project(project_id, req.public_url)

    def _visible_users(
        self, req: wsgi.Request, wanted: str | None
    ) -> Iterator[_Document]:
        """Yield the users that the caller may see, one per id."""
        found: dict[str, User] = {}
        for user in self._visible_names(req, wanted):
            found.setdefault(user.user_id, user)
        for user in found.values():
            yield documents.user(user, req.public_url)

    def _visible_names(self, req: wsgi.Request, wanted: str | None) -> list[User]:
        """Return the names of users that the caller may see."""
        ctx = self._authenticate(req)
        return [
            user
            for user in self._directory.users_like(ctx, wanted)
            if ctx.can('identity:get_user', user)
        ]

    def _roles(self, req: wsgi.Request, wanted: str | None) -> Iterator[_Document]:
        """Yield the usual roles, and those of users the caller may see."""
        names = set(ROLES)
        for user in self._visible_names(req, None):
            names.update(user.all_roles)
        for name in sorted(names):
            yield documents.role(name, req.public_url)

    def _list_role_assignments(self, req: wsgi.Request) -> wsgi.Response:
        """List the roles of users, with `effective` the implied ones, too."""
        query = req.query
        users = self._visible_names(
            req, query.get('user.id') or query.get('scope.project.id')
        )
        return self._list(
            req,
            'role_assignments',
            (
                documents.role_assignment(
                    user,
                    role,
                    req.public_url,
                    with_names=_is_set(query, 'include_names'),
                )
                for user in users
                for role in (
                    user.all_roles
                    if _is_set(query, 'effective')
                    else sorted(user.roles)
                )
                if _is_wanted(query, user, role)
            ),
        )

    @staticmethod
    def _list(
        req: wsgi.Request, name: str, items: Iterable[_Document]
    ) -> wsgi.Response:
        return wsgi.Response(documents.listing(name, items, req.query, req.public_url))


def _base(req: wsgi.Request) -> str:
    """Return the URL that the client was given, without the version."""
    is_below = req.environ['PATH_INFO'].startswith(PREFIX)
    return req.public_url + (PREFIX if is_below else '')


def _show(name: str, id: str, items: Iterable[_Document]) -> wsgi.Response:
    for item in items:
        if item['id'] == id:
            return wsgi.Response({name: item})
    raise exception.ResourceNotFound(resource=name.capitalize(), id=id)


_NOBODYS = (
    'group.id',
    'scope.domain.id',
    'scope.system',
    'scope.OS-INHERIT:inherited_to',
)
"""Keys of role assignments that there are none of."""


def _is_wanted(query: Mapping[str, str], user: User, role: str) -> bool:
    """Return whether the filters match the role of a user."""
    found = {
        'user.id': user.user_id,
        'role.id': role,
        'scope.project.id': user.project_id,
    }
    return not any(key in query for key in _NOBODYS) and all(
        query.get(key, value) == value for key, value in found.items()
    )


def _is_set(query: Mapping[str, str], key: str) -> bool:
    """Return whether a flag is in the query, with any value but 0."""
    return query.get(key, '0') != '0'
