"""Connects the page to the API; the rest is loaded on first use."""

from collections.abc import Callable, Iterable
import functools

from manila_lite.api import faults
from manila_lite.api.auth.caller import App
from manila_lite.api.services import ApiServices
from manila_lite.api.ui import PREFIX

SAFETY = [
    (
        'Content-Security-Policy',
        "default-src 'none'; style-src 'self'; script-src 'self'; "
        "connect-src 'self'; img-src data:; form-action 'self'; "
        "base-uri 'none'; frame-ancestors 'none'",
    ),
    ('X-Content-Type-Options', 'nosniff'),
    # For browsers that do not know frame-ancestors.
    ('X-Frame-Options', 'DENY'),
    # Not no-referrer, with which browsers hide the origin of forms.
    ('Referrer-Policy', 'same-origin'),
    ('Cross-Origin-Opener-Policy', 'same-origin'),
    ('Cross-Origin-Resource-Policy', 'same-origin'),
]
_NOT_STORED = ('Cache-Control', 'no-store')
_SHARING = 'access-control-'


def serves(path: str) -> bool:
    """Return whether the page answers requests for this path."""
    return path == PREFIX or path.startswith(PREFIX + '/')


class SafeAnswers:
    """The whole API, whose answers below /ui are for their own site only.

    All get the headers that protect browsers, and none gets those that would
    show them to the sites of [cors].
    """

    def __init__(self, app: App):
        self._app = app

    def __call__(self, environ: dict, start_response: Callable) -> Iterable[bytes]:
        if not serves(environ['PATH_INFO']):
            return self._app(environ, start_response)

        def start(
            status: str, headers: list[tuple[str, str]], exc_info: object = None
        ) -> Callable:
            given = {name.lower() for name, _ in headers}
            kept = [
                (name, value)
                for name, value in headers
                if not name.lower().startswith(_SHARING)
            ]
            if _NOT_STORED[0].lower() not in given:
                kept.append(_NOT_STORED)
            return start_response(status, [*kept, *SAFETY], exc_info)

        return self._app(environ, start)


class BehindSignIn:
    """The API together with the pages; callers are authenticated before."""

    def __init__(self, api: App, services: ApiServices):
        self._api, self._services = api, services
        self._pages = faults.FaultMiddleware(self._render)

    def __call__(self, environ: dict, start_response: Callable) -> Iterable[bytes]:
        if serves(environ['PATH_INFO']):
            return self._pages(environ, start_response)
        return self._api(environ, start_response)

    def _render(self, environ: dict, start_response: Callable) -> Iterable[bytes]:
        return self._site(environ, start_response)

    @functools.cached_property
    def _site(self) -> App:
        from manila_lite.api.ui.site import PageApplication

        return PageApplication(self._api, self._services)


class BeforeSignIn:
    """The WSGI application at /ui: sign-in, and the pages behind it."""

    def __init__(
        self, authenticated: App, identity_api: App | None, services: ApiServices
    ):
        self._given = authenticated, identity_api, services.conf

    def __call__(self, environ: dict, start_response: Callable) -> Iterable[bytes]:
        return self._front(environ, start_response)

    @functools.cached_property
    def _front(self) -> App:
        from manila_lite.api.ui.front import Front

        return Front(*self._given)
