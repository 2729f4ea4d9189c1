"""Requests for a token: by password, or by another token."""

from collections.abc import Mapping
import typing

from manila_lite import exception
from manila_lite.api import schema as s, versions, wsgi
from manila_lite.api.auth import tokens
from manila_lite.api.auth.passwords import PasswordVerifier
from manila_lite.api.auth.tokens import Token, Tokens
from manila_lite.api.auth.users import CurrentUsers, User
from manila_lite.api.identity.documents import DOMAIN

_WORD = s.string(255)
_DOMAIN = s.obj(id=_WORD, name=_WORD)
_AUTH = s.schema(
    ['identity'],
    wrapper='auth',
    missing=400,
    identity=s.obj(
        ['methods'],
        methods=s.array(_WORD, 10, 1),
        password=s.obj(
            ['user'],
            user=s.obj(
                ['password'],
                id=_WORD,
                name=_WORD,
                domain=_DOMAIN,
                password=s.string(4096),
            ),
        ),
        token=s.obj(['id'], id=s.string(tokens.MAX_LENGTH)),
    ),
    scope=s.anything,
)
_SCOPE = s.schema(
    project=s.obj(id=_WORD, name=_WORD, domain=_DOMAIN), unscoped=s.anything
)

_Object = Mapping[str, typing.Any]


class TokenIssuer(typing.Protocol):
    """The interface of `manila_lite.api.auth.tokens.Tokens`."""

    def issue(self, user: User, parent: Token | None = None) -> Token: ...

    def find(self, text: str) -> Token | None: ...

    def revoke(self, token: Token) -> None: ...


class TokenRequests:
    """Answers requests for tokens; raises Unauthorized for refused ones."""

    _tokens: TokenIssuer

    def __init__(
        self, current_users: CurrentUsers, passwords: PasswordVerifier, issuer: Tokens
    ):
        self._users = current_users
        self._passwords = passwords
        self._tokens = issuer

    def issue(self, body: object, environ: dict) -> Token:
        """Return the token that the body of a request asks for.

        The name of the user is left in the environment for the log.
        """
        auth = _AUTH.arguments(body, versions.MIN)
        identity, project = auth['identity'], _project(auth.get('scope'))
        method = identity['methods']
        if method == ['password'] and 'password' in identity:
            given = identity['password']['user']
            environ[wsgi.SIGN_IN_NAME] = given.get('name') or given.get('id')
            user = self._by_password(given, project, environ.get('REMOTE_ADDR', ''))
            parent = None
        elif method == ['token'] and 'token' in identity:
            parent = self._tokens.find(identity['token']['id'])
            user = self._by_token(parent, project)
        else:
            raise exception.Unauthorized(
                'Only the methods password and token are supported.'
            )
        if not user or not _is_project(project, user.project_id):
            raise exception.Unauthorized()
        return self._tokens.issue(user, parent)

    def _by_password(
        self, given: _Object, project: _Object, address: str
    ) -> User | None:
        name = given.get('id') or given.get('name')
        if not name:
            raise exception.InvalidInput(
                reason='auth.identity.password.user needs an id or a name'
            )
        user = self._find(given, project)
        return self._passwords.verified(
            user, user.name if user else name, given['password'].encode(), address
        )

    def _by_token(self, parent: Token | None, project: _Object) -> User | None:
        return parent.user if parent else None

    def _find(self, given: _Object, project: _Object) -> User | None:
        """Return the user that a request means; None if there is none."""
        users = self._users.by_name()
        if not is_domain(given):
            return None
        if not given.get('id'):
            return users.get(given['name'])
        # One person may have a name per project.
        of_person = [user for user in users.values() if user.user_id == given['id']]
        in_project = [
            user for user in of_person if _is_project(project, user.project_id)
        ]
        return next(iter(in_project or of_person), None)


def _project(scope: object) -> _Object:
    """Return what a scope says of the project; empty for the user's own."""
    if scope in (None, 'unscoped'):
        return {}
    checked = _SCOPE.arguments(scope, versions.MIN)
    if 'project' in checked:
        return checked['project']
    if 'unscoped' in checked:
        return {}
    raise exception.Unauthorized(
        'Tokens are for the project of their user; there are no others.'
    )


def _is_project(given: _Object, project_id: str) -> bool:
    """Return whether this project is meant, whose name is its id."""
    return is_domain(given) and all(
        given[key] == project_id for key in ('id', 'name') if given.get(key)
    )


def is_domain(given: _Object) -> bool:
    """Return whether the domain is the only one, or none is named.

    Names of domains are not case-sensitive in Keystone.
    """
    domain = given.get('domain', {})
    return domain.get('id', DOMAIN['id']) == DOMAIN['id'] and (
        domain.get('name', DOMAIN['name']).lower() == DOMAIN['name'].lower()
    )
