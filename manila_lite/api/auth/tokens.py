"""Signed tokens, which stand for a password until they expire.

A token is a JSON Web Token that names a user of the file. It is not stored
anywhere: the signature shows that this service issued it. It also contains a
keyed digest of the password's hash, so a token ends with the password, with
the user and with the user's project. The roles are those of the file at the
time of the request. Only those that were revoked are recorded.
"""

from collections.abc import Callable
import dataclasses
import hashlib
import hmac
import threading
import time
import typing
import uuid

import jwt
from oslo_log import log

from manila_lite import exception
from manila_lite.api.auth.current_users import CurrentUsers
from manila_lite.api.auth.revoked_tokens import RevokedTokens
from manila_lite.api.auth.users import User

LOG = log.getLogger(__name__)

_ALGORITHM = 'HS256'
_ISSUER = 'manila_lite'
_REQUIRED = ['iss', 'sub', 'iat', 'exp', 'jti', 'methods', 'credentials']
MAX_LENGTH = 4096
_CACHE_SIZE = 1000


@dataclasses.dataclass(frozen=True)
class Token:
    """A valid token; the times are in seconds since 1970."""

    text: str = dataclasses.field(repr=False)
    user: User
    id: str
    methods: tuple[str, ...]
    issued_at: int
    expires_at: int


class Tokens:
    """Issues tokens for users and finds the users of tokens."""

    def __init__(
        self,
        key: bytes,
        lifetime: int,
        current_users: CurrentUsers,
        clock: Callable[[], float] = time.time,
        revoked: RevokedTokens | None = None,
    ):
        self._revoked = revoked
        self._key = key
        self._lifetime = lifetime
        self._users = current_users
        self._clock = clock
        # Claims by the digest of the token: decoding is a quarter of a
        # request for one share. The oldest are at the beginning.
        self._lock = threading.Lock()
        self._decoded: dict[bytes, dict[str, typing.Any]] = {}

    def issue(self, user: User, parent: Token | None = None) -> Token:
        """Return a new token for a user who has signed in.

        A token that is issued for another token expires with that one.
        """
        now = int(self._clock())
        token = Token(
            '',
            user,
            uuid.uuid4().hex,
            ('token', *parent.methods) if parent else ('password',),
            now,
            parent.expires_at if parent else now + self._lifetime,
        )
        text = jwt.encode(
            {
                'iss': _ISSUER,
                'sub': user.name,
                'iat': token.issued_at,
                'exp': token.expires_at,
                'jti': token.id,
                'methods': list(token.methods),
                'credentials': self._digest(user),
            },
            self._key,
            _ALGORITHM,
        )
        return dataclasses.replace(token, text=text)

    def find(self, text: str) -> Token | None:
        """Return the token with this text; None if it is not valid now."""
        claims = self._claims(text)
        if not claims or (self._revoked and claims['jti'] in self._revoked):
            return None
        user = self._users.by_name().get(claims['sub'])
        if not user or not hmac.compare_digest(
            claims['credentials'], self._digest(user)
        ):
            return None
        return Token(
            text,
            user,
            claims['jti'],
            tuple(claims['methods']),
            claims['iat'],
            claims['exp'],
        )

    def revoke(self, token: Token) -> None:
        """End a token now, in all processes with the same files."""
        if self._revoked is None:
            raise exception.ServiceUnavailable()
        try:
            self._revoked.add(token.id, token.expires_at)
        except OSError as error:
            LOG.error('Cannot record the revoked token: %s', error)
            raise exception.ServiceUnavailable() from error

    def _claims(self, text: str) -> dict[str, typing.Any] | None:
        """Return the claims of a token that is signed and not expired."""
        if len(text) > MAX_LENGTH or not text.isascii():
            return None
        key = hashlib.sha256(text.encode()).digest()
        claims = self._decoded.get(key)
        if claims is None:
            claims = self._decode(text)
            if claims is None:
                return None
            self._store(key, claims)
        return claims if self._clock() < claims['exp'] else None

    def _store(self, key: bytes, claims: dict[str, typing.Any]) -> None:
        """Cache the claims of a token in place of the oldest entry."""
        with self._lock:
            if len(self._decoded) >= _CACHE_SIZE:
                del self._decoded[next(iter(self._decoded))]
            self._decoded[key] = claims

    def _decode(self, text: str) -> dict[str, typing.Any] | None:
        try:
            return jwt.decode(
                text,
                self._key,
                algorithms=[_ALGORITHM],
                issuer=_ISSUER,
                # The clock of the process that issued it may be ahead.
                options={'require': _REQUIRED, 'verify_iat': False},
            )
        except jwt.InvalidTokenError:
            return None

    def _digest(self, user: User) -> str:
        """Return a digest that differs when the user has to sign in again."""
        text = '\0'.join((user.hash, user.user_id, user.project_id))
        return hmac.digest(self._key, text.encode(), 'sha256').hex()
