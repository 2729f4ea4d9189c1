"""Validated tokens, kept in this process for a short time.

keystonemiddleware fetches a token from memcached, decrypts, parses and
describes it for every request, which takes longer than most answers. Here the
description itself is kept.
"""

from collections.abc import Callable, Iterable
import datetime
import hashlib
import hmac
import secrets
import threading
import time
import typing

from manila_lite.api.auth.caller import App

CAPACITY = 1000
"""Tokens kept; with more in use, those that came first are dropped."""

LONGEST = 60
"""Seconds a token is kept, at most."""

_TOKEN = 'HTTP_X_AUTH_TOKEN'
_SERVICE_TOKEN = 'HTTP_X_SERVICE_TOKEN'

_OF_ONE = (
    'DOMAIN_ID',
    'DOMAIN_NAME',
    'PROJECT_ID',
    'PROJECT_NAME',
    'PROJECT_DOMAIN_ID',
    'PROJECT_DOMAIN_NAME',
    'USER_ID',
    'USER_NAME',
    'USER_DOMAIN_ID',
    'USER_DOMAIN_NAME',
    'ROLES',
)
_CATALOG = 'HTTP_X_SERVICE_CATALOG'
_OTHERS = (
    'HTTP_X_IDENTITY_STATUS',
    'HTTP_X_IS_ADMIN_PROJECT',
    'HTTP_OPENSTACK_SYSTEM_SCOPE',
    # Older names of the same
    'HTTP_X_ROLE',
    'HTTP_X_USER',
    'HTTP_X_TENANT',
    'HTTP_X_TENANT_ID',
    'HTTP_X_TENANT_NAME',
)
_KEPT = frozenset((*(f'HTTP_X_{name}' for name in _OF_ONE), *_OTHERS))
IDENTITY_HEADERS = _KEPT | {
    _CATALOG,
    'HTTP_X_SERVICE_IDENTITY_STATUS',
    *(f'HTTP_X_SERVICE_{name}' for name in _OF_ONE),
}
"""What says who the caller is; only a validated token may set it."""

Identity = dict[str, typing.Any]
"""The identity headers of one validated token, except its catalog."""


def lifetime(token_cache_time: int) -> int:
    """Return for how many seconds a process may keep a token.

    The library takes the rest of `token_cache_time` for its own cache, from
    which a token comes here, so that both together do not exceed it.
    """
    return min(LONGEST, max(0, token_cache_time // 2))


class TokenCache:
    """Identities by token.

    Keys are HMACs of the tokens under a random key of this process: anyone who
    reads the memory of the cache cannot use what it has.
    """

    def __init__(
        self,
        lifetime: float,
        capacity: int = CAPACITY,
        clock: Callable[[], float] = time.monotonic,
        wall_clock: Callable[[], float] = time.time,
    ):
        self._lifetime, self._capacity = lifetime, capacity
        self._clock, self._wall_clock = clock, wall_clock
        self._key = secrets.token_bytes(32)
        self._lock = threading.Lock()
        # The times at which an entry ends, by each clock. The oldest entry
        # is the first.
        self._entries: dict[bytes, tuple[float, float, Identity]] = {}

    def find(self, token: str) -> Identity | None:
        """Return the identity of a token that is kept and still valid."""
        key = self._digest(token)
        entry = self._entries.get(key)
        if entry is None:
            return None
        until, expires_at, identity = entry
        if self._clock() < until and self._wall_clock() < expires_at:
            return identity
        self._drop(key)
        return None

    def add(self, token: str, identity: Identity, expires_at: float) -> None:
        """Keep the identity of a token that was validated just now."""
        key = self._digest(token)
        entry = (self._clock() + self._lifetime, expires_at, identity)
        with self._lock:
            self._entries.pop(key, None)
            self._entries[key] = entry
            while len(self._entries) > self._capacity:
                del self._entries[next(iter(self._entries))]

    def drop(self, token: str) -> None:
        self._drop(self._digest(token))

    def _drop(self, key: bytes) -> None:
        with self._lock:
            self._entries.pop(key, None)

    def __len__(self) -> int:
        return len(self._entries)

    def _digest(self, token: str) -> bytes:
        # Different tokens have different bytes, whatever a server lets pass.
        data = token.encode('utf-8', 'surrogatepass')
        return hmac.digest(self._key, data, hashlib.sha256)


class RememberMiddleware:
    """Stands behind the validation and keeps what it found."""

    def __init__(self, app: App, cache: TokenCache):
        self._app, self._cache = app, cache

    def __call__(self, environ: dict, start_response: Callable) -> Iterable[bytes]:
        expires_at = _reusable_until(environ)
        if expires_at is not None:
            identity = {name: environ[name] for name in _KEPT if name in environ}
            self._cache.add(environ[_TOKEN], identity, expires_at)
        return self._app(environ, start_response)


class KnownTokenMiddleware:
    """Stands before the validation, which requests with known tokens skip.

    A token that is refused, or whose request is, is validated again next
    time. Requests with a service token are always validated.
    """

    def __init__(self, app: App, validating: App, cache: TokenCache):
        self._app, self._validating = app, validating
        self._cache = cache

    def __call__(self, environ: dict, start_response: Callable) -> Iterable[bytes]:
        token = environ.get(_TOKEN)
        if not token:
            return self._validating(environ, start_response)

        def start_or_drop(status: str, headers: list, *error: object) -> typing.Any:
            if status.startswith('401'):
                self._cache.drop(token)
            return start_response(status, headers, *error)

        identity = None if _SERVICE_TOKEN in environ else self._cache.find(token)
        if identity is None:
            return self._validating(environ, start_or_drop)
        for name in IDENTITY_HEADERS:
            environ.pop(name, None)
        environ.update(identity)
        return self._app(environ, start_or_drop)


def _reusable_until(environ: dict) -> float | None:
    """Return when a validated token expires; None if it must not be kept.

    What depends on more than the token is decided for each request: a
    service token beside it, the client that a token is bound to, and the
    access rules of an application credential.
    """
    if (
        _SERVICE_TOKEN in environ
        or not environ.get(_TOKEN)
        or environ.get('HTTP_X_IDENTITY_STATUS') != 'Confirmed'
    ):
        return None
    token = environ['keystone.token_info'].get('token')
    if token is None:  # of version 2 of the identity API
        return None
    credential = token.get('application_credential') or {}
    if token.get('bind') or credential.get('access_rules') is not None:
        return None
    return datetime.datetime.fromisoformat(token['expires_at']).timestamp()
