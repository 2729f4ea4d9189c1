"""Sessions of browsers: a cookie that scripts and other sites cannot use.

The cookie has a random part and what the API accepts as X-Auth-Token, so
that a session ends with its token and is valid in all API processes. A form
proves that it is ours by a digest of the cookie, which only this site knows.
"""

import base64
import hashlib
import hmac
from http import cookies
import secrets
import typing

COOKIE = 'manila_lite_ui'
LONGEST = 4000
"""Longest value of a cookie that all browsers keep."""


class UiSession(typing.NamedTuple):
    """A browser that has signed in; `credential` is its token."""

    nonce: str
    credential: str

    @property
    def value(self) -> str:
        encoded = base64.urlsafe_b64encode(self.credential.encode()).decode()
        return f'{self.nonce}.{encoded}'

    @property
    def form_token(self) -> str:
        """What forms of this session contain."""
        text = f'form of {self.value}'
        return hashlib.sha256(text.encode()).hexdigest()

    def made(self, form_token: str) -> bool:
        """Whether a form with this token was made for this session."""
        return hmac.compare_digest(self.form_token.encode(), form_token.encode())


def begin(credential: str) -> UiSession:
    return UiSession(secrets.token_urlsafe(24), credential)


def find(environ: dict) -> UiSession | None:
    """Return the session of a request; None without a usable cookie."""
    try:
        found = cookies.SimpleCookie(environ.get('HTTP_COOKIE', ''))
    except cookies.CookieError:
        return None
    if COOKIE not in found:
        return None
    nonce, _, encoded = found[COOKIE].value.partition('.')
    try:
        credential = base64.b64decode(encoded, b'-_', validate=True).decode()
    except ValueError:
        return None
    # It becomes a header.
    if not nonce or not (credential.isascii() and credential.isprintable()):
        return None
    return UiSession(nonce, credential)


def header(session: UiSession | None, *, secure: bool) -> tuple[str, str]:
    """Return the header that sets the cookie, or without a session ends it."""
    value = session.value if session else ''
    parts = [f'{COOKIE}={value}', 'Path=/ui', 'HttpOnly', 'SameSite=Strict']
    if secure:
        parts.append('Secure')
    if not session:
        parts.append('Max-Age=0')
    return 'Set-Cookie', '; '.join(parts)
