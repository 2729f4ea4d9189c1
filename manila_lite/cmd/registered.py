"""Run a service of its own that is registered and takes work from a queue.

It has an address of its own, for monitoring and load balancers, with a page for
each kind of question. The API answers at the address of its clients.
"""

from collections.abc import Callable, Iterable, Mapping
import dataclasses
import typing

from oslo_config import cfg

from manila_lite.api import faults, health, middleware, router
from manila_lite.cmd import running, start, web
from manila_lite.cmd.api import arguments
from manila_lite.cmd.build.process import Process, RegisteredService

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

    limited = middleware.BodyLimitMiddleware(serve, web.NO_BODY)
    return middleware.RequestIdMiddleware(faults.FaultMiddleware(limited))


@dataclasses.dataclass(frozen=True)
class Command:
    """The program of such a service.

    `checks` builds the health checks from the process and its runner, `page`
    the metrics; `port` returns where they are from the configuration.
    """

    prog: str
    build: Callable[[Process], RegisteredService]
    port: Callable[[typing.Any], int]
    checks: Callable[..., typing.Any]
    page: Callable[[Process], typing.Any]

    def run(self) -> None:
        with start.report_errors(self.prog):
            files = arguments(self.prog).config_file
            self.serve(start.configure(self.prog, config_files=files))

    def serve(self, conf: cfg.ConfigOpts, forked: running.Forked | None = None) -> None:
        """Serve until a signal ends the process."""
        signals = running.receive_signals(self.prog, conf)
        db = running.checked_database(conf, signals, forked)
        with running.process(conf, db) as process:
            service = self.build(process)
            monitored = servers(
                conf,
                self.port(conf),
                self.checks(process, service.runners[0]),
                self.page(process),
            )
            with start.if_possible('Registering the service'):
                service.register()
            running.serve_until_stopped(
                process, signals, [*monitored, service], forked=forked
            )
