"""Run a service of its own that is registered and takes work from a queue."""

from collections.abc import Callable
import typing

from manila_lite.cmd import monitoring
from manila_lite.cmd import running
from manila_lite.cmd import start
from manila_lite.cmd.api import arguments
from manila_lite.cmd.build.process import Process
from manila_lite.cmd.build.registration import RegisteredService


def serve(
    prog: str,
    build: Callable[[Process], RegisteredService],
    *,
    port: Callable[[typing.Any], int],
    checks: Callable[..., typing.Any],
    page: Callable[[Process], typing.Any],
) -> None:
    """Serve until a signal ends the process.

    `checks` builds the health checks from the process and its runner, `page`
    the metrics; `port` returns where they are from the configuration.
    """
    with start.report_errors(prog):
        conf = start.configure(prog, config_files=arguments(prog).config_file)
        signals = running.receive_signals(prog, conf)
        db = start.database(conf, pause=signals.pause)
        start.check_database(conf, db)
        with running.process(conf, db) as process:
            service = build(process)
            monitored = monitoring.servers(
                conf,
                port(conf),
                checks(process, service.runners[0]),
                page(process),
            )
            with start.if_possible('Registering the service'):
                service.register()
            running.serve_until_stopped(
                process, signals, [*monitored, service]
            )
