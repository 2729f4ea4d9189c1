"""HTTP basic authentication with a file of users.

bcrypt is slow on purpose, so a correct password is cached for some minutes.
The cache does not contain the password but an HMAC of it, with a key that
exists only in this process.
"""

import base64
from collections.abc import Callable, Iterable
import hmac
import os
import secrets
import time

from oslo_config import cfg
from oslo_log import log
from webob import exc

from manila_lite import exception
from manila_lite.api.auth import caller
from manila_lite.api.auth import users
from manila_lite.api.auth.caller import App
from manila_lite.policies.enforcer import Enforcer

LOG = log.getLogger(__name__)

_CHALLENGE = [
    ('WWW-Authenticate', 'Basic realm="manila-lite", charset="UTF-8"')
]
# Seconds for which a correct password is cached.
_CACHE_TIME = 300


def make_middleware(conf: cfg.ConfigOpts, app: App, enforcer: Enforcer) -> App:
    """Wrap the app in HTTP basic authentication."""
    return HttpBasicMiddleware(
        app, enforcer, PasswordVerifier(conf.http_basic.users_file)
    )


class HttpBasicMiddleware:
    """Passes on requests with the name and password of a user."""

    def __init__(
        self, app: App, enforcer: Enforcer, passwords: 'PasswordVerifier'
    ):
        self._app = app
        self._enforcer = enforcer
        self._passwords = passwords

    def __call__(
        self, environ: dict, start_response: Callable
    ) -> Iterable[bytes]:
        name, password = _parse_header(environ.get('HTTP_AUTHORIZATION', ''))
        user = self._passwords.user(name, password) if name else None
        if not user:
            raise exc.HTTPUnauthorized(
                exception.Unauthorized.message, headers=_CHALLENGE
            )
        ctx = caller.build_context(
            environ,
            self._enforcer,
            user_id=user.user_id,
            user_name=user.name,
            project_id=user.project_id,
            roles=user.all_roles,
        )
        ctx.is_admin = self._enforcer.is_admin(ctx)
        return caller.call_as(ctx, self._app, environ, start_response)


class PasswordVerifier:
    """Verifies names and passwords against a file of users.

    A changed file takes effect with the next request. Raises
    cfg.ConfigFileParseError if the file is malformed at the start; later, the
    error is logged once and the previous users are kept.
    """

    def __init__(self, path: str, clock: Callable[[], float] = time.monotonic):
        self._path = path
        self._clock = clock
        self._key = secrets.token_bytes(32)
        self._verified: dict[str, tuple[bytes, float]] = {}  # until when
        # The state of the file and its users, replaced as one value, so that
        # a thread that reads slowly cannot hide a later change.
        self._loaded = (self._file_state(), self._read())

    def user(self, name: str, password: bytes) -> users.User | None:
        """Return the user with this name and password, or None."""
        user = self._users().get(name)
        if user and self._is_cached(user, password):
            return user
        if not users.verify_password(user, password) or user is None:
            return None
        self._verified[name] = (
            self._digest(user, password),
            self._clock() + _CACHE_TIME,
        )
        return user

    def _is_cached(self, user: users.User, password: bytes) -> bool:
        digest, expires_at = self._verified.get(user.name, (b'', 0))
        return (
            hmac.compare_digest(digest, self._digest(user, password))
            and self._clock() < expires_at
        )

    def _digest(self, user: users.User, password: bytes) -> bytes:
        # Includes the hash, so a new password invalidates the old digest.
        return hmac.digest(self._key, user.hash.encode() + password, 'sha256')

    def _users(self) -> dict[str, users.User]:
        old_state, loaded_users = self._loaded
        state = self._file_state()
        if state != old_state:
            try:
                loaded_users = self._read()
            except cfg.ConfigFileParseError as error:
                LOG.error(
                    'Malformed users file, keeping the previous users: %s',
                    error,
                )
            self._loaded = (state, loaded_users)
        return loaded_users

    def _file_state(self) -> tuple[int, int, int] | None:
        try:
            stat = os.stat(self._path)
        except OSError:
            return None
        return stat.st_ino, stat.st_mtime_ns, stat.st_size

    def _read(self) -> dict[str, users.User]:
        try:
            return users.read(self._path)
        except OSError as error:
            LOG.warning(
                'Cannot read the users file; all logins fail: %s', error
            )
            return {}


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
