"""Run a service of its own that is registered and takes work from a queue."""

from collections.abc import Callable
import dataclasses
import typing

from oslo_config import cfg

from manila_lite.cmd import monitoring, running, start
from manila_lite.cmd.api import arguments
from manila_lite.cmd.build.process import Process
from manila_lite.cmd.build.registration import RegisteredService


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
            monitored = monitoring.servers(
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
