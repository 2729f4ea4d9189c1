"""Signed tokens, which stand for a password until they expire.

A token is a JSON Web Token that names a user of the file. It is not stored
anywhere: the signature shows that this service issued it. It also contains a
keyed digest of the password's hash, so a token ends with the password, with
the user and with the user's project. The roles are those of the file at the
time of the request. Only those that were revoked are recorded.

All API processes with the same file of the key accept each other's tokens.
Revoked tokens are in another file, a line `id:end` each, with the end of the
token in seconds since 1970; all API processes with that file refuse them.
"""

import base64
from collections.abc import Callable, Mapping
import contextlib
import dataclasses
import hashlib
import hmac
import os
import secrets
import stat
import tempfile
import threading
import time
import typing
import uuid

import jwt
from oslo_config import cfg
from oslo_log import log

from manila_lite import exception
from manila_lite.api.auth import users
from manila_lite.api.auth.users import CurrentUsers, User

LOG = log.getLogger(__name__)

KEY_BYTES = 32
_PREFIX = '.token-key-'


def read_key(path: str) -> bytes:
    """Return the key in the file, which is created if there is none.

    Raises cfg.ConfigFileParseError if that fails, or if the file is readable
    for others or no key.
    """
    try:
        try:
            return _read_key(path)
        except FileNotFoundError:
            _create_key(path)
            return _read_key(path)
    except OSError as error:
        raise cfg.ConfigFileParseError(
            path,
            f'{error.strerror}; the identity API keeps the key of its tokens '
            'here, see token_key_file and identity_api in section '
            '[http_basic]',
        ) from error


def _read_key(path: str) -> bytes:
    with open(path, 'rb') as file:
        if os.fstat(file.fileno()).st_mode & (stat.S_IRWXG | stat.S_IRWXO):
            raise cfg.ConfigFileParseError(
                path,
                'others than the owner may read or write this key; '
                'delete the file or change its mode to 0600',
            )
        key = decode_key(file.read(1024))
    if key is None:
        raise cfg.ConfigFileParseError(
            path, f'not a key of {KEY_BYTES} bytes in base64'
        )
    return key


def decode_key(text: bytes | str) -> bytes | None:
    """Return the key that is written in base64; None if it is no key."""
    try:
        key = base64.b64decode(text.strip(), validate=True)
    except ValueError:
        return None
    return key if len(key) >= KEY_BYTES else None


def _create_key(path: str) -> None:
    """Create the file with a new key, unless another process is faster."""
    folder = os.path.dirname(os.path.abspath(path))
    os.makedirs(folder, mode=0o700, exist_ok=True)
    # mkstemp creates files with mode 0600.
    descriptor, temporary = tempfile.mkstemp(dir=folder, prefix=_PREFIX)
    try:
        with open(descriptor, 'wb') as file:
            key = secrets.token_bytes(KEY_BYTES)
            file.write(base64.b64encode(key) + b'\n')
            file.flush()
            os.fsync(descriptor)
        # A link, not a rename: it never replaces the key of another process,
        # and the file is complete as soon as it exists.
        with contextlib.suppress(FileExistsError):
            os.link(temporary, path)
            LOG.info('Created the key for tokens, %s', path)
    finally:
        os.unlink(temporary)


_ALGORITHM = 'HS256'
_ISSUER = 'manila_lite'
_REQUIRED = ['iss', 'sub', 'iat', 'exp', 'jti', 'methods', 'credentials']
MAX_LENGTH = 4096
_CACHE_SIZE = 1000


class RevokedTokens:
    """The ids in the file; a change takes effect with the next look-up."""

    def __init__(self, path: str, clock: Callable[[], float] = time.time):
        self._path = path
        self._clock = clock
        # The state of the file and its content, replaced as one value, so
        # that a thread that reads slowly cannot hide a later change.
        self._loaded: tuple[object, Mapping[str, int]] = (None, {})

    def __contains__(self, id: str) -> bool:
        old_state, ends = self._loaded
        state = users.file_state(self._path)
        if state != old_state:
            try:
                ends = _parse(users.read_lines(self._path)) if state else {}
                self._loaded = (state, ends)
            except OSError as error:
                LOG.error('Cannot read the revoked tokens: %s', error)
        return id in ends

    def add(self, id: str, end: int) -> None:
        """Revoke a token; drop those that have expired. Raises OSError."""
        folder = os.path.dirname(os.path.abspath(self._path))
        os.makedirs(folder, mode=0o700, exist_ok=True)
        now = self._clock()
        with users.edited_lines(self._path) as lines:
            ends = {**_parse(lines), id: end}
            lines[:] = [f'{one}:{end}' for one, end in ends.items() if end >= now]


def _parse(lines: list[str]) -> dict[str, int]:
    ends = {}
    for line in lines:
        id, _, end = line.partition(':')
        with contextlib.suppress(ValueError):
            ends[id] = int(end)
    return ends


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
        self._revoked, self._key, self._lifetime = revoked, key, lifetime
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
