"""Where the page is joined to the API; the rest is loaded when first used."""

from collections.abc import Callable, Iterable
import functools

from manila_lite.api import faults
from manila_lite.api.auth.caller import App
from manila_lite.api.services import ApiServices

PREFIX = '/ui'


def serves(path: str) -> bool:
    """Return whether the page answers requests for this path."""
    return path == PREFIX or path.startswith(PREFIX + '/')


class BehindSignIn:
    """The API together with the pages; callers are authenticated before."""

    def __init__(self, api: App, services: ApiServices):
        self._api, self._services = api, services
        self._pages = faults.FaultMiddleware(self._render)

    def __call__(
        self, environ: dict, start_response: Callable
    ) -> Iterable[bytes]:
        if serves(environ['PATH_INFO']):
            return self._pages(environ, start_response)
        return self._api(environ, start_response)

    def _render(
        self, environ: dict, start_response: Callable
    ) -> Iterable[bytes]:
        return self._site(environ, start_response)

    @functools.cached_property
    def _site(self) -> App:
        from manila_lite.api.ui.site import Site

        return Site(self._api, self._services)


class BeforeSignIn:
    """The WSGI application at /ui: sign-in, and the pages behind it."""

    def __init__(
        self,
        authenticated: App,
        identity_api: App | None,
        services: ApiServices,
    ):
        self._given = authenticated, identity_api, services.conf

    def __call__(
        self, environ: dict, start_response: Callable
    ) -> Iterable[bytes]:
        return self._front(environ, start_response)

    @functools.cached_property
    def _front(self) -> App:
        from manila_lite.api.ui.front import Front

        return Front(*self._given)
