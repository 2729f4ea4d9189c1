"""manila-lite-scheduler: place shares on back ends."""

from manila_lite.cmd import monitoring
from manila_lite.cmd import running
from manila_lite.cmd import start
from manila_lite.cmd.api import arguments
from manila_lite.cmd.build.health import checks_of_scheduler
from manila_lite.cmd.build.metrics import page_of_service
from manila_lite.cmd.build.scheduler import build_scheduler
from manila_lite.db import schema

PROG = 'manila-lite-scheduler'


def main() -> None:
    with start.report_errors(PROG):
        conf = start.configure(PROG, config_files=arguments(PROG).config_file)
        signals = running.receive_signals(PROG, conf)
        db = start.database(conf, pause=signals.pause)
        schema.check(db)
        with running.process(conf, db) as process:
            service = build_scheduler(process)
            monitored = monitoring.servers(
                conf,
                conf.monitoring.scheduler_port,
                checks_of_scheduler(process, service.runners[0]),
                page_of_service(process),
            )
            with start.if_possible('Registering the scheduler'):
                service.register()
            running.serve_until_stopped(
                process, signals, [*monitored, service]
            )


if __name__ == '__main__':
    main()
