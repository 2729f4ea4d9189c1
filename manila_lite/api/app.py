"""The whole API as one WSGI application."""

import typing

from oslo_config import cfg

from manila_lite.api import auth as authentication
from manila_lite.api import faults
from manila_lite.api import health
from manila_lite.api import middleware
from manila_lite.api import router
from manila_lite.api import routes
from manila_lite.api import versions
from manila_lite.api import wsgi
from manila_lite.api.services import ApiServices
from manila_lite.api.v2 import versions as version_list
from manila_lite.policies.enforcer import Enforcer

App = typing.Callable[..., typing.Iterable[bytes]]


def build_app(
    conf: cfg.ConfigOpts,
    services: ApiServices,
    enforcer: Enforcer,
    auth: typing.Callable[[App], App] | None = None,
    *,
    checks: typing.Mapping[str, health.Check] | None = None,
    table: typing.Sequence[router.Route] = routes.ROUTES,
) -> App:
    """Build the application from its middlewares, routes and controllers.

    Each controller is created once, with the services. `auth` wraps the part
    that needs authentication; the default is the configured strategy with
    this enforcer. The checks are served at /healthcheck.
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
    v2 = auth(v2) if auth else authentication.pipeline(conf, v2, enforcer)
    app: App = _Entry(health.HealthCheck(checks or {}), v2, base_url)
    app = middleware.BodyLimitMiddleware(app, conf.max_request_body_size)
    return middleware.RequestIdMiddleware(
        faults.FaultMiddleware(_with_optional_middlewares(conf, app))
    )


def _with_optional_middlewares(conf: cfg.ConfigOpts, app: App) -> App:
    """Wrap the application in the optional middlewares that are configured.

    oslo.middleware, which registers the options, is imported only if its
    sections are present: the import takes longer than everything else.
    """
    sections = conf.list_all_sections()
    if 'cors' in sections:
        from oslo_middleware import cors

        app = cors.CORS(app, conf)
    if 'oslo_middleware' in sections:
        from oslo_middleware import http_proxy_to_wsgi

        app = http_proxy_to_wsgi.HTTPProxyToWSGI(app, conf)
    return app


class _Entry:
    """Serves the version list and the health check outside /v2."""

    def __init__(self, healthcheck: App, v2: App, base_url: str | None):
        self._healthcheck, self._v2 = healthcheck, v2
        self._base_url = base_url

    def __call__(
        self, environ: dict, start_response: typing.Callable
    ) -> typing.Iterable[bytes]:
        path = environ['PATH_INFO']
        if path.startswith(versions.PREFIX + '/') or path == versions.PREFIX:
            return self._v2(environ, start_response)
        if path == '/healthcheck':
            return self._healthcheck(environ, start_response)
        if path not in ('', '/'):
            return wsgi.send_not_found(environ, start_response)
        req = wsgi.Request(environ, base_url=self._base_url)
        return wsgi.send_json(
            start_response, 300, version_list.document(req.public_url)
        )
