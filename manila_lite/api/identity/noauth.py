"""The identity API without authentication: users and projects of any name.

A sign-in with any name and password is accepted, as requests without one are:
clients that can only sign in at Keystone work. The token has the form that
`noauth` takes, `user:project`, and never ends.
"""

from collections.abc import Iterator, Mapping
import time
import typing
import uuid

from oslo_config import cfg

from manila_lite import exception
from manila_lite.api.auth.tokens import Token
from manila_lite.api.auth.users import ROLES, User
from manila_lite.api.identity.api import IdentityApi, SignIn
from manila_lite.api.identity.sign_in import TokenRequests, is_domain
from manila_lite.context import RequestContext

_NO_HASH = '$2b$04$' + '.' * 53
"""It has the form of a hash, and no password is compared with it."""


def build(conf: cfg.ConfigOpts, sign_in: SignIn) -> IdentityApi:
    """Build the WSGI application of the identity API."""
    tokens = OpenTokens(conf.http_basic.token_lifetime)
    return IdentityApi(
        sign_in,
        AnyUsers(),
        tokens,
        OpenTokenRequests(tokens),
        base_url=conf.osapi_share_base_URL,
        region=conf.http_basic.region,
    )


class AnyUsers:
    """The caller, and whomever a request names."""

    def users_like(self, ctx: RequestContext, wanted: str | None) -> Iterator[User]:
        """Yield the caller, and a user and project of the wanted name."""
        names = [(ctx.user_id, ctx.project_id)]
        if wanted is not None:
            names.append((wanted, wanted))
        for name, project_id in names:
            try:
                yield _user(str(name), str(project_id))
            except exception.InvalidInput:
                continue  # no user and no project has such a name


class OpenTokens:
    """Tokens that name their user and project."""

    def __init__(self, lifetime: int):
        self._lifetime = lifetime

    def issue(self, user: User, parent: Token | None = None) -> Token:
        """Return a token of this user."""
        methods = ('token', *parent.methods) if parent else ('password',)
        return self._token(user, methods)

    def find(self, text: str) -> Token | None:
        """Return the token with this text; None if it names no user."""
        name, _, project_id = text.partition(':')
        try:
            user = _user(name, project_id or name)
        except exception.InvalidInput:
            return None
        return self._token(user, ('password',))

    def revoke(self, token: Token) -> None:
        """Accept that; the next sign-in returns the same token."""

    def _token(self, user: User, methods: tuple[str, ...]) -> Token:
        now = int(time.time())
        return Token(
            f'{user.user_id}:{user.project_id}',
            user,
            uuid.uuid4().hex,
            methods,
            now,
            # Clients then ask for another one, which is the same.
            now + self._lifetime,
        )


class OpenTokenRequests(TokenRequests):
    """Accepts every name and password, for any project."""

    def __init__(self, tokens: OpenTokens):
        self._tokens = tokens

    def _by_password(
        self, given: Mapping[str, typing.Any], project: Mapping, address: str
    ) -> User | None:
        name = given.get('name') or given.get('id')
        if not name:
            raise exception.InvalidInput(
                reason='auth.identity.password.user needs an id or a name'
            )
        return self._for_project(name, project) if is_domain(given) else None

    def _by_token(
        self, parent: Token | None, project: Mapping[str, typing.Any]
    ) -> User | None:
        return self._for_project(parent.user.name, project) if parent else None

    @staticmethod
    def _for_project(name: str, project: Mapping[str, typing.Any]) -> User:
        return _user(name, project.get('name') or project.get('id') or name)


def _user(name: str, project_id: str) -> User:
    """Return the user; raises InvalidInput for malformed names."""
    return User(name, _NO_HASH, name, project_id, ROLES)
