"""Sign-in by name and password, from a file of users.

bcrypt is slow on purpose, so a password that was right is not worked out
again for some minutes. It is not kept for that either: what is compared is
a digest under a key that lives as long as the process.
"""

import base64
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

LOG = log.getLogger(__name__)

_CHALLENGE = [
    ('WWW-Authenticate', 'Basic realm="manila-lite", charset="UTF-8"')
]
# Seconds for which a password is not worked out again.
_REMEMBERED = 300


def make_middleware(conf, app, enforcer):
    """The app behind a sign-in by name and password."""
    return HttpBasicMiddleware(
        app, enforcer, PasswordVerifier(conf.http_basic.users_file)
    )


class HttpBasicMiddleware:
    """Passes on the requests of users who know their password."""

    def __init__(self, app, enforcer, passwords):
        self._app = app
        self._enforcer = enforcer
        self._passwords = passwords

    def __call__(self, environ, start_response):
        name, password = _name_and_password(
            environ.get('HTTP_AUTHORIZATION', '')
        )
        user = name and self._passwords.user(name, password)
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
    """The users of a file, who are let in by name and password.

    A changed file counts from the next request on. Raises
    cfg.ConfigFileParseError when it has no sense at the start; later on,
    that is reported once and the users known before stay.
    """

    def __init__(self, path, clock=time.monotonic):
        self._path = path
        self._clock = clock
        self._key = secrets.token_bytes(32)
        self._right = {}  # name to digest and the time it is forgotten
        # What the file looked like and the users it had: kept as one, so
        # that a thread that was slow to read cannot hide a later change.
        self._known = (self._look(), self._read())

    def user(self, name, password):
        """The user of that name and password, or None."""
        user = self._users().get(name)
        if user and self._is_remembered(user, password):
            return user
        if not users.verify_password(user, password):
            return None
        self._right[name] = (
            self._digest(user, password),
            self._clock() + _REMEMBERED,
        )
        return user

    def _is_remembered(self, user, password):
        digest, forgotten_at = self._right.get(user.name, (b'', 0))
        return (
            hmac.compare_digest(digest, self._digest(user, password))
            and self._clock() < forgotten_at
        )

    def _digest(self, user, password):
        # With the hash in it, a new password ends what the old one opened.
        return hmac.digest(self._key, user.hash.encode() + password, 'sha256')

    def _users(self):
        seen, known = self._known
        found = self._look()
        if found != seen:
            try:
                known = self._read()
            except cfg.ConfigFileParseError as error:
                LOG.error('The users known before stay: %s', error)
            self._known = (found, known)
        return known

    def _look(self):
        try:
            stat = os.stat(self._path)
        except OSError:
            return None
        return stat.st_ino, stat.st_mtime_ns, stat.st_size

    def _read(self):
        try:
            return users.read(self._path)
        except OSError as error:
            LOG.warning('Nobody can sign in, there are no users: %s', error)
            return {}


def _name_and_password(header):
    """(str, bytes) of an Authorization header; (None, None) of others."""
    scheme, _, encoded = header.partition(' ')
    if scheme.lower() != 'basic':
        return None, None
    try:
        text = base64.b64decode(encoded.strip(), validate=True)
        name, colon, password = text.partition(b':')
        return (name.decode(), password) if colon else (None, None)
    except ValueError:
        return None, None
