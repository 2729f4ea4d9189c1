"""Where a scheduler, share or data process answers questions about itself.

An address of its own, for monitoring and load balancers, with a page for
each kind of question. The API answers at the address of its clients.
"""

from collections.abc import Callable, Iterable, Mapping

from oslo_config import cfg

from manila_lite.api import faults, health, middleware, router
from manila_lite.cmd import running, web

Page = Callable[[dict, Callable], Iterable[bytes]]
"""A WSGI application."""


def servers(
    conf: cfg.ConfigOpts,
    port: int | None,
    checks: Mapping[str, health.Check],
    metrics: Page,
) -> list[running.WebServer]:
    """Return the server of the pages, which listens; none without a port.

    `bus` is required only if an option names it; the other checks always.
    """
    if port is None:
        return []
    optional = {'bus'}.difference(conf.healthcheck_required)
    required = set(checks) - optional
    app = _with_pages(
        {'/healthcheck': health.HealthCheck(checks, required), '/metrics': metrics}
    )
    server = web.small_server(app, conf.monitoring.listen, port)
    return [running.WebServer(server, conf.monitoring.drain_time)]


def _with_pages(pages: Mapping[str, Page]) -> Page:
    """Return an application with these pages, all of them read only."""

    def serve(environ: dict, start_response: Callable) -> Iterable[bytes]:
        return router.serve_page(pages, environ, start_response)

    return middleware.RequestIdMiddleware(faults.FaultMiddleware(serve))
