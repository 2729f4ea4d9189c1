"""Authentication by a file of users: HTTP basic, or tokens for passwords.

Tokens are those of the identity API of `manila_lite.api.identity`.
"""

import base64
from collections.abc import Callable, Iterable

from oslo_config import cfg
from webob import exc

from manila_lite import exception
from manila_lite.api.auth import caller, users
from manila_lite.api.auth.caller import App, Authenticated, Run, run_here
from manila_lite.api.auth.passwords import PasswordVerifier
from manila_lite.api.auth.tokens import (
    KEY_BYTES,
    RevokedTokens,
    Tokens,
    decode_key,
    read_key,
)
from manila_lite.api.auth.users import CurrentUsers
from manila_lite.api.identity.api import IdentityApi
from manila_lite.api.identity.sign_in import TokenRequests
from manila_lite.context import RequestContext
from manila_lite.policies.enforcer import Enforcer

_CHALLENGE = [('WWW-Authenticate', 'Basic realm="manila-lite", charset="UTF-8"')]


def authenticate(
    conf: cfg.ConfigOpts, app: App, enforcer: Enforcer, run: Run = run_here
) -> Authenticated:
    """Wrap the app in authentication by the file of users.

    `run` computes hashes.
    """
    options = conf.http_basic
    current_users = CurrentUsers(options.users_file)
    passwords = PasswordVerifier(current_users, run=run)
    if not options.identity_api:
        sign_in = SignIn(enforcer, passwords)
        return Authenticated(HttpBasicMiddleware(app, sign_in))
    tokens = Tokens(
        _token_key(options),
        options.token_lifetime,
        current_users,
        revoked=RevokedTokens(options.revoked_tokens_file),
    )
    sign_in = SignIn(enforcer, passwords, tokens)
    identity_api = IdentityApi(
        sign_in,
        current_users,
        tokens,
        TokenRequests(current_users, passwords, tokens),
        base_url=conf.osapi_share_base_URL,
        region=options.region,
    )
    return Authenticated(HttpBasicMiddleware(app, sign_in), identity_api)


def _token_key(options: cfg.ConfigOpts.GroupAttr) -> bytes:
    """Return the key of tokens, of the option or of the file."""
    if options.token_key is None:
        return read_key(options.token_key_file)
    key = decode_key(options.token_key)
    if key is None:
        raise cfg.Error(
            f'token_key in section [http_basic] is not a key of {KEY_BYTES} bytes '
            'in base64'
        )
    return key


class HttpBasicMiddleware:
    """Passes on requests of the users of the file."""

    def __init__(self, app: App, sign_in: 'SignIn'):
        self._app = app
        self._sign_in = sign_in

    def __call__(self, environ: dict, start_response: Callable) -> Iterable[bytes]:
        ctx = self._sign_in.context(environ)
        return caller.call_as(ctx, self._app, environ, start_response)


class SignIn:
    """Finds the user of a request by name and password, or by a token."""

    def __init__(
        self,
        enforcer: Enforcer,
        passwords: PasswordVerifier,
        tokens: Tokens | None = None,
    ):
        self._enforcer, self._passwords, self._tokens = enforcer, passwords, tokens

    def context(self, environ: dict) -> RequestContext:
        """Return the context of the caller; raises HTTPUnauthorized."""
        user = self._user(environ)
        if not user:
            raise exc.HTTPUnauthorized(
                exception.Unauthorized.message, headers=_CHALLENGE
            )
        return self.context_of(user, environ)

    def context_of(self, user: users.User, environ: dict) -> RequestContext:
        """Return the context of a user who has been authenticated."""
        ctx = caller.build_context(
            environ,
            self._enforcer,
            user_id=user.user_id,
            user_name=user.name,
            project_id=user.project_id,
            roles=user.all_roles,
        )
        ctx.is_admin = self._enforcer.is_admin(ctx)
        return ctx

    def _user(self, environ: dict) -> users.User | None:
        header = environ.get('HTTP_AUTHORIZATION')
        if header:
            name, password = _parse_header(header)
            address = environ.get('REMOTE_ADDR', '')
            return self._passwords.user(name, password, address) if name else None
        token = environ.get('HTTP_X_AUTH_TOKEN')
        if token and self._tokens:
            found = self._tokens.find(token)
            return found.user if found else None
        return None


def _parse_header(header: str) -> tuple[str, bytes]:
    """Parse a basic Authorization header; empty for other headers."""
    scheme, _, encoded = header.partition(' ')
    if scheme.lower() != 'basic':
        return '', b''
    try:
        text = base64.b64decode(encoded.strip(), validate=True)
        name, colon, password = text.partition(b':')
        return (name.decode(), password) if colon else ('', b'')
    except ValueError:
        return '', b''
