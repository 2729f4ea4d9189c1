"""manila-lite-scheduler: place shares on back ends."""

from manila_lite.cmd import running
from manila_lite.cmd import start
from manila_lite.cmd.api import arguments
from manila_lite.cmd.build.scheduler import build_scheduler
from manila_lite.db import schema

PROG = 'manila-lite-scheduler'


def main() -> None:
    with start.report_errors(PROG):
        conf = start.configure(PROG, config_files=arguments(PROG).config_file)
        stop = running.StopSignal()
        db = start.database(conf)
        schema.check(db)
        with running.process(conf, db) as process:
            service = build_scheduler(process)
            service.register()
            running.serve_until(stop, [service])


if __name__ == '__main__':
    main()
