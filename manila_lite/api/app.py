"""The whole API as one WSGI application."""

import typing

from oslo_config import cfg

from manila_lite.api import (
    auth as authentication,
    faults,
    health,
    identity,
    links,
    middleware,
    router,
    routes,
    versions,
    wsgi,
)
from manila_lite.api.auth import caller
from manila_lite.api.services import ApiServices
from manila_lite.api.ui import entry
from manila_lite.api.v2 import versions as api_description, versions as version_list
from manila_lite.policies.enforcer import Enforcer

App = typing.Callable[..., typing.Iterable[bytes]]


def build_app(
    conf: cfg.ConfigOpts,
    services: ApiServices,
    enforcer: Enforcer,
    auth: typing.Callable[[App], App] | None = None,
    *,
    run: authentication.Run = authentication.run_here,
    checks: typing.Mapping[str, health.Check] | None = None,
    required: typing.Collection[str] | None = None,
    metrics: App | None = None,
    ui: bool = False,
    table: typing.Sequence[router.Route] = routes.ROUTES,
) -> App:
    """Build the application from its middlewares, routes and controllers.

    Each controller is created once, with the services. `auth` wraps the part
    that needs authentication; the default is the configured strategy with
    this enforcer, which computes hashes by `run`. The checks are served at
    /healthcheck, which fails with the `required` ones, or with any;
    `metrics`, if given, is the page /metrics; with `ui` there is one at /ui.
    """
    controllers = {
        controller: controller(services)
        for controller in {route.controller for route in table}
    }
    base_url = conf.osapi_share_base_URL
    v2: App = faults.FaultMiddleware(
        router.Router(
            table,
            controllers,
            base_url=base_url,
            project_id_regex=conf.project_id_regex,
        )
    )
    behind = entry.BehindSignIn(v2, services) if ui else v2
    for_callers, identity_api = (
        (auth(behind), None)
        if auth
        else authentication.pipeline(conf, behind, enforcer, run)
    )
    pages: dict[str, App] = {'/healthcheck': health.HealthCheck(checks or {}, required)}
    if metrics is not None:
        pages['/metrics'] = metrics
    app: App = _Entry(
        pages,
        for_callers,
        _Description(v2, for_callers, enforcer),
        identity_api,
        base_url,
    )
    if ui:
        front = entry.BeforeSignIn(for_callers, identity_api, services)
        app = _with_ui(app, front)
    app = middleware.BodyLimitMiddleware(app, conf.max_request_body_size)
    # Within the optional ones: they add headers to refusals, too, as CORS does,
    # but see answers only, no exceptions.
    app = faults.FaultMiddleware(app)
    app = _with_optional_middlewares(conf, app)
    if ui:
        app = entry.SafeAnswers(app)
    return middleware.RequestIdMiddleware(app)


_SENT = [
    'Authorization',
    'Content-Type',
    'X-Auth-Token',
    'X-Subject-Token',
    versions.HEADER,
    versions.EXPERIMENTAL_HEADER,
]
_READ = [
    'Location',
    'Retry-After',
    'WWW-Authenticate',
    'X-Compute-Request-Id',
    'X-OpenStack-Request-Id',
    'X-Subject-Token',
    versions.HEADER,
    versions.EXPERIMENTAL_HEADER,
]
"""The headers that pages of other sites need, unless `[cors]` says otherwise."""


def _with_optional_middlewares(conf: cfg.ConfigOpts, app: App) -> App:
    """Wrap the application in the optional middlewares that are configured.

    oslo.middleware, which registers the options, is imported only if its
    sections are present: the import takes longer than everything else.
    """
    sections = conf.list_all_sections()
    wrapped = app
    if 'cors' in sections:
        from oslo_middleware import cors

        cors.set_defaults(allow_headers=_SENT, expose_headers=_READ)
        wrapped = cors.CORS(wrapped, conf)
    if 'oslo_middleware' in sections:
        from oslo_middleware import http_proxy_to_wsgi

        wrapped = links.ProxyHeaders(http_proxy_to_wsgi.HTTPProxyToWSGI(wrapped, conf))
    return app if wrapped is app else faults.FaultMiddleware(wrapped)


def _with_ui(app: App, front: App) -> App:
    """Return an application that has the page at /ui as well."""

    def serve(environ: dict, start_response: typing.Callable) -> typing.Iterable[bytes]:
        chosen = front if entry.serves(environ['PATH_INFO']) else app
        return chosen(environ, start_response)

    return serve


_DESCRIPTION = versions.PREFIX + api_description.PATH


class _Description:
    """Serves the API description, also without sign-in if policies allow."""

    def __init__(self, v2: App, for_callers: App, enforcer: Enforcer):
        self._v2, self._for_callers, self._enforcer = v2, for_callers, enforcer

    def __call__(
        self, environ: dict, start_response: typing.Callable
    ) -> typing.Iterable[bytes]:
        anonymous = caller.build_context(environ, self._enforcer, roles=[])
        if anonymous.can(api_description.POLICY):
            return caller.call_as(anonymous, self._v2, environ, start_response)
        return self._for_callers(environ, start_response)


class _Entry:
    """Serves the version list and the pages outside /v2.

    The identity API has its own prefixes.
    """

    def __init__(
        self,
        pages: typing.Mapping[str, App],
        v2: App,
        description: App,
        identity_api: App | None,
        base_url: str | None,
    ):
        self._v2 = v2
        self._description = description
        self._pages = {'': self._versions, '/': self._versions, **pages}
        self._identity_api = identity_api
        self._base_url = base_url

    def __call__(
        self, environ: dict, start_response: typing.Callable
    ) -> typing.Iterable[bytes]:
        path = environ['PATH_INFO']
        if path.startswith(versions.PREFIX + '/') or path == versions.PREFIX:
            if path == _DESCRIPTION:
                return self._description(environ, start_response)
            return self._v2(environ, start_response)
        if self._identity_api and identity.serves(path):
            return self._identity_api(environ, start_response)
        return router.serve_page(self._pages, environ, start_response)

    def _versions(
        self, environ: dict, start_response: typing.Callable
    ) -> typing.Iterable[bytes]:
        req = wsgi.Request(environ, base_url=self._base_url)
        return wsgi.send_json(
            start_response, 300, version_list.document(req.public_url)
        )
